"""Pointwise reranking by a language model, which is scripted."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pydantic import ValidationError

from retrievers.base import Corpus
from retrievers.composed.reranked import Reranked
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import ChatError, Reply
from retrievers.llm.model_calls import count_bytes, iter_model_calls
from retrievers.rerankers.pointwise import PointwiseReranker, parse_grade
from retrievers.search import search_cached
from retrievers.store import MemoryStore


@dataclass(frozen=True)
class Grader:
    """Grades a passage by its number, and fails where it has none."""

    sizes: list[int] = field(default_factory=list, repr=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        self.sizes.append(count_bytes(question, system))
        assert purpose == "rerank"
        passage = question.splitlines()[0]
        if "fails" in passage:
            raise ChatError("it failed", calls=1)
        return Reply(f"Grade: {passage.rpartition(' ')[2]}", tokens_in=1)


@pytest.mark.parametrize(
    ("reply", "grade"), [("7", 7), ("**10**/10", 10), ("0", 0), ("11", None), ("none", None), ("9" * 5000, None)]
)
def test_a_grade_is_the_first_number_of_a_reply(reply: str, grade: int | None) -> None:
    assert parse_grade(reply, 10) == grade


def test_candidates_are_ordered_by_grade_then_by_the_base() -> None:
    texts = ["sea 3", "sea 9", "sea 3", "sea none", "sea 12"]
    (result,) = PointwiseReranker(Grader()).open(MemoryStore())(["sea"], [texts], MemoryStore())
    order = sorted(range(5), key=lambda i: -result.scores[i])
    assert order == [1, 0, 2, 3, 4]
    assert [int(score) for score in result.scores] == [3, 9, 3, 0, 0]
    assert result.log.figures["llm_calls"] == 5 and result.log.settled


def test_after_a_failure_a_query_keeps_the_order_of_the_base() -> None:
    rerank = PointwiseReranker(Grader(), threads=2).open(MemoryStore())
    failed, fine, single = rerank(["q", "r", "s"], [["1", "fails"], ["1", "2"], ["5"]], MemoryStore())
    assert failed.scores[0] > failed.scores[1] and not failed.log.settled
    assert fine.scores[0] < fine.scores[1] and fine.log.settled
    assert len(single.scores) == 1 and not single.log.figures["llm_calls"]


def test_no_search_makes_more_or_longer_calls_than_its_plan() -> None:
    grader, corpus = Grader(), Corpus(["a", "b", "c"], ["sea 1", "sea 2", "sea 3"])
    reranker = PointwiseReranker(grader, max_words=2)
    retriever = Reranked(base=BM25(), reranker=reranker, depth=3)
    (planned,) = iter_model_calls(retriever, corpus, ["sea", "the sea"])
    found = search_cached(retriever, corpus, ["sea", "the sea"], 3, MemoryStore())
    assert found.documents.tolist() == [[2, 1, 0], [2, 1, 0]]
    assert planned.calls == len(grader.sizes) == 6
    assert sum(grader.sizes) <= planned.prompt_bytes <= 1.1 * sum(grader.sizes)


def test_a_prompt_without_a_placeholder_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"prompt: the placeholder \{passage\} is missing"):
        PointwiseReranker(Grader(), prompt="{query}")
