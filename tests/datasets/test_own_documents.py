"""Queries that are documents themselves leave their own results."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from retrievers.base import NOTHING, Rankings
from retrievers.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.datasets.base import Dataset, DatasetError
from runner.datasets.beir import Beir
from runner.datasets.chunking import Tokens
from runner.datasets.own_documents import EXCLUDED, exclude_own, rows_to_exclude

DOCUMENTS = {
    "q1": "How do I learn to sail?",
    "d2": "What is the best way to learn sailing?",
    "q3": "Where does the ferry stop?",
    "7": "Ferries stop at the pier.",
}
QUERIES = {"q1": "How do I learn to  sail?", "q3": "where does the ferry stop?", "7": "learn sailing ferry"}
QRELS = [("q1", "d2", 1), ("q3", "7", 1), ("7", "d2", 1)]


def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    for name, rows in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        lines = [orjson.dumps({"_id": i, "text": text}) for i, text in rows.items()]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in QRELS)
    (tmp_path / "qrels" / "test.tsv").write_text(rows)
    return tmp_path


def ids_of(dataset: Dataset, k: int) -> list[list[str]]:
    depth = min(k + rows_to_exclude(dataset), len(dataset.corpus))
    rankings = search_cached(BM25(), dataset.corpus, dataset.queries.texts, depth, MemoryStore())
    kept = exclude_own(dataset, rankings, k)
    assert kept.documents.shape[1] <= k
    return [[dataset.corpus.ids[i] for i in row if i != NOTHING] for row in kept.documents.tolist()]


def test_a_query_with_the_id_and_the_text_of_a_document_does_not_find_itself(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load()
    assert dataset.own_documents.tolist() == [0, 2, NOTHING]
    assert ids_of(dataset, 1)[:2] == [["d2"], ["7"]]


def test_it_finds_itself_where_that_is_asked_for(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path)), exclude_self="false").load()
    assert ids_of(dataset, 1)[:2] == [["q1"], ["q3"]]


def test_the_id_alone_decides_with_true(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path)), exclude_self="true").load()
    assert dataset.own_documents.tolist() == [0, 2, 3]
    assert "7" not in ids_of(dataset, 4)[2]


def test_a_query_whose_gold_is_itself_keeps_it(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "qrels" / "test.tsv").write_text("q1\tq1\t1\nq3\t7\t1\n")
    assert Beir(path=str(path)).load().own_documents.tolist() == [NOTHING, 2]


def test_excluding_by_id_where_no_id_is_shared_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "queries.jsonl").write_text('{"_id": "x", "text": "sail"}')
    (path / "qrels" / "test.tsv").write_text("x\td2\t1\n")
    with pytest.raises(DatasetError, match="exclude_self=true excludes nothing"):
        Beir(path=str(path), exclude_self="true").load()


def test_all_chunks_of_the_own_document_leave(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load().split_documents(Tokens(size=2, overlap=0))
    assert len(dataset.corpus) > len(dataset.documents)
    for row, own in zip(ids_of(dataset, 5), ("q1", "q3"), strict=False):
        assert row and not any(chunk.startswith(own) for chunk in row)


def test_what_follows_moves_up_and_the_rest_is_unchanged(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load()
    documents = np.array([[0, 1, 2], [3, 2, -1], [3, 1, -1]], dtype=np.int32)
    scores = np.array([[3, 2, 1], [3, 2, -np.inf], [3, 2, -np.inf]], dtype=np.float32)
    kept = exclude_own(dataset, Rankings(documents, scores), 2)
    assert kept.documents.tolist() == [[1, 2], [3, -1], [3, 1]]
    assert kept.scores.tolist() == [[2, 1], [3, -np.inf], [3, 2]]
    assert kept.diagnostics == {EXCLUDED: 2.0}


def test_only_what_is_left_out_changes_the_fingerprint(tmp_path: Path) -> None:
    path = str(folder(tmp_path))
    fingerprints = {mode: Beir(path=path, exclude_self=mode).load().fingerprint for mode in ("auto", "true", "false")}
    assert len(set(fingerprints.values())) == 3
    dataset = Beir(path=path).load()
    without = replace(dataset, queries=replace(dataset.queries, ids=["a", "b", "c"]))
    assert without.fingerprint == replace(without, exclude_self="false").fingerprint


def test_more_documents_than_max_documents_are_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runner.datasets"):
        assert len(Beir(path=str(folder(tmp_path)), max_documents=1).load().corpus) == 2
    (message,) = caplog.messages
    assert message.startswith("dataset.max_documents=1: kept 2 documents, because judged documents are never dropped")
