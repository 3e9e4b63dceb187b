from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import orjson
import pyarrow
import pytest
from pyarrow import parquet

from runner.datasets.base import DatasetError
from runner.datasets.chunking import Tokens
from runner.datasets.synthetic import Synthetic

CHUNKS: list[dict[str, Any]] = [
    {"doc_id": "ferry", "chunk_id": "0", "title": "Ferry", "chunk": "It leaves at noon."},
    {"doc_id": "ferry", "chunk_id": "1", "chunk": "Tickets are sold on board."},
    {"doc_id": "museum", "chunk_id": "0", "chunk": "It opens at ten."},
]
QUERIES: list[dict[str, Any]] = [
    {
        "query": "when does it leave",
        "expected_doc_ids": ["ferry"],
        "context_chunks": [{"doc_id": "ferry", "chunk_id": "0", "chunk": "It leaves at noon."}],
        "validation": {"query_type": "fact_seeking", "evaluation": "nonllm", "bm25_margin": 0.7},
    },
    {
        "query": "hours",
        "expected_doc_ids": ["museum", "ferry"],
        "context_chunks": [
            {"doc_id": "museum", "chunk_id": "0", "chunk": "It opens at ten."},
            {"doc_id": "ferry", "chunk_id": "0", "chunk": "It leaves at noon."},
        ],
        "validation": {"query_type": "short", "evaluation": "nonllm"},
    },
]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of queries with its chunks beside it."""
    write(tmp_path / "q.jsonl", QUERIES)
    write(tmp_path / "q.jsonl.chunks.jsonl", CHUNKS)
    return tmp_path / "q.jsonl"


def golds(source: Synthetic) -> list[tuple[str, str]]:
    dataset = source.load()
    pairs = zip(dataset.judgments.queries.tolist(), dataset.judgments.documents.tolist(), strict=True)
    return [(dataset.queries.texts[query], dataset.documents.ids[document]) for query, document in pairs]


def test_the_chunks_beside_the_queries_are_what_is_searched(path: Path) -> None:
    dataset = Synthetic(path=str(path)).load()
    assert dataset.name == "q"
    assert list(dataset.corpus.ids) == ["ferry#0", "ferry#1", "museum#0"]
    assert list(dataset.corpus.titles) == ["Ferry", "", ""]
    assert list(dataset.queries.types) == ["fact_seeking", "short"]
    assert dataset.queries.metadata[0]["bm25_margin"] == 0.7
    assert golds(Synthetic(path=str(path))) == [
        ("when does it leave", "ferry#0"),
        ("hours", "ferry#0"),
        ("hours", "museum#0"),
    ]


def test_documents_are_put_together_from_their_chunks(path: Path) -> None:
    source = Synthetic(path=str(path), level="document")
    assert list(source.load().corpus.texts) == [
        "Ferry\nIt leaves at noon.\n\nTickets are sold on board.",
        "It opens at ten.",
    ]
    assert golds(source) == [("when does it leave", "ferry"), ("hours", "ferry"), ("hours", "museum")]


def test_documents_in_a_folder_are_what_is_searched_whole_or_cut(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Ferry\n\nIt leaves at noon. Tickets are sold on board.")
    (folder / "museum.txt").write_text("It opens at ten.")
    whole = Synthetic(path=str(path), corpus=str(folder))
    assert list(whole.load().corpus.ids) == ["ferry", "museum"]
    dataset = whole.load()
    cut = dataset.split_documents(Tokens(size=4))
    assert (len(cut.corpus), cut.documents, cut.judgments) == (4, dataset.corpus, dataset.judgments)
    assert golds(whole) == [("when does it leave", "ferry"), ("hours", "ferry"), ("hours", "museum")]
    with pytest.raises(
        DatasetError, match=r"dataset.level=chunk: .* contains documents, but the queries were generated from chunks"
    ):
        Synthetic(path=str(path), corpus=str(folder), level="chunk").load()


def test_chunks_other_than_those_the_queries_were_generated_from_are_refused(path: Path, tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl", [{**CHUNKS[0], "chunk": "It leaves at one."}, *CHUNKS[1:]])
    with pytest.raises(
        DatasetError, match=r"q.jsonl:1: the text of chunk 'ferry#0' differs from its text in dataset.corpus"
    ):
        Synthetic(path=str(path), corpus=str(tmp_path / "other.jsonl")).load()
    write(tmp_path / "fewer.jsonl", CHUNKS[1:])
    with pytest.raises(
        DatasetError, match="1 judged document is not among the 2 documents of the corpus, for example 'ferry#0'"
    ):
        Synthetic(path=str(path), corpus=str(tmp_path / "fewer.jsonl")).load()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context_chunks": "x"}, "q.jsonl:1: 'context_chunks' is not a list"),
        ({"context_chunks": ["x"]}, "q.jsonl:1: 'context_chunks' is not a list of JSON objects"),
        ({"validation": 3}, "q.jsonl:1: 'validation' is not a JSON object"),
        ({"query": 3}, "q.jsonl:1: 'query' is 3; it must be text"),
    ],
)
def test_a_line_that_is_wrong_is_named(path: Path, change: dict[str, Any], message: str) -> None:
    write(path, [{**QUERIES[0], **change}])
    with pytest.raises(DatasetError, match=message):
        Synthetic(path=str(path)).load()


def test_a_table_that_has_no_chunks_says_which_columns_it_has(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "documents.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"id": "ferry", "text": "It leaves at noon."}]), table)
    with pytest.raises(
        DatasetError, match=r"documents.parquet: 'doc_id' is missing; the fields are id, text. A chunk needs"
    ):
        Synthetic(path=str(path), corpus=str(table)).load()


def test_documents_that_are_expected_are_a_list(path: Path) -> None:
    write(path, [{**QUERIES[0], "expected_doc_ids": "ferry"}])
    with pytest.raises(DatasetError, match="'expected_doc_ids' is not a list"):
        Synthetic(path=str(path), level="document").load()


@pytest.mark.parametrize(
    ("level", "empty", "other"),
    [("chunk", "context_chunks", "expected_doc_ids"), ("document", "expected_doc_ids", "context_chunks")],
)
def test_nothing_is_right_only_where_no_chunk_and_no_document_is_named(
    path: Path, level: Literal["chunk", "document"], empty: str, other: str
) -> None:
    write(path, [QUERIES[0], {**QUERIES[1], "expected_doc_ids": [], "context_chunks": []}])
    assert Synthetic(path=str(path), level=level).load().judgments.golds(2).tolist() == [1, 0]
    write(path, [QUERIES[0], {**QUERIES[1], empty: []}])
    with pytest.raises(DatasetError, match=f"q.jsonl:2: '{empty}' is empty, but '{other}' is not"):
        Synthetic(path=str(path), level=level).load()


def test_chunks_that_are_not_there_are_missed_by_name(path: Path) -> None:
    path.with_name("q.jsonl.chunks.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"dataset.corpus=.*q.jsonl.chunks.jsonl: no such file"):
        Synthetic(path=str(path)).load()


def test_spans_beside_the_queries_judge_documents_joined_from_their_chunks(path: Path) -> None:
    spans = [
        {"query_id": f"s{number:05d}", "doc_id": chunk["doc_id"], "quote": chunk["chunk"]}
        for number, query in enumerate(QUERIES, start=1)
        for chunk in query["context_chunks"]
    ]
    write(path.with_name(f"{path.name}.spans.jsonl"), spans)
    dataset = Synthetic(path=str(path), gold="spans").load()
    assert list(dataset.corpus.ids) == ["ferry", "museum"]
    split = dataset.split_documents(Tokens(size=4))
    gold = [
        (split.queries.ids[query], split.corpus.ids[chunk])
        for query, chunk in zip(split.judgments.queries, split.judgments.documents, strict=True)
    ]
    assert gold == [("s00001", "ferry#0"), ("s00002", "ferry#0"), ("s00002", "museum#0")]
    with pytest.raises(DatasetError, match="spans are passages of whole documents"):
        Synthetic(path=str(path), gold="spans", level="chunk").load()
