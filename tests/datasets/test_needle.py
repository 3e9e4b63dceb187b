"""Question sets of every shape name their needles, types and expected answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.datasets.base import EXPECTED_ANSWER, DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.needle import Needle
from runner.testing.datasets import check_source


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    (folder / "light.md").write_text("# Lighthouse\nIt shines for ships.")
    (folder / "deep" / "ferry.md").write_text("It leaves every hour.")
    return folder


def load(documents: Path, content: Any, **settings: Any) -> Dataset:
    path = documents.parent / "questions.json"
    path.write_text(json.dumps(content))
    return Needle(questions=str(path), documents=str(documents), **settings).load()


def golds(dataset: Dataset) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {identifier: [] for identifier in dataset.queries.ids}
    for query, document in zip(dataset.judgments.queries, dataset.judgments.documents, strict=True):
        found[dataset.queries.ids[query]].append(dataset.corpus.ids[document])
    return found


def test_one_needle_for_all_questions(documents: Path) -> None:
    asked = [
        {"id": "q1", "question": "What shines?", "expected_answer": "A tower", "type": "fact", "difficulty": "easy"},
        {"id": "q2", "question": "For whom?", "doc_id": "deep/ferry"},
    ]
    load(documents, {"needle_doc_id": "light", "questions": asked})
    dataset = check_source(Needle(questions=str(documents.parent / "questions.json"), documents=str(documents)))
    assert golds(dataset) == {"q1": ["light"], "q2": ["deep/ferry"]}
    assert list(dataset.queries.texts) == ["What shines?", "For whom?"]
    assert list(dataset.queries.types) == ["fact", ""]
    assert dataset.queries.metadata[0] == {"type": "fact", "difficulty": "easy", EXPECTED_ANSWER: "A tower"}


def test_each_wording_of_a_question_is_its_own_query(documents: Path) -> None:
    asked = {
        "id": "r1", "category": "c", "original_query": "When?", "expected_docs": ["deep/ferry.md", "light"],
        "human_queries": [{"dimension": "casual", "query": "when ferry"}, {"dimension": "problem", "query": "I wait"}],
        "ground_truth_answer": "Hourly",
    }  # fmt: skip
    dataset = load(documents, {"queries": [asked]})
    assert golds(dataset) == {f"r1.{number}": ["deep/ferry", "light"] for number in range(3)}
    assert list(dataset.queries.texts) == ["When?", "when ferry", "I wait"]
    assert list(dataset.queries.types) == ["original", "casual", "problem"]
    assert {metadata[EXPECTED_ANSWER] for metadata in dataset.queries.metadata} == {"Hourly"}


def test_another_field_may_be_the_type(documents: Path) -> None:
    asked = [{"id": "q1", "question": "?", "type": "fact", "difficulty": "easy"}]
    assert list(
        load(documents, {"needle_doc_id": "light", "questions": asked}, type_field="difficulty").queries.types
    ) == ["easy"]


def test_rows_without_ids_are_numbered_and_each_variant_is_a_query(documents: Path) -> None:
    rows = [
        {"doc_id": "light", "realistic_q1": "what shines at night", "realistic_q2": "tower for ships", "answer": "it"},
        {"doc_id": "deep/ferry", "realistic_q1": "when does it leave"},
    ]
    for content in ({"questions": rows}, rows):
        dataset = load(documents, content, answer_fields=("answer",))
        assert golds(dataset) == {"q0001.0": ["light"], "q0001.1": ["light"], "q0002.0": ["deep/ferry"]}
        assert list(dataset.queries.texts) == ["what shines at night", "tower for ships", "when does it leave"]
        assert list(dataset.queries.types) == ["realistic_q1", "realistic_q2", "realistic_q1"]
        assert dataset.queries.metadata[0][EXPECTED_ANSWER] == "it"


def test_a_question_of_a_result_file_names_its_target(documents: Path) -> None:
    asked = {"per_question": [{"id": "a", "question": "what shines", "target_doc_id": "light", "x_rank": 3}]}
    assert golds(load(documents, asked)) == {"a": ["light"]}


def test_the_names_of_fields_are_settings(documents: Path) -> None:
    content = {"rows": [{"key": "a", "ask": "what shines", "source_file": "light.md", "why": "night"}]}
    names = {"lists": ("rows",), "id_field": "key", "text_fields": ("ask",), "gold_fields": ("source_file",)}
    dataset = load(documents, content, **names, answer_fields=("why",))
    assert golds(dataset) == {"a": ["light"]}
    assert dataset.queries.texts[0] == "what shines"
    assert dataset.queries.metadata[0] == {EXPECTED_ANSWER: "night"}


@pytest.mark.parametrize(
    ("content", "settings", "problem"),
    [
        ([], {}, "expected a JSON object with a list of questions"),
        ({"doc_id": "light"}, {}, "expected a JSON object with a list of questions"),
        (
            {"queries": [{"id": "b", "query": "?", "expected_answer": "x"}]},
            {},
            "queries 1: the question has no gold document",
        ),
        (
            {"needle_doc_id": "lamp", "questions": [{"id": "q", "question": "?"}]},
            {},
            "not among the 2 documents of the corpus.*lamp",
        ),
        ({"needle_doc_id": "light", "questions": [{"id": "q"}]}, {}, "'question' or 'query'.* is missing"),
        ({"needle_doc_id": "light", "questions": [{"id": "", "question": "?"}]}, {}, "'id' is ''"),
        ({"needle_doc_id": "light", "questions": [{"id": 1, "question": "?"}]}, {"type_field": "kind"}, "type_field"),
        (
            {"queries": [{"id": 1, "expected_docs": 7, "query": "?"}]},
            {},
            "'expected_docs' is 7; expected a document id",
        ),
        (
            {"queries": [{"id": 1, "doc_id": ["light", 7], "query": "?"}]},
            {},
            r"'doc_id' is \['light', 7\]; expected a document id",
        ),
        ({"needle_doc_id": "light", "questions": []}, {}, "the file has no questions"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(
    documents: Path, content: Any, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DatasetError, match=problem) as refused:
        load(documents, content, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "folder", "queries", "gold"),
    [
        ("needle_questions", "kubernetes", 20, "tasks_administer-cluster_topology-manager"),
        ("needle_questions_adversarial", "kubernetes", 20, "tasks_administer-cluster_topology-manager"),
        ("informed_questions", "kubernetes", 50, "concepts_services-networking_gateway"),
        ("ground_truth_realistic", "cloudflow", 120, "api_reference"),
    ],
)
def test_real_question_sets_load(needle: Path, name: str, folder: str, queries: int, gold: str) -> None:
    made = Needle(questions=str(needle / "questions" / f"{name}.json"), documents=str(needle / f"corpus_{folder}"))
    dataset = made.load()
    assert len(dataset.queries) == queries
    assert golds(dataset)[dataset.queries.ids[0]] == [gold]
    assert all(dataset.queries.types)
    assert all(metadata[EXPECTED_ANSWER] for metadata in dataset.queries.metadata)


def test_a_question_names_passages_by_lines_or_as_spans(documents: Path) -> None:
    questions = [
        {"id": "q1", "question": "What shines?", "doc_id": "light.md:2", "realistic_q1": "light at night"},
        {"id": "q2", "question": "How often?", "spans": [{"doc_id": "deep/ferry.md", "quote": "every hour"}]},
        {"id": "q3", "question": "For whom?", "doc_id": "light", "spans": [{"lines": [1, 2], "grade": 2}]},
    ]
    dataset = load(documents, questions, gold="spans")
    gold = dataset.judgments.spans
    assert gold is not None
    texts = [
        (dataset.queries.ids[query], dataset.corpus.texts[document][start:end])
        for query, document, start, end in zip(gold.queries, gold.documents, gold.starts, gold.ends, strict=True)
    ]
    assert texts == [
        ("q1.0", "It shines for ships."),
        ("q1.1", "It shines for ships."),
        ("q2", "every hour"),
        ("q3", "# Lighthouse\nIt shines for ships."),
    ]
    del questions[1]["spans"]
    whole = load(documents, [*questions[:1], {**questions[1], "doc_id": "deep/ferry"}, questions[2]])
    assert golds(whole) == {"q1.0": ["light"], "q1.1": ["light"], "q2": ["deep/ferry"], "q3": ["light"]}
    with pytest.raises(DatasetError, match=r"question 2: the question names no passage; add 'spans'"):
        load(documents, questions, gold="spans")


def test_files_that_are_not_read_are_named(documents: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.html", "b.html", "c.adoc", "d.ipynb"):
        (documents / name).write_text("<p>Ships at night</p>")
    with caplog.at_level("WARNING", "runner.datasets"):
        load(documents, {"needle_doc_id": "light", "questions": [{"id": 1, "question": "when?"}]})
    (message,) = caplog.messages
    assert "skipped 4 text files that are not Markdown or plain text: 2 .html, 1 .adoc, 1 .ipynb" in message
