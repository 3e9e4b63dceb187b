"""Result files of other systems are measured and compared like reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import NOTHING
from runner.config.objects import ConfigError
from runner.evaluation.result import ResultError
from runner.results.golden_reports import read_report
from runner.results.lookup import results_called
from runner.tracking.settings import Tracking

RANKS: dict[str, Any] = {
    "metadata": {"k": 5},
    "per_question": [
        {"id": "q1", "question": "a?", "target_doc_id": "d", "fast_rank": 1, "fast_latency_ms": 2.0, "slow_rank": None},
        {"id": "q2", "question": "b?", "target_doc_id": "e", "fast_rank": None, "slow_rank": 4, "slow_latency_ms": 9},
    ],
}


def write(folder: Path, content: object, name: str = "results.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_ranks_of_several_systems_are_results_of_their_own(tmp_path: Path) -> None:
    fast, slow = read_report(write(tmp_path, RANKS))
    assert (fast.retriever, slow.retriever) == ("fast", "slow")
    assert fast.of("RR").tolist() == [1.0, 0.0]
    assert slow.of("RR").tolist() == [0.0, 0.25]
    assert slow.of("Success@3").tolist() == [0.0, 0.0]
    assert slow.of("Success@5").tolist() == [0.0, 1.0]
    assert fast.timings.each_ms == [2.0, None]


def test_a_csv_file_of_ranks_reads_as_the_same(tmp_path: Path) -> None:
    rows = "question_id,question,target_doc_id,fast_rank,fast_latency_ms\nq1,a?,d,1,2.0\nq2,b?,e,,\n"
    (named,) = results_called(str(write(tmp_path, rows, "ranks.csv")), Tracking(), tmp_path)
    assert named.result.retriever == "fast"
    assert named.result.of("RR").tolist() == [1.0, 0.0]


def test_retrieved_chunks_count_at_their_first_place(tmp_path: Path) -> None:
    chunks = [{"doc_id": "x", "chunk_id": "1"}, {"doc_id": "x", "chunk_id": "2"}, {"doc_id": "d", "chunk_id": "1"}]
    content = {
        "needle_doc_id": "d",
        "results": [{"question_id": "q1", "question": "a?", "category": "C", "retrieved_chunks": chunks}],
    }
    (result,) = read_report(write(tmp_path, content, "other.json"))
    assert result.retriever == "other"
    assert result.of("RR").tolist() == [0.5]
    assert list(result.queries.types) == ["C"]
    assert result.hits is not None
    assert result.hits.ids(0) == ["x", "d"]
    assert (result.hits.rankings.documents[0] != NOTHING).sum() == 2


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"target_doc_id": "", "fast_rank": 1}, "question 1: 'target_doc_id' is missing"),
        ({"target_doc_id": "d", "fast_rank": 0}, "question 1: 'fast_rank' is 0; it must be null or"),
        ({"target_doc_id": "d"}, "so no system has ranks"),
    ],
)
def test_a_mistake_names_the_question(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ResultError, match=problem):
        read_report(write(tmp_path, {"per_question": [{"id": "q", "question": "?", **row}]}))


def test_a_rank_that_is_not_a_number_is_reported_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "question_id,question,target_doc_id,fast_rank\nq1,a?,d,first\n", "ranks.csv")
    with pytest.raises(ResultError, match="line 2: 'fast_rank' is 'first'; it must be a number"):
        read_report(path)


@pytest.mark.parametrize(
    ("content", "has"),
    [
        (
            {"strategy": "hybrid", "results": [{"query": "a?", "hits": 3}] * 400},
            "an object with strategy, results, and 400 rows with query, hits under 'results'",
        ),
        ([{"realistic_q1": "a?", "rank": 2}] * 40, "40 rows with realistic_q1, rank"),
        ({}, "an object with no fields"),
    ],
)
def test_an_unknown_result_file_is_answered_with_the_known_forms(tmp_path: Path, content: object, has: str) -> None:
    with pytest.raises(ConfigError, match=r"results\.json: unknown form of results") as caught:
        results_called(str(write(tmp_path, content)), Tracking(), tmp_path)
    assert f"it has {has}. Known forms are" in str(caught.value)
    assert "'per_question' with 'target_doc_id' and 'SYSTEM_rank'" in str(caught.value)
