"""Tables in JSONL, CSV, TSV and Parquet."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.tabular import Tabular

DOCUMENTS = [
    {"key": "d 1", "name": "One", "body": 'a "quoted", text\nof two lines', "note": "n"},
    {"key": "é/2", "name": "", "body": "", "note": ""},
]
QUERIES = [
    {"id": "q1", "text": "first?", "kind": "easy", "gold": ["d 1", "é/2"]},
    {"id": "q2", "text": "", "kind": "hard", "gold": []},
    {"id": "q3", "text": "third?", "kind": "hard", "gold": ["é/2"]},
]
QRELS = [{"query_id": "q1", "document_id": "d 1", "grade": 3}, {"query_id": "q3", "document_id": "é/2", "grade": 0}]
FORMATS = ["jsonl", "csv", "tsv", "parquet"]


def write(path: Path, rows: list[dict[str, Any]], gold_separator: str = "|") -> None:
    """Write rows in the format of the path's ending."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter="," if path.suffix == ".csv" else "\t")
            table.writeheader()
            for row in rows:
                table.writerow({k: gold_separator.join(v) if isinstance(v, list) else v for k, v in row.items()})


def write_all(folder: Path, ending: str) -> None:
    for name, rows in (("docs", DOCUMENTS), ("queries", QUERIES), ("qrels", QRELS)):
        write(folder / f"{name}.{ending}", rows)


def load(folder: Path, ending: str, judged: bool = False, **others: Any) -> Dataset:
    columns = {"document_id": "key", "document_title": "name", "document_text": "body", "query_type": "kind"}
    paths: dict[str, Any] = {"documents": str(folder / f"docs.{ending}"), "queries": str(folder / f"queries.{ending}")}
    if judged:
        paths["qrels"] = str(folder / f"qrels.{ending}")
    return Tabular(**(columns | paths | others)).load()


