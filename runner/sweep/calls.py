"""How often a sweep will ask language models, and what that costs: by what such calls took before, else at most.

It asks nobody. How long models take to answer is not its matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path

from retrievers.agentic import Agentic
from retrievers.base import Corpus
from retrievers.chat import Chat
from retrievers.expanded import Expanded
from retrievers.prompting import fill_prompt, number_passages
from retrievers.reranked import Reranked
from retrievers.rerankers.listwise import ListwiseReranker, list_windows
from runner.analysis.grading import Grading
from runner.datasets.base import Dataset
from runner.experiment import Experiment
from runner.llm.client import BYTES_PER_TOKEN, LLM, TEMPLATE_TOKENS
from runner.llm.ledger import open_ledger
from runner.reports.plan import PlannedCalls

MILLION = 1_000_000


@dataclass(frozen=True)
class _Asking:
    """That a model is asked so many times for a purpose, and reads so many tokens in all: at `most`, or about."""

    llm: Chat
    purpose: str
    times: int
    tokens_in: float
    most: bool = True


def estimate_calls(experiments: Iterable[tuple[Experiment, Dataset, bool]]) -> list[PlannedCalls]:
    """Return how often each model will be asked for what, given whether each experiment's search is still to do.

    A search that several have in common is counted once, without retries. Of an agent it is the most that it may ask.
    """
    groups: dict[tuple[str, str], list[_Asking]] = {}
    searched: set[tuple[str, str]] = set()
    for experiment, dataset, to_search in experiments:
        calls: list[_Asking] = []
        same = (repr(experiment.retriever), dataset.fingerprint)
        if to_search and same not in searched:
            searched.add(same)
            calls += _searching(experiment.retriever, dataset)
        if experiment.grading is not None:
            calls.append(_grading(experiment.grading, dataset))
        for call in calls:
            groups.setdefault((call.purpose, repr(call.llm)), []).append(call)
    return [_sum_calls(purpose, group) for (purpose, _), group in groups.items()]


def _searching(settings: object, dataset: Dataset) -> Iterator[_Asking]:
    """Yield the calls of a search by settings, and by all settings within them."""
    if isinstance(settings, Expanded):
        yield _expanding(settings, dataset)
    elif isinstance(settings, Agentic):
        yield _searching_again(settings, dataset)
    elif isinstance(settings, Reranked) and isinstance(settings.reranker, ListwiseReranker):
        yield _ordering(settings.reranker, settings.depth, dataset)
    parts: Iterable[object] = ()
    if isinstance(settings, Mapping):
        parts = settings.values()
    elif isinstance(settings, (list, tuple)):
        parts = settings
    elif is_dataclass(settings):
        parts = [getattr(settings, field.name) for field in fields(settings)]
    for part in parts:
        yield from _searching(part, dataset)


def _expanding(settings: Expanded, dataset: Dataset) -> _Asking:
    prompt = settings.multi_query_prompt if settings.method == "multi_query" else settings.hyde_prompt
    tokens = sum(
        _most_tokens(settings.system, fill_prompt(prompt, query=query, n=settings.n)) for query in dataset.queries.texts
    )
    return _Asking(settings.llm, "expand", len(dataset.queries), tokens)


def _searching_again(settings: Agentic, dataset: Dataset) -> _Asking:
    """Return the calls of an agent: each shows all searches before it, whose queries but the first are replies."""
    results = max(_longest(dataset.corpus, settings.shown, settings.max_words), _bytes("(nothing was found)"))
    reply = settings.llm.max_tokens if isinstance(settings.llm, LLM) else 0
    tokens, calls = 0, settings.max_calls
    for query in dataset.queries.texts:
        prompt_tokens = _most_tokens(settings.system, fill_prompt(settings.prompt, query=query, searches=""))
        first = _bytes(f"Query: {query}\n\n\n") + results
        later = _bytes("Query: \n\n\n") + reply + results
        shown = calls * first + calls * (calls - 1) // 2 * later  # the second call shows one more, the third two
        tokens += calls * prompt_tokens + settings.prompt.count("{searches}") * shown
    return _Asking(settings.llm, "agent", len(dataset.queries) * calls, tokens)


def _ordering(settings: ListwiseReranker, depth: int, dataset: Dataset) -> _Asking:
    slid = list_windows(min(depth, len(dataset.corpus)), settings.window, settings.step)
    tokens = 0
    for start, end in slid:
        shown = settings.prompt.count("{passages}") * _longest(dataset.corpus, end - start, settings.max_words)
        for query in dataset.queries.texts:
            tokens += (
                _most_tokens(settings.system, fill_prompt(settings.prompt, query=query, passages="", n=end - start))
                + shown
            )
    return _Asking(settings.llm, "rerank", len(dataset.queries) * len(slid), tokens)


def _most_tokens(*texts: str) -> int:
    """Return as how many tokens texts of one call may count at most: none is shorter than a byte."""
    return TEMPLATE_TOKENS + sum(map(_bytes, texts))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _longest(corpus: Corpus, n: int, words: int) -> int:
    """Return how many bytes n documents take at most, numbered as a prompt shows them, each cut at so many words."""
    return sum(_sizes(corpus, words)[:n]) + _bytes(number_passages([""] * n, 0))


@lru_cache(maxsize=4)
def _sizes(corpus: Corpus, words: int) -> list[int]:
    """Return the bytes that documents have when they are cut at so many words, the largest first."""
    return sorted((_bytes(" ".join(text.split(None, words)[:words])) for text in corpus.contents()), reverse=True)


def _grading(grading: Grading, dataset: Dataset) -> _Asking:
    """Return the calls of a grading, each of which shows as many documents of the usual length as it grades."""
    n = len(dataset.queries)
    document = sum(map(len, dataset.corpus.contents())) / max(len(dataset.corpus), 1)
    question = sum(map(len, (*dataset.queries.texts, *grading.answers(dataset.queries)))) / max(n, 1)
    shown = len(grading.template.text) + question + min(grading.k, len(dataset.corpus)) * document
    times = n * grading.repeats
    return _Asking(grading.llm, "grade", times, times * (TEMPLATE_TOKENS + shown / BYTES_PER_TOKEN), most=False)


def _sum_calls(purpose: str, group: list[_Asking]) -> PlannedCalls:
    times, llm = sum(call.times for call in group), group[0].llm
    if not isinstance(llm, LLM):  # a model of a plugin's, of which neither tokens nor prices are known
        return PlannedCalls(purpose, type(llm).__name__, times)
    known = open_ledger(llm.ledger).mean_tokens(purpose, llm.model) if Path(llm.ledger).exists() else None
    if known is not None:
        tokens_in, tokens_out = (times * tokens for tokens in known)
    else:
        tokens_in, tokens_out = sum(call.tokens_in for call in group), times * llm.max_tokens
    cost = None
    if llm.price_in is not None and llm.price_out is not None:
        cost = (tokens_in * llm.price_in + tokens_out * llm.price_out) / MILLION
    most = known is None and all(call.most for call in group)
    rough = known is None and not most
    return PlannedCalls(purpose, llm.model, times, round(tokens_in), round(tokens_out), cost, rough, most)
