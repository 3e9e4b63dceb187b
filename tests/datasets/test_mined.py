"""Mined datasets: rows with contexts, and the corpus beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from runner.datasets.base import DatasetError
from runner.datasets.mined import Mined

ROW: dict[str, Any] = {
    "id": "suite:one",
    "source": "benchmark_mining",
    "query": "Which class runs agents at once?",
    "positive_ctxs": [
        {"fqn": "p.Parallel", "text": "Runs them at once.", "rank_relevance": 1},
        {"fqn": "p.Agent", "text": "An agent.", "rank_relevance": 2},
    ],
    "negative_ctxs": [{"fqn": "p.Sequential", "text": "Runs them in turn.", "is_hard_negative": True}],
    "metadata": {"suite": "suite", "difficulty": "medium", "expected_answer": "Parallel"},
}
CORPUS = [{"_id": f"p.{name}", "title": name, "text": "..."} for name in ("Parallel", "Agent", "Sequential", "Other")]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "mined.jsonl.corpus.jsonl", CORPUS)
    return write(tmp_path / "mined.jsonl", [ROW])


def test_rows_are_queries_on_the_corpus_beside_them(path: Path) -> None:
    dataset = Mined(path=str(path)).load()
    assert list(dataset.corpus.ids) == [document["_id"] for document in CORPUS]
    assert next(iter(dataset.corpus.contents())) == "Parallel ..."
    assert list(dataset.queries.texts) == [ROW["query"]]
    assert list(dataset.queries.types) == ["suite"]
    assert dataset.queries.metadata[0]["expected_answer"] == "Parallel"
    assert dataset.judgments.documents.tolist() == [0, 1, 2]
    assert dataset.judgments.grades.tolist() == [2, 1, 0]


def test_contexts_alone_are_a_corpus_if_one_says_so(path: Path) -> None:
    dataset = Mined(path=str(path), corpus="contexts").load()
    assert list(dataset.corpus.ids) == ["p.Parallel", "p.Agent", "p.Sequential"]
    assert dataset.corpus.texts[0] == "Runs them at once."


def test_a_corpus_may_be_elsewhere(path: Path, tmp_path: Path) -> None:
    elsewhere = (tmp_path / "mined.jsonl.corpus.jsonl").rename(tmp_path / "elsewhere.jsonl")
    assert len(Mined(path=str(path), corpus=str(elsewhere)).load().corpus) == 4


def test_a_type_may_be_any_field_of_the_metadata(path: Path) -> None:
    assert list(Mined(path=str(path), type_field="difficulty").load().queries.types) == ["medium"]
    with pytest.raises(DatasetError, match=r"dataset.type_field=colour: no row of .* has this field in its metadata"):
        Mined(path=str(path), type_field="colour").load()


def test_rows_of_no_suite_have_no_type(path: Path) -> None:
    write(path, [ROW | {"metadata": {"difficulty": "easy"}}])
    assert list(Mined(path=str(path)).load().queries.types) == [""]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": 1}, "mined.jsonl:1: 'metadata' is not a JSON object"),
        ({"positive_ctxs": None}, "mined.jsonl:1: 'positive_ctxs' is not a list"),
        ({"positive_ctxs": {"fqn": "x"}}, "mined.jsonl:1: 'positive_ctxs' is not a list"),
        ({"positive_ctxs": [{"text": "x"}]}, "mined.jsonl:1, positive_ctxs 1: 'fqn' is missing"),
        (
            {"positive_ctxs": [{"fqn": "p.Agent", "rank_relevance": "first"}]},
            "mined.jsonl:1, positive_ctxs 1: the grade 'first' is not a whole number",
        ),
        (
            {"positive_ctxs": [{"fqn": "gone"}]},
            "1 judged document is not among the 4 documents of the corpus, for example 'gone'",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(path: Path, change: dict[str, Any], message: str) -> None:
    write(path, [ROW | change])
    with pytest.raises(DatasetError, match=re.escape(message)):
        Mined(path=str(path)).load()


def test_a_row_has_nothing_as_its_right_answer_only_where_it_says_so(path: Path) -> None:
    write(path, [ROW | {"positive_ctxs": []}])
    assert Mined(path=str(path)).load().judgments.golds(1).tolist() == [0]
    write(path, [{name: value for name, value in ROW.items() if name != "positive_ctxs"}])
    with pytest.raises(
        DatasetError, match=r"mined.jsonl:1: 'positive_ctxs' is missing; the fields are id, .*, metadata"
    ):
        Mined(path=str(path)).load()


def test_a_question_that_was_rejected_for_want_of_gold_is_none_without_an_answer(path: Path) -> None:
    rejected = {"metadata": {"verdict": "rejected"}}
    write(path, [ROW | rejected])
    assert Mined(path=str(path)).load().judgments.golds(1).tolist() == [2]
    write(path, [ROW, ROW | rejected | {"id": "two", "positive_ctxs": []}])
    with pytest.raises(DatasetError, match=r"mined.jsonl:2: the row was rejected and has no gold"):
        Mined(path=str(path)).load()


def test_negatives_may_be_left_out(path: Path) -> None:
    write(path, [{name: value for name, value in ROW.items() if name != "negative_ctxs"}])
    assert Mined(path=str(path)).load().judgments.grades.tolist() == [2, 1]


def test_a_missing_corpus_is_not_silently_another(path: Path, tmp_path: Path) -> None:
    (tmp_path / "mined.jsonl.corpus.jsonl").unlink()
    with pytest.raises(
        DatasetError, match=r"dataset.corpus=.*: no such file; name the file of documents, or set .*=contexts"
    ):
        Mined(path=str(path)).load()


def test_a_dataset_without_rows_is_refused(path: Path) -> None:
    path.write_text("")
    with pytest.raises(DatasetError, match="has no rows"):
        Mined(path=str(path)).load()
