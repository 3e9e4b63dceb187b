"""Tables that people wrote for other programs are read without settings: ids, texts, questions and judgments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.tabular import Tabular

PAGES = {
    "tower": ("The tower", "The lighthouse shines for ships at night."),
    "ferry": ("The ferry", "Ferries leave for the islands every hour."),
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def list_rows(dataset: Dataset) -> list[tuple[str, str, int]]:
    names = dataset.corpus.ids
    return [
        (dataset.queries.ids[query], names[document], grade) for query, document, grade in dataset.judgments.list_rows()
    ]


@pytest.mark.parametrize(
    ("column", "others", "expected"),
    [
        ("url", {"title": "The page"}, ["tower", "ferry"]),
        ("source_id", {"title": "The page"}, ["tower", "ferry"]),
        ("Name of place", {"kind": "building"}, ["tower", "ferry"]),
        ("slug", {}, ["tower", "ferry"]),
    ],
)
def test_documents_are_named_by_the_column_whose_values_differ(
    tmp_path: Path, column: str, others: dict[str, str], expected: list[str]
) -> None:
    rows = [{column: name, **others, "what it says": text} for name, (_, text) in PAGES.items()]
    questions = [{"question": "When does it shine?", "expected": "tower"}]
    write(tmp_path, {"pages.json": json.dumps(rows), "questions.json": json.dumps(questions)})
    dataset = Tabular(queries=str(tmp_path / "questions.json"), documents=str(tmp_path / "pages.json")).load()
    assert dataset.corpus.ids == expected
    assert dataset.corpus.texts == [text for _, text in PAGES.values()]
    assert f"2 documents from `what it says`, ids from `{column}`; 1 question" in dataset.reading
    assert list_rows(dataset) == [("q0001", "tower", 1)]


def test_documents_without_names_are_numbered(tmp_path: Path) -> None:
    rows = [{"kind": "page", "body": text} for _, text in PAGES.values()]
    questions = [{"question": "When does it shine?", "quote": PAGES["tower"][1]}]
    write(tmp_path, {"pages.json": json.dumps(rows), "questions.json": json.dumps(questions)})
    dataset = Tabular(queries=str(tmp_path / "questions.json"), documents=str(tmp_path / "pages.json")).load()
    assert dataset.corpus.ids == ["d0001", "d0002"]
    assert list_rows(dataset) == [("q0001", "d0001", 1)]


def test_answers_of_a_faq_are_searched_with_the_settings_of_the_message(tmp_path: Path) -> None:
    faq = "frage,antwort\nWann?,Immer.\nWo geht es zu den Inseln?,Am Hafen fahren die Boote.\n"
    write(tmp_path, {"faq.csv": faq})
    path = str(tmp_path / "faq.csv")
    with pytest.raises(DatasetError) as error:
        Tabular(queries=path).load()
    way_out = f"set dataset.documents={path} dataset.document_text=antwort dataset.query_golds=antwort"
    assert f"to search the answers, {way_out}" in str(error.value)
    dataset = Tabular(queries=path, documents=path, document_text="antwort", query_golds="antwort").load()
    assert list_rows(dataset) == [("q0001", "d0001", 1), ("q0002", "d0002", 1)]


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_of_several_lists_that_with_questions_is_read(
    tmp_path: Path, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    tests = [{"vars": {"question": "When?", "context": PAGES["tower"][1]}, "assert": [{"type": "contains"}]}]
    suite = {"prompts": [{"id": "short", "raw": "Answer."}], "providers": [{"id": "a"}], "tests": tests}
    write(tmp_path, {f"docs/{name}.md": text for name, (_, text) in PAGES.items()})
    write(tmp_path, {f"suite.{ending}": json.dumps(suite) if ending == "json" else yaml.safe_dump(suite)})
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / f"suite.{ending}")).load()
    assert list_rows(dataset) == [("q0001", "tower", 1)]
    assert "the questions are the rows under tests, not those under prompts, providers" in caplog.text


def test_json_lines_may_have_comments(tmp_path: Path) -> None:
    row = json.dumps({"question": "When?", "gold": "tower"})
    write(tmp_path, {f"docs/{name}.md": text for name, (_, text) in PAGES.items()})
    write(tmp_path, {"golden.jsonl": f"// by hand\n# first\n{row}\n  // last\n"})
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "golden.jsonl")).load()
    assert list_rows(dataset) == [("q0001", "tower", 1)]
    write(tmp_path, {"golden.jsonl": f"{row}\n/ no comment\n"})
    with pytest.raises(DatasetError, match=r"golden\.jsonl:2: invalid JSON"):
        QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "golden.jsonl")).load()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.txt", "q1 0 tower 2\nq2 0 ferry 1\n"),
        ("qrels", "q1\ttower.md\t2\nq2\tdocs/ferry.md\t1\n"),
        ("qrels.tsv", "q1\t0\ttower\t2\nq2\t0\tferry\t1\n"),
        ("qrels.csv", "qid,docid,label\nq1,tower,2\nq2,ferry.md,1\n"),
        ("qrels.jsonl", '{"qid": "q1", "docid": "tower", "rel": 2}\n{"qid": "q2", "docid": "ferry", "rel": 1}\n'),
    ],
)
def test_judgments_beside_tables_may_be_in_columns_and_name_files(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, {f"docs/{page}.md": text for page, (_, text) in PAGES.items()})
    write(tmp_path, {"queries.tsv": "q1\twhen does it shine\nq2\tto the islands\n", name: content})
    source = Tabular(
        queries=str(tmp_path / "queries.tsv"), documents=str(tmp_path / "docs"), qrels=str(tmp_path / name)
    )
    dataset = source.load()
    assert dataset.queries.texts == ["when does it shine", "to the islands"]
    assert list_rows(dataset) == [("q1", "tower", 2), ("q2", "ferry", 1)]
    assert [ids[0] for _, ids in source.iter_places("judgment")] == ["q1", "q2"]


def test_a_header_is_no_row(tmp_path: Path) -> None:
    write(tmp_path, {f"docs/{page}.md": text for page, (_, text) in PAGES.items()})
    write(tmp_path, {"queries.tsv": "question1\tgold\nWhen does it shine?\ttower\n"})
    dataset = Tabular(queries=str(tmp_path / "queries.tsv"), documents=str(tmp_path / "docs")).load()
    assert dataset.queries.texts == ["When does it shine?"]


def test_code_is_read_with_the_setting_of_the_message(tmp_path: Path) -> None:
    write(tmp_path, {"docs/tower.py": "def shine(): ...\n", "docs/tower.md": "The lighthouse.\n"})
    write(tmp_path, {"golden.csv": "question,expected_file\nWhere does it shine?,docs/tower.py\n"})
    settings = {"path": str(tmp_path / "docs"), "questions": str(tmp_path / "golden.csv")}
    with pytest.raises(DatasetError) as error:
        QuestionFolder(**settings).load()
    assert "tower.py is a file of the folder that is left out; set 'dataset.extensions=[.py]'" in str(error.value)
    dataset = QuestionFolder(**settings, extensions=(".py",)).load()
    assert list_rows(dataset) == [("q0001", "tower.py", 1)]
    assert list(dataset.corpus.texts) == ["The lighthouse.\n", "def shine(): ...\n"]


def test_gold_in_a_hidden_file_is_refused_with_the_cause(tmp_path: Path) -> None:
    write(tmp_path, {"docs/tower.md": "The lighthouse.\n", "docs/.ferry.md": "The ferry.\n"})
    write(tmp_path, {"golden.csv": "question,expected_file\nWhere?,.ferry.md\n"})
    with pytest.raises(DatasetError, match=r"\.ferry\.md is a file of the folder that is left out; it is hidden"):
        QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "golden.csv")).load()
