from __future__ import annotations

import numpy as np
import pytest

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.blocks import join_blocks
from retrievers.lexical.bm25 import BM25
from retrievers.notes import QueryNote
from retrievers.search import search_block, search_cached
from retrievers.store import MemoryStore


def test_joined_blocks_are_the_rankings_of_one_search() -> None:
    texts = [f"word{i % 7} word{i % 3} text" for i in range(40)]
    corpus = Corpus([f"d{i}" for i in range(40)], texts)
    queries, store = [f"word{i}" for i in range(7)], MemoryStore()
    whole = search_cached(BM25(), corpus, queries, 10, store)
    blocks = []
    for rows in (np.array([5, 0, 3]), np.array([6]), np.array([1, 2, 4])):
        blocks.append((rows, search_block(BM25(), corpus, [queries[row] for row in rows], 10, store)))
    joined = join_blocks(blocks, 7, 10, len(corpus))
    assert np.array_equal(joined.documents, whole.documents) and np.array_equal(joined.scores, whole.scores)
    assert joined.seconds is None and joined.errors is None and joined.settled


def test_joined_blocks_keep_errors_notes_figures_and_unknown_hits() -> None:
    first = Rankings(
        np.array([[0, 5], [6, NOTHING]], dtype=np.int32), np.array([[2, 1], [1, -np.inf]], dtype=np.float32),
        seconds=np.array([1, 2], dtype=np.float32), diagnostics={"llm_calls": 3, "index_recall_at_10": 1.0},
        notes={1: QueryNote({"a": 1})}, unknown_ids=("x", "y"),
    )  # fmt: skip
    second = Rankings(
        np.array([[5, 1]], dtype=np.int32), np.array([[2, 1]], dtype=np.float32), errors={0: "failed"},
        diagnostics={"llm_calls": 1, "index_recall_at_10": 0.4}, settled=False, unknown_ids=("y",),
    )  # fmt: skip
    joined = join_blocks([(np.array([3, 0]), first), (np.array([1]), second)], 4, 2, 5)
    ids = [*(f"d{i}" for i in range(5)), *joined.unknown_ids]
    named = [[ids[document] for document in row if document != NOTHING] for row in joined.documents.tolist()]
    assert named == [["y"], ["y", "d1"], [], ["d0", "x"]]
    assert joined.errors == {1: "failed"} and joined.notes == {0: QueryNote({"a": 1})} and not joined.settled
    assert joined.diagnostics == pytest.approx({"llm_calls": 4, "index_recall_at_10": 0.8})
    assert joined.seconds is not None
    assert np.array_equal(joined.seconds, [2, np.nan, np.nan, 1], equal_nan=True)
