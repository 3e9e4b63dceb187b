"""Reranking by a language model that sees several candidates at once and puts them in order, window after window.

RankGPT of Sun et al. 2023 (Is ChatGPT good at search?). It knows no provider: a `Chat` answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.chat import Chat
from retrievers.multistage import report_progress
from retrievers.prompting import Call, ask_llm, check_prompt, fill_prompt, number_passages, summarise_calls
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import Store
from retrievers.threads import map_threads

SYSTEM = "You order passages by how well they answer a query."

PROMPT = """\
These are {n} passages, each under its number.

{passages}

Order them by how well they answer this query, the best first.

Query: {query}

Reply with the numbers of all {n} passages, each once, in the form [2] > [3] > [1], and with nothing else."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ListwiseReranker:
    """Settings of a listwise reranking: the `window` slides from the last candidate to the first, `step` at a time.

    So what is best climbs to the top, window by window: a list of n takes about n / step calls. Of each candidate the
    first `max_words` are shown. The score is 1 / rank. If a call fails, the order of the first stage stands.
    `threads` is how many queries are asked about at a time.
    """

    llm: Chat
    window: int = Field(default=20, ge=2)
    step: int = Field(default=10, ge=1)
    max_words: int = Field(default=300, ge=1)
    system: str = SYSTEM
    prompt: str = PROMPT
    threads: int = Field(default=4, ge=1, repr=False)

    def __post_init__(self) -> None:
        if self.step > self.window:
            raise RetrieverError(f"step {self.step} is more than window {self.window}: what is between is not seen")
        check_prompt("prompt", self.prompt, "query", "passages")

    def ready(self, store: Store) -> Rerank:
        """Return the function that asks."""
        return partial(_rerank, self)


def _rerank(
    how: ListwiseReranker, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
) -> list[CandidateScores]:
    judged = map_threads(lambda both: _judge(how, *both), zip(queries, candidates, strict=True), how.threads)
    return list(report_progress(judged, "reranked", len(queries)))


def _judge(how: ListwiseReranker, query: str, texts: Sequence[str]) -> CandidateScores:
    """Return the scores of a query's candidates; one alone needs no order."""
    order = list(range(len(texts)))
    calls: list[Call] = []
    slid = windows(len(texts), how.window, how.step)
    for start, end in slid:
        shown = number_passages([texts[place] for place in order[start:end]], how.max_words)
        question = fill_prompt(how.prompt, query=query, passages=shown, n=end - start)
        calls.append(ask_llm(how.llm, question, how.system, "rerank"))
        if calls[-1].failed:
            order = list(range(len(texts)))
            break
        order[start:end] = [order[start + place] for place in permutation(calls[-1].text, end - start)]
    scores = np.zeros(len(texts), dtype=np.float32)
    scores[order] = 1 / np.arange(1, len(texts) + 1)
    steps = [{"ranks": [start + 1, end], **each.note} for (start, end), each in zip(slid, calls, strict=False)]
    return CandidateScores(
        scores, summarise_calls(calls, calls=steps)
    )  # after one that failed, no window was asked about


def windows(n: int, window: int, step: int) -> list[tuple[int, int]]:
    """Return where each window over n candidates starts and ends, the last ones first; none over one candidate."""
    if n < 2:
        return []
    ends = [n]
    while ends[-1] > window:
        ends.append(max(ends[-1] - step, window))
    return [(max(end - window, 0), end) for end in ends]


def permutation(reply: str, n: int) -> list[int]:
    """Return an order of n places, from 0, that a reply gives as numbers from 1.

    What it leaves out comes last, in the order that it has; what it repeats or makes up does not count. Where no number
    stands in brackets, any number counts.
    """
    numbers = re.findall(r"\[(\d+)\]", reply) or re.findall(r"\d+", reply)
    named = [int(number) - 1 for number in numbers if len(number) < 10]
    return list(dict.fromkeys([place for place in named if 0 <= place < n] + list(range(n))))
