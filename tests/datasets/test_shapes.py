"""Whatever the table of shapes names is recognised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from runner.datasets.base import DatasetError
from runner.datasets.columns import find_column, rank_gold_columns
from runner.datasets.document_texts import FILE_READERS, READERS
from runner.datasets.judged import JudgedFiles
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.ratings import QrelsFormat, recognise_format
from runner.datasets.rows import RowFormat, open_table
from runner.datasets.shapes import SHAPES, TITLES, describe, map_keys, map_signs, select
from runner.datasets.tabular import Tabular

ROWS = [{"id": "q1", "question": "When?"}]
TABLES = {
    "jsonl": '{"id": "q1", "question": "When?"}\n',
    "json": json.dumps(ROWS),
    "yaml": yaml.safe_dump(ROWS),
    "csv": "id,question\nq1,When?\n",
    "tsv": "id\tquestion\nq1\tWhen?\n",
}
GOLDS = {
    "ids": ["d17"],
    "files": ["docs/guide/tower"],
    "places": ["docs/guide/tower"],
    "folders": ["docs/guide/tower"],
    "titles": ["docs/guide/tower"],
    "texts": ["docs/guide/tower"],
    "several": ["d17", "docs/guide/tower"],
    "nothing": [],
}
JUDGMENTS: dict[str, tuple[str, object]] = {
    "beir": ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
    "trec": ("qrels.txt", "q1 0 d1 1\n"),
    "pairs": ("qrels.txt", "q1 d1\n"),
    "table": ("qrels.csv", "query_id,document_id,grade\nq1,d1,1\n"),
    "ratings": ("ratings.csv", "query,docid,rating\nq1,d1,1\n"),
    "quepid": ("case.json", {"query_doc_pairs": []}),
    "rank_eval": ("requests.json", {"requests": []}),
    "opensearch": ("judgments.json", {"judgmentRatings": []}),
    "ubi": ("log.ndjson", {"action_name": "click", "query_response_hit_ids": []}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs/guide").mkdir(parents=True)
    (tmp_path / "docs/guide/tower.md").write_text("# The lighthouse\n\nThe lighthouse shines for ships.")
    (tmp_path / "d17.txt").write_text("Ferries leave for the islands.")
    return tmp_path


def read_gold(folder: Path, question: object, ending: str = "json") -> list[str]:
    path = folder / f"questions.{ending}"
    path.write_text(json.dumps(question))
    dataset = QuestionFolder(path=str(folder), questions=str(path), unjudged_queries="keep").load()
    return [dataset.corpus.ids[document] for _, document, _ in dataset.judgments.list_rows()]


def test_a_row_belongs_to_a_documented_group_and_names_are_unique() -> None:
    assert {shape.group for shape in SHAPES} == TITLES.keys()
    assert len({(shape.group, shape.key) for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize(("ending", "kind"), [*map_signs("table").items()])
def test_a_table_is_recognised_by_its_extension(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"questions{ending}"
    if kind in TABLES:
        path.write_text(TABLES[kind])
    elif kind == "parquet":
        pytest.importorskip("pandas").DataFrame(ROWS).to_parquet(path)
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (["id", "question"], ["q1", "When?"]):
            book.active.append(row)
        book.save(path)
    table = open_table(path, "queries")
    assert [dict(record.fields) for record in table.read(None)] == ROWS


def test_formats_and_readers_are_those_of_the_table() -> None:
    assert {*get_args(RowFormat)} == map_keys("table").keys()
    assert {**READERS, **FILE_READERS}.keys() == map_signs("document").keys()
    named = {"beir": "qrels", "trec": "qrels", "pairs": "qrels"}
    assert {named.get(key, key) for key in map_keys("judgments")} == {*get_args(QrelsFormat)}


def test_an_unknown_format_names_all(tmp_path: Path) -> None:
    (tmp_path / "questions.ods").write_text("")
    with pytest.raises(DatasetError) as failure:
        open_table(tmp_path / "questions.ods", "queries")
    assert str(failure.value).endswith(describe("table"))
    assert "CSV (.csv)" in describe("table")


@pytest.mark.parametrize(
    ("setting", "name"), [(key, name) for key, names in map_keys("column").items() for name in names]
)
def test_a_column_is_recognised_by_its_name(setting: str, name: str) -> None:
    assert find_column(setting, [name.upper().replace("_", " ")], lambda _: "") == name.upper().replace("_", " ")


def test_a_column_of_gold_is_recognised_by_its_name() -> None:
    names, qualifiers, things = (shape.signs for shape in select("gold column"))
    combined = [f"{qualifier}_{thing}s" for qualifier in qualifiers for thing in things]
    for name in (*names, *combined, *(thing for thing in things if thing != "id")):
        assert rank_gold_columns([name], ())[0] == [name]


@pytest.mark.parametrize(("key", "gold"), [(shape.key, gold) for shape in select("gold") for gold in shape.signs])
def test_an_example_of_gold_names_its_documents(folder: Path, key: str, gold: str) -> None:
    others = {"question": "How?", "expected_source": "d17.txt"}
    rows = [others, {"question": "When?", "expected_source": gold}]
    assert read_gold(folder, rows)[1:] == GOLDS[key]


@pytest.mark.parametrize("shape", select("golden set"), ids=lambda shape: shape.key)
def test_an_example_of_a_golden_set_is_read(folder: Path, shape: Any) -> None:
    assert read_gold(folder, json.loads(shape.about)) == ["docs/guide/tower"]
    named = {part for sign in shape.signs for part in sign.split(".")}
    assert {part for part in named if f'"{part}"' not in shape.about} <= {"reference"}


@pytest.mark.parametrize("key", JUDGMENTS)
def test_judgments_are_recognised(tmp_path: Path, key: str) -> None:
    name, content = JUDGMENTS[key]
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
    if key in ("beir", "trec", "pairs", "table"):
        dataset = JudgedFiles(qrels=str(path)).load()
        assert (dataset.queries.ids, dataset.judgments.list_rows()) == (["q1"], [(0, 0, 1)])
    else:
        assert recognise_format(path) == key


def test_a_golden_set_in_one_line_is_read_whatever_the_format_says(tmp_path: Path) -> None:
    (shape,) = (shape for shape in select("golden set") if shape.key == "llamaindex")
    (tmp_path / "set.json").write_text(shape.about)
    for format in (None, "json", "jsonl"):
        dataset = Tabular(queries=str(tmp_path / "set.json"), format=format).load()
        assert (dataset.corpus.ids, dataset.judgments.list_rows()) == (["tower"], [(0, 0, 1)])
