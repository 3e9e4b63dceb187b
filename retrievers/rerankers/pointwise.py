"""Pointwise reranking: a language model grades one candidate at a time.

Zhuang et al. 2024 (Beyond yes and no: improving zero-shot LLM rankers via scoring fine-grained relevance labels).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.llm.chat import Chat
from retrievers.llm.model_calls import ModelCalls, count_bytes, count_passage_bytes
from retrievers.llm.prompting import (
    Call,
    ask_llm,
    check_prompt,
    count_passage_cuts,
    fill_prompt,
    summarise_calls,
)
from retrievers.progress import report_progress
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import Store
from retrievers.threads import map_threads

RESULTS_VERSION = "pointwise reranker 1"

SYSTEM = "You judge how well a passage answers a query."

PROMPT = """\
Passage: {passage}

Query: {query}

How well does the passage answer the query? Reply with a whole number from 0 (not at all) to {highest} (fully), and \
with nothing else."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class PointwiseReranker:
    """Settings of pointwise reranking: one call for each candidate, which the model grades from 0 to `highest`.

    The model sees the first `max_words` words of a candidate. Candidates with the same grade keep the order of the
    base; a reply without a grade counts as 0. If a call fails, the order of the base is kept for its query. `threads`
    is the number of calls at a time.
    """

    access: ClassVar[Access] = Access()

    llm: Chat
    highest: int = Field(default=10, ge=1)
    max_words: int = Field(default=300, ge=1)
    system: str = SYSTEM
    prompt: str = PROMPT
    threads: int = Field(default=8, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_prompt("prompt", self.prompt, "query", "passage")

    def open(self, store: Store) -> Rerank:
        """Return the function that reranks."""
        return partial(_rerank, self)

    def plan_candidate_calls(self, corpus: Corpus, queries: Sequence[str], n: int) -> ModelCalls:
        """Return one call for each candidate; a single candidate needs none."""
        n = n if n > 1 else 0
        shown = self.prompt.count("{passage}") * count_passage_bytes(corpus, n, self.max_words)
        prompts = (fill_prompt(self.prompt, query=query, passage="", highest=self.highest) for query in queries)
        total = sum(n * count_bytes(self.system, prompt) + shown for prompt in prompts)
        return ModelCalls(self.llm, "rerank", n * len(queries), total)


def parse_grade(reply: str, highest: int) -> int | None:
    """Return the first number in a reply, None if there is none from 0 to `highest`."""
    number = re.search(r"\d+", reply)
    grade = int(number[0]) if number and len(number[0]) < 10 else -1
    return grade if 0 <= grade <= highest else None


def _rerank(
    reranker: PointwiseReranker, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
) -> list[CandidateScores]:
    judged = [texts if len(texts) > 1 else () for texts in candidates]
    pairs = ((query, text) for query, texts in zip(queries, judged, strict=True) for text in texts)
    calls = map_threads(lambda pair: _ask(reranker, *pair), pairs, reranker.threads)

    def scores() -> Iterator[CandidateScores]:
        for texts, shown in zip(candidates, judged, strict=True):
            yield _score(reranker, texts, list(islice(calls, len(shown))))

    return list(report_progress(scores(), "reranked", len(queries)))


def _ask(reranker: PointwiseReranker, query: str, text: str) -> Call:
    passage = " ".join(text.split()[: reranker.max_words])
    question = fill_prompt(reranker.prompt, query=query, passage=passage, highest=reranker.highest)
    return ask_llm(reranker.llm, question, reranker.system, "rerank")


def _score(reranker: PointwiseReranker, texts: Sequence[str], calls: Sequence[Call]) -> CandidateScores:
    """Return the scores of candidates: the grade, and a fraction that falls with the rank in the base."""
    n = len(texts)
    scores = 1 - np.arange(1, n + 1) / (n + 1)
    if calls and not any(call.failed for call in calls):
        scores += [parse_grade(call.text, reranker.highest) or 0 for call in calls]
    notes = [{"rank": rank, **call.note} for rank, call in enumerate(calls, start=1)]
    cuts = count_passage_cuts(texts, reranker.max_words)
    log = summarise_calls(calls, cuts, calls=notes) if calls else summarise_calls(calls)
    return CandidateScores(scores.astype(np.float32), log)
