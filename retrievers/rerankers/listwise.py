"""Listwise reranking: a language model orders several candidates at once, one window after the other.

RankGPT, Sun et al. 2023 (Is ChatGPT good at search?).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RetrieverError
from retrievers.llm.chat import Chat
from retrievers.llm.model_calls import ModelCalls, count_bytes, count_passage_bytes
from retrievers.llm.prompting import (
    Call,
    ask_llm,
    check_prompt,
    count_passage_cuts,
    fill_prompt,
    number_passages,
    summarise_calls,
)
from retrievers.progress import report_progress
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import Store
from retrievers.threads import map_threads

RESULTS_VERSION = "listwise reranker 1"

SYSTEM = "You order passages by how well they answer a query."

PROMPT = """\
These are {n} passages, each under its number.

{passages}

Order them by how well they answer this query, the best first.

Query: {query}

Reply with the numbers of all {n} passages, each once, in the form [2] > [3] > [1], and with nothing else."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ListwiseReranker:
    """Settings of listwise reranking: the `window` slides from the last candidate to the first, by `step`.

    The best candidates move to the top window by window; n candidates take about n / step calls. The model sees the
    first `max_words` words of each candidate. The score is 1 / rank. If a call fails, the order of the base is kept.
    `threads` is the number of queries reranked at a time.
    """

    access: ClassVar[Access] = Access()

    llm: Chat
    window: int = Field(default=20, ge=2)
    step: int = Field(default=10, ge=1)
    max_words: int = Field(default=300, ge=1)
    system: str = SYSTEM
    prompt: str = PROMPT
    threads: int = Field(default=4, ge=1, repr=False)

    def __post_init__(self) -> None:
        if self.step > self.window:
            raise RetrieverError(
                f"step={self.step}: should be at most window={self.window}; otherwise, the model never sees the "
                "candidates in between"
            )
        check_prompt("prompt", self.prompt, "query", "passages")

    def open(self, store: Store) -> Rerank:
        """Return the function that reranks."""
        return partial(_rerank, self)

    def plan_candidate_calls(self, corpus: Corpus, queries: Sequence[str], n: int) -> ModelCalls:
        """Return one call for each window over the candidates of each query."""
        spans, total = list_windows(n, self.window, self.step), 0
        for start, end in spans:
            shown = self.prompt.count("{passages}") * count_passage_bytes(corpus, end - start, self.max_words)
            prompts = (fill_prompt(self.prompt, query=query, passages="", n=end - start) for query in queries)
            total += sum(count_bytes(self.system, prompt) + shown for prompt in prompts)
        return ModelCalls(self.llm, "rerank", len(queries) * len(spans), total)


def _rerank(
    reranker: ListwiseReranker, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
) -> list[CandidateScores]:
    judged = map_threads(lambda pair: _judge(reranker, *pair), zip(queries, candidates, strict=True), reranker.threads)
    return list(report_progress(judged, "reranked", len(queries)))


def _judge(reranker: ListwiseReranker, query: str, texts: Sequence[str]) -> CandidateScores:
    """Return the scores of a query's candidates; a single candidate needs no call."""
    order = list(range(len(texts)))
    calls: list[Call] = []
    spans = list_windows(len(texts), reranker.window, reranker.step)
    for start, end in spans:
        shown = number_passages([texts[place] for place in order[start:end]], reranker.max_words)
        question = fill_prompt(reranker.prompt, query=query, passages=shown, n=end - start)
        calls.append(ask_llm(reranker.llm, question, reranker.system, "rerank"))
        if calls[-1].failed:
            order = list(range(len(texts)))
            break
        order[start:end] = [order[start + place] for place in parse_permutation(calls[-1].text, end - start)]
    scores = np.zeros(len(texts), dtype=np.float32)
    scores[order] = 1 / np.arange(1, len(texts) + 1)
    steps = [{"ranks": [start + 1, end], **call.note} for (start, end), call in zip(spans, calls, strict=False)]
    cuts = count_passage_cuts(texts if spans else (), reranker.max_words)
    return CandidateScores(scores, summarise_calls(calls, cuts, calls=steps))  # no call follows one that failed


def list_windows(n: int, window: int, step: int) -> list[tuple[int, int]]:
    """Return start and end of each window over n candidates, from the last to the first; none for n = 1."""
    if n < 2:
        return []
    ends = [n]
    while ends[-1] > window:
        ends.append(max(ends[-1] - step, window))
    return [(max(end - window, 0), end) for end in ends]


def parse_permutation(reply: str, n: int) -> list[int]:
    """Return the order of n places, from 0, that a reply gives as numbers from 1.

    Missing places come last, in their old order; repeated and unknown numbers are ignored. If no number is in brackets,
    all numbers count.
    """
    numbers = re.findall(r"\[(\d+)\]", reply) or re.findall(r"\d+", reply)
    named = [int(number) - 1 for number in numbers if len(number) < 10]
    return list(dict.fromkeys([place for place in named if 0 <= place < n] + list(range(n))))
