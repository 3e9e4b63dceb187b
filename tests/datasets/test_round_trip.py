"""One dataset, written in every format: it reads back the same, whatever its ids and texts are made of."""

from __future__ import annotations

import csv
import html
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from pyarrow import parquet

from runner.datasets.beir import Beir
from runner.datasets.source import DatasetSource
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec
from tests.datasets.rows import Rows
from tests.strategies.datasets import dataset_rows
from tests.strategies.settings import at_most


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
    return str(path)


def columns(path: Path, rows: list[list[Any]]) -> str:
    path.write_bytes("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
    return str(path)


def as_beir(folder: Path, data: Rows) -> DatasetSource:
    (folder / "qrels").mkdir()
    lines(folder / "corpus.jsonl", data.document_rows())
    lines(folder / "queries.jsonl", data.query_rows())
    columns(
        folder / "qrels/test.tsv",
        [["query-id", "corpus-id", "score"], *([q, d, g] for (q, d), g in data.qrels.items())],
    )
    return Beir(path=str(folder))


def as_jsonl(folder: Path, data: Rows) -> DatasetSource:
    return Tabular(
        documents=lines(folder / "d.jsonl", data.document_rows()),
        queries=lines(folder / "q.jsonl", data.query_rows()),
        qrels=lines(folder / "r.jsonl", data.qrel_rows()),
        document_title="title",
    )


def as_csv(folder: Path, data: Rows) -> DatasetSource:
    def table(path: Path, rows: list[dict[str, Any]]) -> str:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
        return str(path)

    return Tabular(
        documents=table(folder / "d.csv", data.document_rows()),
        queries=table(folder / "q.tsv", data.query_rows()),
        qrels=table(folder / "r.csv", data.qrel_rows()),
        document_title="title",
    )


def as_parquet(folder: Path, data: Rows) -> DatasetSource:
    def table(path: Path, rows: list[dict[str, Any]]) -> str:
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return str(path)

    return Tabular(
        documents=table(folder / "d.parquet", data.document_rows()),
        queries=table(folder / "q.parquet", data.query_rows()),
        qrels=table(folder / "r.parquet", data.qrel_rows()),
        document_title="title",
    )


def as_trec(folder: Path, data: Rows) -> DatasetSource:
    documents = [
        f"<DOC>\n<DOCNO> {html.escape(i)} </DOCNO>\n<TITLE>{html.escape(title)}</TITLE>\n"
        f"<TEXT>\n{html.escape(text)}\n</TEXT>\n</DOC>\n"
        for i, (title, text) in data.documents.items()
    ]
    (folder / "d.sgml").write_bytes("".join(documents).encode())
    return Trec(
        documents=str(folder / "d.sgml"),
        topics=lines(folder / "q.jsonl", data.query_rows()),
        qrels=columns(folder / "r.qrels", [[q, 0, d, grade] for (q, d), grade in data.qrels.items()]),
    )


@pytest.mark.parametrize("write", [as_jsonl, as_csv, as_parquet, as_trec])
@settings(max_examples=at_most(30))
@given(data=dataset_rows())
def test_a_dataset_is_the_same_in_every_format(write: Callable[[Path, Rows], DatasetSource], data: Rows) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        beir, same = as_beir(Path(one), data).load(), write(Path(other), data).load()
    assert list(same.corpus.ids) == list(beir.corpus.ids) == list(data.documents)
    assert list(same.corpus.texts) == list(beir.corpus.texts) == [text for _, text in data.documents.values()]
    assert list(same.queries.ids) == [query for query in data.queries if any(query == q for q, _ in data.qrels)]
    assert same.fingerprint == beir.fingerprint
