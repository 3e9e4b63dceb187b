from __future__ import annotations

from pathlib import Path

import mlflow
import pytest

from retrievers.llm.chat import ChatError, Reply
from runner.llm.observers import Exchange, notify_observers
from runner.tracking.settings import Tracking
from runner.tracking.tracing import log_exchanges, traces


def exchange(outcome: Reply | ChatError) -> Exchange:
    return Exchange("Model()", "small", "grade", "Be brief.", "Does it help?", outcome, 1_700_000_000.0, 0.5)


@pytest.mark.filterwarnings("ignore:.*Any type hint:UserWarning")  # of MLflow's own code
def test_exchanges_are_logged_as_mlflow_traces(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MLflow makes a database where it is asked for its default
    before = mlflow.get_tracking_uri()
    try:
        with log_exchanges(tracking, wanted=True):
            notify_observers(exchange(Reply("A little.", 30, 4, calls=2, cost=0.25)))
            notify_observers(exchange(ChatError("no answer in time", "time-out", calls=3)))
        found = sorted(mlflow.search_traces(return_type="list"), key=lambda trace: trace.info.state.value)
    finally:
        mlflow.set_tracking_uri(before)
    assert [trace.info.state.value for trace in found] == ["ERROR", "OK"]
    (span,) = found[1].data.spans
    assert span.name == "grade"
    assert span.outputs == "A little."
    assert [message["content"] for message in span.inputs["messages"]] == ["Be brief.", "Does it help?"]
    assert span.attributes["calls"] == 2
    assert span.attributes["mlflow.chat.tokenUsage"]["total_tokens"] == 34
    assert found[0].data.spans[0].outputs == "no answer in time"


def test_tracing_is_off_unless_enabled(tracking: Tracking) -> None:
    with log_exchanges(tracking, wanted=False):
        notify_observers(exchange(Reply("A little.")))
    assert traces({"llm": {"trace": True}})
    assert not traces({"llm": {"trace": False}})
    assert not traces({"llm": {}})
    assert not traces({})