@pytest.fixture(params=FORMATS)
def ending(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Write the tables in each format, and return its ending."""
    write_all(tmp_path, request.param)
    return str(request.param)


def test_right_answers_may_be_a_column_of_the_queries(tmp_path: Path, ending: str) -> None:
    dataset = load(tmp_path, ending)
    assert dataset.name == "docs"
    assert list(dataset.corpus.ids) == ["d 1", "é/2"]
    assert list(dataset.corpus.titles) == ["One", ""]
    assert list(dataset.corpus.texts) == ['a "quoted", text\nof two lines', ""]
    assert list(dataset.queries.ids) == ["q1", "q2", "q3"]
    assert list(dataset.queries.texts) == ["first?", "", "third?"]
    assert list(dataset.queries.types) == ["easy", "hard", "hard"]
    assert dataset.judgments.golds(3).tolist() == [2, 0, 1]
    assert dataset.judgments.documents.tolist() == [0, 1, 1]


def test_judgments_may_be_a_table_and_then_unjudged_queries_go(tmp_path: Path, ending: str) -> None:
    dataset = load(tmp_path, ending, judged=True)
    assert list(dataset.queries.ids) == ["q1", "q3"]
    assert dataset.judgments.grades.tolist() == [3, 0]
    ungraded = load(tmp_path, ending, judged=True, qrel_grade=None)
    assert ungraded.judgments.grades.tolist() == [1, 1]


def test_text_may_be_of_several_columns(tmp_path: Path, ending: str) -> None:
    dataset = load(tmp_path, ending, document_title=None, document_text=["name", "note"])
    assert list(dataset.corpus.texts) == ["One\nn", ""]


@pytest.mark.parametrize(
    ("settings", "column", "exist"),
    [
        ({"document_text": "content"}, "content", "the columns are key, name, body, note"),
        ({"document_id": "uid"}, "uid", "the columns are key, name, body, note"),
        ({"query_text": "question"}, "question", "the columns are id, text, kind, gold"),
        ({"query_type": "class"}, "class", "the columns are id, text, kind, gold"),
        ({"query_golds": "answers"}, "answers", "the columns are id, text, kind, gold"),
        ({"judged": True, "qrel_document": "doc"}, "doc", "the columns are query_id, document_id, grade"),
        ({"judged": True, "qrel_grade": "label"}, "label", "the columns are query_id, document_id, grade"),
    ],
)
def test_a_missing_column_is_answered_with_those_that_exist(
    tmp_path: Path, ending: str, settings: dict[str, Any], column: str, exist: str
) -> None:
    with pytest.raises(DatasetError, match=rf"{ending}.*'{column}' is missing.*{exist}"):
        load(tmp_path, ending, **settings)


@pytest.mark.parametrize(
    ("settings", "way_out"),
    [
        ({"document_id": "uid"}, "set dataset.document_id to the right column"),
        ({"document_text": ("name", "content")}, "set dataset.document_text to the right column"),
        ({"query_golds": "answers"}, r"set dataset.qrels to the file of judgments, or set dataset.query_golds to the"),
        ({"judged": True, "qrel_grade": "label"}, "set dataset.qrel_grade to the right column"),
    ],
)
def test_a_missing_column_names_the_setting_that_names_it(
    tmp_path: Path, ending: str, settings: dict[str, Any], way_out: str
) -> None:
    with pytest.raises(DatasetError, match=re.escape(way_out)):
        load(tmp_path, ending, **settings)


def test_files_of_beir_are_known_by_their_ids(tmp_path: Path) -> None:
    write_all(tmp_path, "jsonl")
    write(tmp_path / "docs.jsonl", [{"_id": "d1", "title": "", "text": "a"}])
    with pytest.raises(
        DatasetError,
        match=r"'key' is missing; the columns are _id, .*; for a folder in BEIR's format, set dataset=beir",
    ):
        load(tmp_path, "jsonl")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_files_of_lines_may_be_gzipped(tmp_path: Path, ending: str) -> None:
    write_all(tmp_path, ending)
    plain = load(tmp_path, ending)
    for path in list(tmp_path.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert load(tmp_path, ending).fingerprint == load(tmp_path, f"{ending}.gz").fingerprint == plain.fingerprint


def test_a_format_may_be_set_against_the_ending(tmp_path: Path, ending: str) -> None:
    plain = load(tmp_path, ending)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_suffix(".data"))
    assert load(tmp_path, "data", format=ending).fingerprint == plain.fingerprint
    with pytest.raises(
        DatasetError, match=r"dataset.queries=.*queries.data: unknown format; set dataset.format, .* CSV \(.csv\)"
    ):
        load(tmp_path, "data")


def test_a_missing_file_names_its_setting(tmp_path: Path, ending: str) -> None:
    for setting in ("documents", "queries", "qrels"):
        with pytest.raises(DatasetError, match=rf"^dataset\.{setting}=.*nowhere.{ending}: no such file or folder$"):
            load(tmp_path, ending, **dict[str, Any]({setting: str(tmp_path / f"nowhere.{ending}")}))


def test_a_glob_reads_parts_in_order(tmp_path: Path, ending: str) -> None:
    whole = load(tmp_path, ending)
    for number, row in enumerate(DOCUMENTS):
        write(tmp_path / f"part-{number}.{ending}", [row])
    assert load(tmp_path, ending, documents=str(tmp_path / f"part-*.{ending}")).fingerprint == whole.fingerprint


def test_an_answer_may_be_one_id_a_number_or_null(tmp_path: Path) -> None:
    write(tmp_path / "docs.jsonl", [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": "x|y", "text": "c"}])
    queries = [{"id": i, "text": "t", "gold": gold} for i, gold in enumerate([1, "1|2", [1, "2"], None, "", ["x|y"]])]
    write(tmp_path / "queries.jsonl", queries)
    paths: dict[str, Any] = {"documents": str(tmp_path / "docs.jsonl"), "queries": str(tmp_path / "queries.jsonl")}
    assert Tabular(**paths).load().judgments.golds(6).tolist() == [1, 2, 2, 0, 0, 1]
    write(tmp_path / "queries.jsonl", [{"id": 1, "text": "t", "gold": "x|y"}])
    assert Tabular(**paths, gold_separator=None).load().judgments.documents.tolist() == [2]


@pytest.mark.parametrize(("separator", "gold"), [(",", "7, 8"), (", ", "7, 8"), ("|", " 7 | 8 "), (" ", "7 8")])
def test_blanks_around_the_ids_of_right_answers_are_no_part_of_them(tmp_path: Path, separator: str, gold: str) -> None:
    assert create_table(tmp_path, gold, gold_separator=separator).load().judgments.documents.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("gold", "settings", "separator"),
    [
        ("7, 8", {"gold_separator": "|"}, ","),
        ("7;9", {"gold_separator": "|"}, ";"),
        ("9 8", {"gold_separator": "|"}, " "),
        ("7|8", {"gold_separator": ","}, "|"),
        ("8,7;8", {"gold_separator": ","}, ";"),
    ],
)
def test_an_unknown_id_that_contains_known_ones_suggests_a_gold_separator(
    tmp_path: Path, gold: str, settings: dict[str, Any], separator: str
) -> None:
    with pytest.raises(
        DatasetError, match=r"^.*queries.csv:2: 'gold' is '[^']*', which is not a document id"
    ) as refused:
        create_table(tmp_path, gold, **settings).load()
    assert f"set 'dataset.gold_separator=\"{separator}\"'" in str(refused.value)


@pytest.mark.parametrize(("gold", "settings"), [("5, 6", {}), ("pier", {}), ("7, 8", {"gold_separator": None})])
def test_what_holds_no_id_or_is_said_to_be_one_is_an_unknown_document(
    tmp_path: Path, gold: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(
        DatasetError, match=f"1 judged document is not among the 2 documents of the corpus, for example '{gold}'"
    ):
        create_table(tmp_path, gold, **settings).load()


def test_an_unknown_right_answer_is_one_id_if_unknown_ids_are_allowed(tmp_path: Path) -> None:
    source = create_table(tmp_path, "7, 8", unknown_judged="keep", gold_separator="|")
    assert list(source.load().judgments.unknown_documents) == ["7, 8"]


@pytest.mark.parametrize("gold", ["7, 8", "7,8", "7;8", "7|8", "7 8", "7\n8"])
def test_the_separator_is_the_one_whose_parts_are_documents(tmp_path: Path, gold: str) -> None:
    assert create_table(tmp_path, gold).load().judgments.documents.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["docs.csv", "docs.tsv"])
@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
def test_the_delimiter_is_the_one_between_all_columns(tmp_path: Path, name: str, mark: str) -> None:
    source = create_table(tmp_path, "7", documents=str(tmp_path / name))
    (tmp_path / name).write_text(f'"id"{mark}text\r\n7{mark}"a, b; c|d\te"\r\n', encoding="utf-8")
    assert list(source.load().corpus.texts) == ["a, b; c|d\te"]


@pytest.mark.parametrize(("heading", "row"), [("id;text", "7,a"), ("id,text", "7;a"), ("id\ttext", "7 a")])
def test_rows_without_the_delimiter_of_the_header_are_named(tmp_path: Path, heading: str, row: str) -> None:
    source = create_table(tmp_path, "7")
    (tmp_path / "docs.csv").write_text(f"{heading}\n{row}\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"docs\.csv:2: expected 2 columns, as in the header, found 1$"):
        source.load()


def test_quotation_marks_between_tabs_may_belong_to_texts(tmp_path: Path) -> None:
    source = create_table(tmp_path, "7", documents=str(tmp_path / "docs.tsv"))
    (tmp_path / "docs.tsv").write_text('id\ttext\n7\t"Wing" flutter\n8\t5" guns\n', encoding="utf-8")
    assert list(source.load().corpus.texts) == ['"Wing" flutter', '5" guns']


def test_a_column_may_be_called_by_what_is_a_delimiter_elsewhere(tmp_path: Path) -> None:
    source = create_table(tmp_path, "7", document_id="id; text", document_text="id; text")
    (tmp_path / "docs.csv").write_text("id; text\n7\n8\n", encoding="utf-8")
    assert list(source.load().corpus.texts) == ["7", "8"]


def create_table(folder: Path, gold: str, **others: Any) -> Tabular:
    """Write two documents, called by numbers, and a query with its right answers as text."""
    write(folder / "docs.csv", [{"id": "7", "text": "a"}, {"id": "8", "text": "b"}])
    write(folder / "queries.csv", [{"id": "q1", "text": "t", "gold": gold}])
    paths = {"documents": str(folder / "docs.csv"), "queries": str(folder / "queries.csv")}
    return Tabular(**dict[str, Any](paths | others))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("queries.csv", "id,text,gold\nq1,a,1,2\n", "queries.csv:2: expected 3 columns, as in the header, found 4"),
        ("queries.csv", 'id,text,gold\nq1,"a"b,1\n', "queries.csv:2: invalid CSV ("),
        ("queries.csv", 'id,text,gold\nq1,"a,1\n', "queries.csv:2: invalid CSV ("),
        ("queries.csv", "id,text,gold\n,a,1\n", "queries.csv:2: 'id' is ''; an id must be text"),
        ("queries.csv", "id,text,gold\nq1,a,1||2\n", "queries.csv:2: 'gold' is ''; an id must be text"),
        ("queries.csv", b"id,text,gold\nq1,\xfc\xe4\xf6,1\n", "queries.csv:2: not UTF-8 text; save the file as UTF-8"),
        (
            "queries.csv",
            b"id,text,gold\nq1,\xc3\xbc,1\nq2,\xfc,1\n",
            "queries.csv:3: not UTF-8 text, but line 2 is; the file mixes encodings",
        ),
        (
            "qrels.csv",
            "query_id,document_id,grade\nq1,1,high\n",
            "qrels.csv:2: the grade 'high' is not a whole number",
        ),
        ("docs.csv", "", "docs: the dataset has no documents"),
    ],
)
def test_a_broken_line_of_csv_is_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    contents: dict[str, str | bytes] = {"docs.csv": "id,text\n1,a\n\n2,b\n", "queries.csv": "id,text,gold\nq1,a,1\n"}
    for file, text in (contents | {name: content}).items():
        (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    paths: dict[str, Any] = {file.split(".")[0]: str(tmp_path / file) for file in contents | {name: content}}
    paths["documents"] = paths.pop("docs")
    with pytest.raises(DatasetError, match=re.escape(message)):
        Tabular(**paths).load()


def test_a_field_may_be_longer_than_the_csv_modules_limit(tmp_path: Path) -> None:
    write(tmp_path / "docs.csv", [{"id": "1", "text": "long " * 50_000}])
    write(tmp_path / "queries.csv", [{"id": "1", "text": "t", "gold": "1"}])
    dataset = Tabular(documents=str(tmp_path / "docs.csv"), queries=str(tmp_path / "queries.csv")).load()
    assert len(dataset.corpus.texts[0]) == 250_000


def test_an_invalid_parquet_file_or_id_type_is_named(tmp_path: Path) -> None:
    write(tmp_path / "docs.parquet", [{"id": 1.5, "text": "a"}])
    write(tmp_path / "queries.parquet", [{"id": "1", "text": "t", "gold": "1"}])
    paths: dict[str, Any] = {"documents": str(tmp_path / "docs.parquet"), "queries": str(tmp_path / "queries.parquet")}
    with pytest.raises(DatasetError, match=r"docs.parquet, row 1: 'id' is 1.5; an id must be text"):
        Tabular(**paths).load()
    (tmp_path / "docs.parquet").write_bytes(b"PAR2")
    with pytest.raises(DatasetError, match=r"docs.parquet: cannot be read \("):
        Tabular(**paths).load()


@pytest.mark.parametrize(("row", "first"), [(0, 3), (1, 4)])
def test_a_repeated_id_names_both_of_its_places(tmp_path: Path, row: int, first: int) -> None:
    """The text of the first document has two lines."""
    write_all(tmp_path, "csv")
    write(tmp_path / "docs.csv", [*DOCUMENTS, {**DOCUMENTS[row], "body": "again"}])
    message = f"docs.csv:5: the document id {DOCUMENTS[row]['key']!r} is already used at {tmp_path}/docs.csv:{first}; "
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(tmp_path, "csv")


@pytest.mark.parametrize("gold", ["['8', '7']", '["8", "7"]', "['8' '7']"])
def test_gold_in_csv_may_be_a_list_of_texts(tmp_path: Path, gold: str) -> None:
    assert create_table(tmp_path, gold).load().judgments.documents.tolist() == [0, 1]
    without = create_table(tmp_path, gold, documents=None).load()
    assert without.judgments.unknown_documents == ("7", "8")


def test_nested_lists_of_gold_are_one_list(tmp_path: Path) -> None:
    write(tmp_path / "docs.jsonl", [{"id": name, "text": "t"} for name in "abc"])
    write(tmp_path / "queries.jsonl", [{"id": "q", "text": "t", "gold": [["b"], ["c", "b"]]}])
    source = Tabular(documents=str(tmp_path / "docs.jsonl"), queries=str(tmp_path / "queries.jsonl"))
    assert source.load().judgments.documents.tolist() == [1, 2]


@pytest.mark.parametrize(("gold", "documents"), [("(7, 8)", [0, 1]), ("[8, 7]", [0, 1]), ("[]", []), ('{"7": 1}', [0])])
def test_gold_in_csv_may_be_a_literal_of_python_or_json(tmp_path: Path, gold: str, documents: list[int]) -> None:
    assert create_table(tmp_path, gold).load().judgments.documents.tolist() == documents


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".GZ"])
def test_the_name_of_a_dataset_lacks_the_extension_of_a_compression(tmp_path: Path, ending: str) -> None:
    pack = {".bz2": bz2.compress, ".xz": lzma.compress}.get(ending, gzip.compress)
    (tmp_path / f"notes.v2.jsonl{ending}").write_bytes(pack(b'{"id": "a", "text": "red"}\n'))
    (tmp_path / "q.jsonl").write_text('{"id": "q", "text": "red", "gold": ["a"]}\n')
    source = Tabular(documents=str(tmp_path / f"notes.v2.jsonl{ending}"), queries=str(tmp_path / "q.jsonl"))
    assert source.load().name == "notes.v2"
