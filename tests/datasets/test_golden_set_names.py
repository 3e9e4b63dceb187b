"""Gold that people name in their own words is recognised by the documents that it names, or else a way out is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.question_folder import QuestionFolder

DOCUMENTS = {
    "tower.md": "# Tower\n\nThe lighthouse shines for ships at night.\n",
    "ferry.md": "# Ferry\n\nFerries leave for the islands every hour.\n",
    "museum.md": "# Museum\n\nOld ships are shown.\n",
}


def load(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> Dataset:
    docs = folder / "docs"
    docs.mkdir()
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text)
    questions = folder / "questions.json"
    questions.write_text(json.dumps(rows))
    return QuestionFolder(path=str(docs), questions=str(questions), **settings).load()


def list_gold(dataset: Dataset) -> list[list[str]]:
    golds: list[list[str]] = [[] for _ in range(len(dataset.queries))]
    for query, document, _ in dataset.judgments.list_rows():
        golds[query].append(dataset.corpus.ids[document])
    return golds


@pytest.mark.parametrize(
    "gold",
    [
        {"expect": ["tower"]},
        {"expect_source": "tower#opening-hours"},
        {"expected_source_files": ["tower.md"]},
        {"must_include_numbers": ["tower"], "must_include_tokens": ["ferry"]},
        {"expected_places": ["Tower"], "expected_zones": ["harbour"], "expected_mode": "search"},
        {"source": "tower [05:20]", "type": "lookup"},
        {"contexts": [{"source_doc": "tower.md", "text": "It shines."}]},
        {"evidence": [{"section": "Light", "file_name": "docs/tower.md", "quote": "It shines."}]},
        {"ground_truth": "tower.md"},
        {"expect": "tower.md", "reference_contexts": []},
    ],
)
def test_gold_is_recognised_by_a_qualifier_and_the_documents_that_it_names(
    tmp_path: Path, gold: dict[str, Any]
) -> None:
    rows = [{"question": "When does it shine?", **gold}, {"question": "Where is the airport?"}]
    assert list_gold(load(tmp_path, rows)) == [["tower"], []]


@pytest.mark.parametrize("nothing", ["none", "NOT_FOUND", "N/A", "", [], [""], None])
def test_words_for_nothing_are_no_gold(tmp_path: Path, nothing: object) -> None:
    rows = [{"question": "When does it shine?", "gold": "tower+ferry"}, {"question": "Where?", "gold": nothing}]
    assert list_gold(load(tmp_path, rows)) == [["ferry", "tower"], []]


def test_a_document_named_none_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "none.md").write_text("Nothing is served.")
    (tmp_path / "questions.csv").write_text("question,gold\nWhat is served?,none\n")
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "questions.csv")).load()
    assert list_gold(dataset) == [["none"]]


def test_questions_are_the_only_column_of_texts(tmp_path: Path) -> None:
    rows = [{"case": 1, "user_need": "a light for all ships", "expected_file": "tower.md"}]
    dataset = load(tmp_path, rows)
    assert dataset.queries.texts == ["a light for all ships"]


def test_answers_are_never_read_as_questions(tmp_path: Path) -> None:
    rows = [{"id": "q1", "reference_answer": "It shines for ships at night.", "must_cite_sources": ["tower"]}]
    with pytest.raises(DatasetError, match=r"the column 'text' is missing.*set dataset\.query_text"):
        load(tmp_path, rows)


@pytest.mark.parametrize("name", ["relevant_insufficient", "expected_not", "known_distractors", "negative_sources"])
def test_what_is_no_gold_by_its_name_is_never_gold(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="the column 'gold' is missing") as error:
        load(tmp_path, [{"question": "When does it shine?", name: ["tower"]}])
    assert f"query_golds={name}" not in str(error.value)


def test_a_column_of_zeros_and_ones_is_the_grade(tmp_path: Path) -> None:
    rows = [{"query": "light", "doc_id": name, "relevant": grade} for name, grade in (("tower", 1), ("ferry", 0))]
    dataset = load(tmp_path, rows)
    names = dataset.corpus.ids
    assert [(names[d], grade) for _, d, grade in dataset.judgments.list_rows()] == [("ferry", 0), ("tower", 1)]


def test_rows_of_notes_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"_meta": "Read first."}, {"id": "q1", "question": "When?", "gold": "tower", "_why": "easy"}, {"_meta": ""}]
    dataset = load(tmp_path, rows)
    assert dataset.queries.ids == ["q1"]
    assert "left out 2 rows with only names such as _meta" in caplog.text


def test_a_folder_is_gold_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "docs" / "tcp").mkdir(parents=True)
    for name in ("tcp/close.md", "tcp/open.md", "udp.md"):
        (tmp_path / "docs" / name).write_text("Text.")
    (tmp_path / "questions.csv").write_text("question,expected_any\nHow does it close?,tcp/\n")
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "questions.csv")).load()
    assert "gold from `expected_any` (folders)" in dataset.reading
    assert list_gold(dataset) == [["tcp/close", "tcp/open"]]


def test_a_short_document_is_found_by_its_whole_text(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in (("yes", "Yes."), ("no", "No.")):
        (tmp_path / "docs" / f"{name}.txt").write_text(text)
    (tmp_path / "questions.csv").write_text("question,expected_passage\nIs it open?,Yes.\n")
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "questions.csv")).load()
    assert list_gold(dataset) == [["yes"]]


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ({"place": "tower"}, "if 'place' is the gold, set dataset.query_golds=place"),
        (
            {"answer": "At night.", "ground_truth": "night", "contexts": ["The lighthouse shines for ships"]},
            "if 'contexts' is the gold, set dataset.query_golds=contexts",
        ),
        ({"expected_answer": "At night."}, "'expected_answer' has answers, not documents"),
        ({"retrieved_contexts": ["The lighthouse shines for ships"]}, "set dataset.unjudged_queries=keep"),
        ({"expected_keywords": ["night"]}, "set dataset.unjudged_queries=keep"),
        ({"expected": "It should say: at night."}, "'expected' has answers, not documents"),
        ({"reference_contexts": []}, "set dataset.unjudged_queries=keep"),
    ],
)
def test_questions_without_gold_are_refused_with_a_way_out(tmp_path: Path, row: dict[str, Any], hint: str) -> None:
    with pytest.raises(DatasetError, match="the column 'gold' is missing") as error:
        load(tmp_path, [{"question": "When does it shine?", **row}])
    assert hint in str(error.value)
    assert "retrieved_contexts=" not in str(error.value)


def test_questions_without_gold_can_be_kept_for_judging(tmp_path: Path) -> None:
    rows = [{"question": "When does it shine?", "answer": "At night."}, {"question": "Where?", "answer": "There."}]
    dataset = load(tmp_path, rows, unjudged_queries="keep")
    assert dataset.queries.ids == ["q0001", "q0002"]
    assert list_gold(dataset) == [[], []]
    assert "2 questions from `question`, no gold, answers from `answer`, no ids: numbered" in dataset.reading


def test_a_name_without_blanks_is_no_text_but_one_in_a_script_without_blanks_is(tmp_path: Path) -> None:
    shines = "\u8239\u53ea\u7167\u4eae\u591c\u7a7a"
    (tmp_path / "leave.md").write_text(f"See HR-POL-001 for leave. \u706f\u5854\u4e3a{shines}\u3002")
    (tmp_path / "other.md").write_text("Other.")
    questions = tmp_path / "questions.json"
    for gold, expected in (("HR-POL-001", None), (shines, "leave")):
        questions.write_text(json.dumps([{"question": "When?", "source_docs": [gold]}]))
        source = QuestionFolder(path=str(tmp_path), questions=str(questions))
        if expected is None:
            with pytest.raises(DatasetError, match="for example 'HR-POL-001'"):
                source.load()
        else:
            dataset = source.load()
            assert [dataset.corpus.ids[document] for _, document, _ in dataset.judgments.list_rows()] == [expected]
