"""BEIR's layout."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from tests.strategies.ids import LINE_BREAKING

CORPUS = '{"_id": "d 1", "title": "One", "text": "first"}\n{"id": 2, "text": "second", "metadata": {"a": 1}}\n'
QUERIES = '{"_id": "q/1", "text": "", "metadata": {"type": "short"}}\n{"_id": "q2", "text": "what?"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tiny"
    (made / "qrels").mkdir(parents=True)
    (made / "corpus.jsonl").write_text(CORPUS, encoding="utf-8")
    (made / "queries.jsonl").write_text(QUERIES, encoding="utf-8")
    (made / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq/1\td 1\t2\nq2\t2\t0\n", encoding="utf-8")
    (made / "qrels/dev.tsv").write_text("q2\t0\t2\t1\n", encoding="utf-8")
    return made


def test_a_folder_loads(folder: Path) -> None:
    dataset = Beir(path=str(folder)).load()
    assert (dataset.name, dataset.split) == ("tiny", "test")
    assert list(dataset.corpus.ids) == ["d 1", "2"]
    assert list(dataset.corpus.contents()) == ["One first", "second"]
    assert not dataset.corpus.metadata
    assert (list(dataset.queries.ids), list(dataset.queries.texts)) == (["q/1", "q2"], ["", "what?"])
    assert list(dataset.queries.types) == ["", ""]
    assert list(dataset.queries.metadata) == [{"type": "short"}, {}]
    assert dataset.judgments.grades.tolist() == [2, 0]


@pytest.mark.parametrize("path", [".", "./", "../{name}/."])
def test_the_working_folder_is_read_by_its_dot(folder: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    here, named = (Beir(path=p).load() for p in (path.format(name=folder.name), str(folder)))
    assert (here.name, here.fingerprint) == (named.name, named.fingerprint)


@pytest.mark.parametrize("character", LINE_BREAKING)
@pytest.mark.parametrize("table", ["document", "query"])
def test_an_id_that_would_end_a_column_or_a_line_is_refused_with_its_place(
    folder: Path, table: str, character: str
) -> None:
    file = folder / ("corpus.jsonl" if table == "document" else "queries.jsonl")
    known, identifier = ("d 1", f"d{character}1") if table == "document" else ("q/1", f"q{character}1")
    file.write_text(file.read_text(encoding="utf-8").replace(json.dumps(known), json.dumps(identifier)), "utf-8")
    (folder / "qrels/test.tsv").write_text("q2\t0\t2\t1\n", encoding="utf-8")
    with pytest.raises(DatasetError) as refused:
        Beir(path=str(folder)).load()
    assert str(refused.value) == (
        f"{file}:1: the {table} id {identifier!r} contains {character!r}, which ends a column or a line in other "
        "files; rename it"
    )


def test_another_split_has_its_own_queries(folder: Path) -> None:
    assert list(Beir(path=str(folder), split="dev", name="mine").load().queries.ids) == ["q2"]


def test_judgments_elsewhere_are_enough(folder: Path, tmp_path: Path) -> None:
    query, document = Beir(path=str(folder)).load().queries.ids[0], Beir(path=str(folder)).load().corpus.ids[0]
    shutil.rmtree(folder / "qrels")
    judged = tmp_path / "judged.tsv"
    judged.write_text(f"{query}\t{document}\t2\n")
    dataset = Beir(path=str(folder), extra_qrels=(str(judged),)).load()
    assert (list(dataset.queries.ids), dataset.judgments.grades.tolist()) == ([query], [2])


def test_a_folder_without_qrels_is_only_searched(folder: Path) -> None:
    for file in (folder / "qrels").iterdir():
        file.unlink()
    (folder / "qrels").rmdir()
    with pytest.raises(DatasetError, match=r"qrels has no test.tsv; to search without judgments, .*=keep$"):
        Beir(path=str(folder)).load()
    dataset = Beir(path=str(folder), unjudged_queries="keep").load()
    assert (len(dataset.queries), len(dataset.judgments.grades)) == (2, 0)


def test_an_unknown_split_is_answered_with_those_that_exist(folder: Path) -> None:
    (folder / "qrels/notes.tsv.bak").touch()
    with pytest.raises(DatasetError, match=r"dataset.split=train: .*qrels has no such split; choose dev or test$"):
        Beir(path=str(folder), split="train").load()


def test_files_may_be_gzipped(folder: Path) -> None:
    plain = Beir(path=str(folder)).load()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert Beir(path=str(folder)).load().fingerprint == plain.fingerprint
    with pytest.raises(DatasetError, match=r"choose dev or test$"):
        Beir(path=str(folder), split="train").load()


def test_another_file_of_queries_may_be_named(folder: Path) -> None:
    (folder / "queries.short.jsonl").write_text(QUERIES.replace("what?", "eh?"), encoding="utf-8")
    assert list(Beir(path=str(folder), queries="queries.short.jsonl").load().queries.texts) == ["", "eh?"]
    with pytest.raises(DatasetError, match=r"dataset.queries=.*queries.long.jsonl: no such file"):
        Beir(path=str(folder), queries="queries.long.jsonl").load()


def test_a_field_or_metadata_may_say_of_which_type_a_query_is(folder: Path) -> None:
    assert list(Beir(path=str(folder), type_field="type").load().queries.types) == ["short", ""]
    (folder / "queries.jsonl").write_text(QUERIES.replace('"q2",', '"q2", "type": 7,'), encoding="utf-8")
    assert list(Beir(path=str(folder), type_field="type").load().queries.types) == ["short", "7"]
    with pytest.raises(DatasetError, match=r"dataset.type_field=kind: no query of .* has this field"):
        Beir(path=str(folder), type_field="kind").load()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "1"}\n', "corpus.jsonl:1: 'text' or 'contents' is missing; the fields are _id"),
        (
            "corpus.jsonl",
            CORPUS + '{"_id": "d 1", "text": ""}',
            "corpus.jsonl:3: the document id 'd 1' is",
        ),
        ("corpus.jsonl", "", "tiny: the dataset has no documents"),
        ("queries.jsonl", '{"text": "1"}\n', "queries.jsonl:1: '_id' or 'id' is missing"),
        ("queries.jsonl", QUERIES * 2, "queries.jsonl:3: the query id 'q/1' is"),
        (
            "queries.jsonl",
            '{"_id": "1", "text": "", "metadata": [1]}',
            "queries.jsonl:1: 'metadata' is not a JSON object",
        ),
        ("qrels/test.tsv", "q2\t2\tbest", "test.tsv:1: the grade 'best' is not a whole number"),
        ("qrels/test.tsv", "", "contains no judgments for the 2 queries"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(message)):
        Beir(path=str(folder)).load()


def test_a_file_where_a_folder_is_wanted_is_called_one(folder: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"^dataset.path=.*corpus.jsonl: expected a folder, found a file; name the folder that contains it",
    ):
        Beir(path=str(folder / "corpus.jsonl")).load()


def test_a_missing_folder_or_corpus_is_named(folder: Path) -> None:
    with pytest.raises(DatasetError, match=r"^dataset.path=.*nowhere: no such file or folder$"):
        Beir(path=str(folder / "nowhere")).load()
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"^dataset.path=.*corpus.jsonl: no such file or folder$"):
        Beir(path=str(folder)).load()


def to_parquet(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(path)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return a folder of BEIR in which every judgment is 1."""
    folder = tmp_path / "plain"
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        rows = [{"_id": f"{name[0]}{n}", "text": f"{name} {n}"} for n in range(4)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc1\t1\nq1\tc0\t1\nq1\tc3\t1\n")
    return folder


@pytest.mark.parametrize("content", ["query-id\tcorpus-id\tscore\n", "", "qid\tpid\n"])
def test_qrels_may_lie_beside_the_corpus_without_a_header_or_grades(plain: Path, content: str) -> None:
    expected = Beir(path=str(plain)).load()
    rows = (plain / "qrels/test.tsv").read_text().splitlines()[1:]
    (plain / "qrels/test.tsv").unlink()
    lines = [row.removesuffix("\t1") if "pid\n" in content else row for row in rows]
    (plain / "qrels.tsv").write_text(content + "\n".join(lines))
    assert Beir(path=str(plain)).load().fingerprint == expected.fingerprint
    with pytest.raises(DatasetError, match=r"qrels has no such split; choose test$"):
        Beir(path=str(plain), split="dev").load()


@pytest.mark.parametrize("graded", [True, False])
@pytest.mark.parametrize("parts", ["parts", "split"])
def test_tables_in_parquet_are_those_of_mteb_and_nanobeir(plain: Path, parts: str, graded: bool) -> None:
    expected = Beir(path=str(plain)).load()
    folder = plain.parent / "nano"
    for name in ("corpus", "queries"):
        rows = [json.loads(line) for line in (plain / f"{name}.jsonl").read_text().splitlines()]
        if parts == "parts":
            to_parquet(folder / name / "train-00000-of-00002.parquet", rows[:2])
            to_parquet(folder / name / "train-00001-of-00002.parquet", rows[2:])
        else:  # each split has its own documents and queries
            to_parquet(folder / name / "test-00000-of-00001.parquet", rows)
            to_parquet(folder / name / "other-00000-of-00001.parquet", [{"_id": "x", "text": "another"}])
    judged = [line.split("\t") for line in (plain / "qrels/test.tsv").read_text().splitlines()[1:]]
    qrels = [{"query-id": q, "corpus-id": d, **({"score": int(g)} if graded else {})} for q, d, g in judged]
    to_parquet(folder / "qrels" / "test-00000-of-00001.parquet", qrels)
    dataset = Beir(path=str(folder)).load()
    assert dataset.fingerprint == expected.fingerprint
    to_parquet(folder / "qrels" / "test-00000-of-00001.parquet", [*qrels, {**qrels[0], "corpus-id": "lost"}])
    with pytest.raises(DatasetError, match=r"test-00000-of-00001.parquet, row 4: 1 judged document is not among"):
        Beir(path=str(folder)).load()


def test_the_documents_of_miracl_and_mr_tydi_are_read(plain: Path) -> None:
    expected = Beir(path=str(plain)).load()
    text = (plain / "corpus.jsonl").read_text()
    (plain / "corpus.jsonl").write_text(text.replace('"_id"', '"docid"').replace('"text"', '"contents"'))
    assert Beir(path=str(plain)).load().fingerprint == expected.fingerprint
