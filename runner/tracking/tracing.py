"""Logs exchanges with language models as MLflow traces, to show the prompts and replies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from retrievers.llm.chat import ChatError
from runner.llm.observers import observe
from runner.tracking.opening import open_client
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from runner.llm.observers import Exchange


@contextmanager
def log_exchanges(tracking: Tracking, wanted: bool) -> Iterator[None]:
    """Log the exchanges of this process with models whose `trace` is on, next to the runs; do nothing unless `wanted`.

    Raises `ConfigError`.
    """
    if not wanted:  # MLflow takes seconds to load
        yield
        return
    import mlflow

    _, experiment = open_client(tracking)
    before = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}
    mlflow.set_tracking_uri(tracking.absolute_uri())
    mlflow.set_experiment(experiment_id=experiment)
    for name in [name for name in os.environ if name.startswith("MLFLOW_") and name not in before]:
        del os.environ[name]  # MLflow sets variables that would determine where the next run of this process is logged
    os.environ.update(before)
    end = observe(_log)
    try:
        yield
    finally:
        end()
        mlflow.flush_trace_async_logging()


def traces(config: Mapping[str, Any]) -> bool:
    """Return whether a config has a language model whose exchanges are logged."""
    return bool((config.get("llm") or {}).get("trace"))


def _log(exchange: Exchange) -> None:
    import mlflow
    from mlflow.entities import SpanType

    outcome = exchange.outcome
    answer, status = (str(outcome), "ERROR") if isinstance(outcome, ChatError) else (outcome.text, "OK")
    messages = [{"role": "system", "content": exchange.system}, {"role": "user", "content": exchange.question}]
    span = mlflow.start_span_no_context(
        exchange.purpose or "ask",
        span_type=SpanType.CHAT_MODEL,
        inputs={"messages": [message for message in messages if message["content"]]},
        attributes={"model": exchange.model, "identity": repr(exchange.llm)},
        start_time_ns=int(exchange.began * 1e9),
    )
    tokens = {"input_tokens": outcome.tokens_in, "output_tokens": outcome.tokens_out}
    tokens["total_tokens"] = sum(tokens.values())
    span.set_attributes({"calls": outcome.calls, "cost": outcome.cost, "mlflow.chat.tokenUsage": tokens})
    span.end(
        outputs=answer,
        status=status,
        end_time_ns=int((exchange.began + exchange.seconds) * 1e9),
    )
