"""Stored rankings that are damaged or forged are built again, and that is said once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings
from retrievers.lexical.bm25 import BM25
from retrievers.search import build_rankings_key, search_block, search_cached
from retrievers.store import Arrays, Store
from retrievers.stored_rankings import check_rankings, pack_rankings, unpack_rankings
from retrievers.work import kind_of
from runner.store import disk
from runner.store.disk import DiskStore

QUERIES = ["the lighthouse", "harbour boats"]


def _with(name: str, place: tuple[int, int], value: float) -> Callable[[Arrays], Arrays]:
    def forge(kept: Arrays) -> Arrays:
        changed = kept[name].copy()
        changed[place] = value
        return {**kept, name: changed}

    return forge


FORGED: dict[str, Callable[[Arrays], Arrays]] = {
    "a position beyond the corpus": _with("documents", (0, 0), 10_000),
    "a position below -1": _with("documents", (1, 0), -2),
    "a score of NaN": _with("scores", (0, 0), np.nan),
    "a document twice": lambda kept: {**kept, "documents": np.zeros_like(kept["documents"])},
    "too few queries": lambda kept: {**kept, "documents": kept["documents"][:1], "scores": kept["scores"][:1]},
    "scores of another shape": lambda kept: {**kept, "scores": kept["scores"][:, :1]},
    "one dimension": lambda kept: {**kept, "documents": kept["documents"][0], "scores": kept["scores"][0]},
    "positions as floats": lambda kept: {**kept, "documents": kept["documents"].astype(np.float32)},
    "scores as text": lambda kept: {**kept, "scores": kept["scores"].astype("U8")},
    "no scores": lambda kept: {"documents": kept["documents"]},
    "seconds of other queries": lambda kept: {**kept, "seconds": np.zeros(7, np.float32)},
    "a figure that is an array": lambda kept: {**kept, "diagnostic.x": np.zeros(3)},
    "notes that are no JSON": lambda kept: {**kept, "notes": np.frombuffer(b"{", np.uint8)},
    "notes that are a list": lambda kept: {**kept, "notes": np.frombuffer(b"[1]", np.uint8)},
}


@pytest.mark.parametrize("search", [search_cached, search_block])
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_rankings_are_built_again_and_reported_once(
    forge: Callable[[Arrays], Arrays],
    search: Callable[[BM25, Corpus, list[str], int, Store], Rankings],
    harbour: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    right = search(BM25(), harbour, QUERIES, 5, DiskStore(tmp_path))
    shelf = DiskStore(tmp_path).shelf
    key = build_rankings_key(BM25(), harbour, QUERIES, 5)
    entry = next(e for e in shelf.list_entries() if e.kind.startswith("rankings") and dict(e.parts) == dict(key.parts))
    forged = replace(key, digest=entry.digest, kind=kind_of(entry.kind))
    arrays, _ = shelf.read(forged)
    shelf.discard(forged)
    shelf.write(forged, forge(arrays), {})
    again = search(BM25(), harbour, QUERIES, 5, DiskStore(tmp_path))
    assert again.documents.tolist() == right.documents.tolist()
    assert again.scores.tolist() == right.scores.tolist()
    assert caplog.text.count("; computing it again") == 1
    caplog.clear()
    search(BM25(), harbour, QUERIES, 5, DiskStore(tmp_path))
    assert not caplog.text


def test_rankings_with_notes_and_unknown_documents_pass_the_check() -> None:
    documents, scores = np.array([[0, 3, -1], [-1, -1, -1]], np.int32), np.full((2, 3), -np.inf, np.float32)
    scores[0, :2] = 2.5, -1.0
    rankings = Rankings(
        documents, scores, np.array([0.5, np.nan], np.float32), diagnostics={"x": 0.5}, unknown_ids=("u",)
    )
    kept: dict[str, Any] = dict(pack_rankings(rankings))
    check_rankings(2, 3, kept)
    assert unpack_rankings(kept).unknown_ids == ("u",)
    with pytest.raises(ValueError, match="the position of a document is not from 0 to 2"):
        check_rankings(2, 2, kept)
