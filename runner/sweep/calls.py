"""The language model calls of a sweep and their cost, planned before any is made.

Token counts come from earlier calls in the ledger; without such calls they are estimates or upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from retrievers.chat import Chat
from retrievers.model_calls import iter_model_calls
from runner.analysis.grading import Grading
from runner.datasets.base import Dataset
from runner.experiment import Experiment
from runner.llm.client import BYTES_PER_TOKEN, LLM, TEMPLATE_TOKENS
from runner.llm.ledger import open_ledger
from runner.plan import PlannedCalls

MILLION = 1_000_000


@dataclass(frozen=True)
class _Calls:
    """Calls of a model for one purpose and the input tokens of all: an upper bound, or an estimate if not `bounded`."""

    llm: Chat
    purpose: str
    n: int
    tokens_in: float
    bounded: bool = True


def estimate_calls(experiments: Iterable[tuple[Experiment, Dataset, bool]]) -> list[PlannedCalls]:
    """Return the calls of each model for each purpose, without retries.

    Each experiment comes with its dataset and whether its search is still to do. A search that several experiments
    share counts once.
    """
    groups: dict[tuple[str, str], list[_Calls]] = {}
    searched: set[tuple[str, str]] = set()
    for experiment, dataset, to_search in experiments:
        planned: list[_Calls] = []
        same = (repr(experiment.retriever), dataset.fingerprint)
        if to_search and same not in searched:
            searched.add(same)
            planned += _plan_search(experiment.retriever, dataset)
        if experiment.grading is not None:
            planned.append(_plan_grading(experiment.grading, dataset))
        for calls in planned:
            groups.setdefault((calls.purpose, repr(calls.llm)), []).append(calls)
    return [_sum_calls(purpose, group) for (purpose, _), group in groups.items()]


def _plan_search(settings: object, dataset: Dataset) -> Iterator[_Calls]:
    """Yield the calls of a search; no token is shorter than a byte, and no reply longer than `max_tokens`."""
    for planned in iter_model_calls(settings, dataset.corpus, dataset.queries.texts):
        reply = planned.llm.max_tokens if isinstance(planned.llm, LLM) else 0
        tokens = planned.calls * TEMPLATE_TOKENS + planned.prompt_bytes + planned.replies_read * reply
        yield _Calls(planned.llm, planned.purpose, planned.calls, tokens)


def _plan_grading(grading: Grading, dataset: Dataset) -> _Calls:
    """Return the calls of a grading, each with documents of average length."""
    n = len(dataset.queries)
    document = sum(map(len, dataset.corpus.contents())) / max(len(dataset.corpus), 1)
    question = sum(map(len, (*dataset.queries.texts, *grading.answers(dataset.queries)))) / max(n, 1)
    shown = len(grading.template.text) + question + min(grading.k, len(dataset.corpus)) * document
    calls = n * grading.repeats
    return _Calls(grading.llm, "grade", calls, calls * (TEMPLATE_TOKENS + shown / BYTES_PER_TOKEN), bounded=False)


def _sum_calls(purpose: str, group: list[_Calls]) -> PlannedCalls:
    n, llm = sum(calls.n for calls in group), group[0].llm
    if not isinstance(llm, LLM):  # a plug-in, whose tokens and prices are unknown
        return PlannedCalls(purpose, type(llm).__name__, n)
    known = open_ledger(llm.ledger).mean_tokens(purpose, llm.model) if Path(llm.ledger).exists() else None
    if known is not None:
        tokens_in, tokens_out = (n * tokens for tokens in known)
    else:
        tokens_in, tokens_out = sum(calls.tokens_in for calls in group), n * llm.max_tokens
    cost = None
    if llm.price_in is not None and llm.price_out is not None:
        cost = (tokens_in * llm.price_in + tokens_out * llm.price_out) / MILLION
    most = known is None and all(calls.bounded for calls in group)
    rough = known is None and not most
    return PlannedCalls(purpose, llm.model, n, round(tokens_in), round(tokens_out), cost, rough, most)
