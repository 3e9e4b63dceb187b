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


def planned_calls(experiments: Iterable[tuple[Experiment, Dataset, bool]]) -> list[PlannedCalls]:
    """Return how often each model will be asked for what, given whether each experiment's search is still to do.

    A search that several have in common is counted once, without retries. Of an agent it is the most that it may ask.
    """
    found: dict[tuple[str, str], list[_Asking]] = {}
    searched: set[tuple[str, str]] = set()
    for experiment, dataset, to_search in experiments:
        asked: list[_Asking] = []
        same = (repr(experiment.retriever), dataset.fingerprint)
        if to_search and same not in searched:
            searched.add(same)
            asked += _searching(experiment.retriever, dataset)
        if experiment.grading is not None:
            asked.append(_grading(experiment.grading, dataset))
        for each in asked:
            found.setdefault((each.purpose, repr(each.llm)), []).append(each)
    return [_planned(purpose, group) for (purpose, _), group in found.items()]


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
        parts = [getattr(settings, each.name) for each in fields(settings)]
    for part in parts:
        yield from _searching(part, dataset)


def _expanding(how: Expanded, dataset: Dataset) -> _Asking:
    prompt = how.multi_query_prompt if how.method == "multi_query" else how.hyde_prompt
    tokens = sum(_most_tokens(how.system, fill_prompt(prompt, query=query, n=how.n)) for query in dataset.queries.texts)
    return _Asking(how.llm, "expand", len(dataset.queries), tokens)


def _searching_again(how: Agentic, dataset: Dataset) -> _Asking:
    """Return the calls of an agent: each shows all searches before it, whose queries but the first are replies."""
    found = max(_longest(dataset.corpus, how.shown, how.max_words), _bytes("(nothing was found)"))
    reply = how.llm.max_tokens if isinstance(how.llm, LLM) else 0
    tokens, calls = 0, how.max_calls
    for query in dataset.queries.texts:
        asked = _most_tokens(how.system, fill_prompt(how.prompt, query=query, searches=""))
        first = _bytes(f"Query: {query}\n\n\n") + found
        later = _bytes("Query: \n\n\n") + reply + found
        shown = calls * first + calls * (calls - 1) // 2 * later  # the second call shows one more, the third two
        tokens += calls * asked + how.prompt.count("{searches}") * shown
    return _Asking(how.llm, "agent", len(dataset.queries) * calls, tokens)


def _ordering(how: ListwiseReranker, depth: int, dataset: Dataset) -> _Asking:
    slid = list_windows(min(depth, len(dataset.corpus)), how.window, how.step)
    tokens = 0
    for start, end in slid:
        shown = how.prompt.count("{passages}") * _longest(dataset.corpus, end - start, how.max_words)
        for query in dataset.queries.texts:
            tokens += _most_tokens(how.system, fill_prompt(how.prompt, query=query, passages="", n=end - start)) + shown
    return _Asking(how.llm, "rerank", len(dataset.queries) * len(slid), tokens)


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
    asked = sum(map(len, (*dataset.queries.texts, *grading.answers(dataset.queries)))) / max(n, 1)
    shown = len(grading.template.text) + asked + min(grading.k, len(dataset.corpus)) * document
    times = n * grading.repeats
    return _Asking(grading.llm, "grade", times, times * (TEMPLATE_TOKENS + shown / BYTES_PER_TOKEN), most=False)


def _planned(purpose: str, group: list[_Asking]) -> PlannedCalls:
    times, llm = sum(each.times for each in group), group[0].llm
    if not isinstance(llm, LLM):  # a model of a plugin's, of which neither tokens nor prices are known
        return PlannedCalls(purpose, type(llm).__name__, times)
    known = open_ledger(llm.ledger).mean_tokens(purpose, llm.model) if Path(llm.ledger).exists() else None
    if known is not None:
        tokens_in, tokens_out = (times * each for each in known)
    else:
        tokens_in, tokens_out = sum(each.tokens_in for each in group), times * llm.max_tokens
    cost = None
    if llm.price_in is not None and llm.price_out is not None:
        cost = (tokens_in * llm.price_in + tokens_out * llm.price_out) / MILLION
    most = known is None and all(each.most for each in group)
    rough = known is None and not most
    return PlannedCalls(purpose, llm.model, times, round(tokens_in), round(tokens_out), cost, rough, most)
