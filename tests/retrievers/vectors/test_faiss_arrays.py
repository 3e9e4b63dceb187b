"""An index of FAISS is kept as arrays, which are checked: FAISS's own format is not read from a store."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from retrievers.base import Rankings
from retrievers.store import Arrays
from retrievers.vectors.faiss_arrays import check_parts, fill_index, pack_index
from runner.store import disk
from runner.store.disk import DiskStore
from tests.retrievers.vectors.test_dense import DOCUMENTS, QUERIES, searcher_of

WIDTH = DOCUMENTS.shape[1]
FACTORIES = ["SQ8", "IVF9,Flat", "IVF9,SQ8", "HNSW4,Flat", "HNSW4,SQ8", "PQ4x3np", "PQ8x8np", "PQ2x12np"]


def _build(factory: str, metric: int, vectors: Any) -> faiss.Index:
    index = faiss.index_factory(WIDTH, factory, metric)
    index.train(np.resize(vectors, (4096, WIDTH)))
    index.add(vectors)
    return index


@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
@pytest.mark.parametrize("factory", FACTORIES)
def test_an_index_put_together_again_finds_the_same(factory: str, metric: int) -> None:
    vectors = DOCUMENTS.astype(np.float32)
    whole = _build(factory, metric, vectors)
    parts, empty = pack_index(whole), faiss.index_factory(WIDTH, factory, metric)
    check_parts(empty, len(vectors), parts)
    again = fill_index(empty, parts)
    assert again.ntotal == len(vectors)
    for effort in (1, 9):
        for index in (whole, again):
            if hasattr(index, "nprobe"):
                index.nprobe = effort
            if hasattr(index, "hnsw"):
                index.hnsw.efSearch = 4 * effort
        (scores, ids), (same_scores, same_ids) = (index.search(vectors[:50] + 0.01, 7) for index in (whole, again))
        assert (ids >= 0).sum() > 100
        assert (ids.tobytes(), scores.tobytes()) == (same_ids.tobytes(), same_scores.tobytes())


def _change(name: str, place: Any, value: Any) -> Callable[[Arrays], Arrays]:
    def forge(parts: Arrays) -> Arrays:
        changed = parts[name].copy()
        changed[place(parts) if callable(place) else place] = value
        return {**parts, name: changed}

    return forge


def _find_upper_link(parts: Arrays) -> int:
    """Return the place of a link on the second level: the first one of a vector that has such links, of m=4."""
    node = int(np.argmax(parts["levels"] > 1))
    return int(8 * node + 4 * (parts["levels"][:node] - 1).sum()) + 8


FORGED: dict[str, tuple[str, Callable[[Arrays], Arrays]]] = {
    "codes of fewer vectors": ("pq", lambda parts: {**parts, "codes": parts["codes"][:-1]}),
    "codes of another width": ("pq", lambda parts: {**parts, "codes": parts["codes"][:, 1:]}),
    "codes as floats": ("pq", lambda parts: {**parts, "codes": parts["codes"].astype(np.float32)}),
    "no codes": ("hnsw", lambda parts: {name: part for name, part in parts.items() if name != "codes"}),
    "too few learned numbers": ("pq", lambda parts: {**parts, "learned": parts["learned"][:8]}),
    "learned numbers of NaN": ("pq", _change("learned", 3, np.nan)),
    "a cell beyond the last": ("ivf", _change("cells", 5, 1 << 30)),
    "a negative cell": ("ivf", _change("cells", 5, -1)),
    "centroids of another width": ("ivf", lambda parts: {**parts, "centroids": parts["centroids"][:, 1:]}),
    "a link beyond the last vector": ("hnsw", _change("neighbours", 9, 1 << 30)),
    "a link below -1": ("hnsw", _change("neighbours", 9, -7)),
    "a link to a vector without links on that level": (
        "hnsw",
        lambda parts: _change("neighbours", _find_upper_link, int(np.argmin(parts["levels"])))(parts),
    ),
    "too few links": ("hnsw", lambda parts: {**parts, "neighbours": parts["neighbours"][:-1]}),
    "a level that does not exist": ("hnsw", _change("levels", 0, 1000)),
    "a level of zero": ("hnsw", _change("levels", 0, 0)),
    "an entry beyond the last vector": ("hnsw", lambda parts: {**parts, "entry": np.array(1 << 30, np.int32)}),
    "an entry on a lower level": (
        "hnsw",
        lambda parts: {**parts, "entry": np.array(np.argmin(parts["levels"]), np.int32)},
    ),
    "the format of FAISS": ("hnsw", lambda parts: {"index": np.frombuffer(b"IHNf" + bytes(90), np.uint8)}),
}


def describe_index(index_type: str) -> Any:
    return {"index_type": index_type, "m": 4, "pq_m": 4, "nprobe": 3}


@cache
def search_genuine(index_type: str) -> Rankings:
    return searcher_of(DOCUMENTS, **describe_index(index_type)).search(QUERIES, 5)


@pytest.mark.parametrize(("index_type", "forge"), FORGED.values(), ids=FORGED)
def test_a_forged_index_is_built_again_and_reported_once(
    index_type: str,
    forge: Callable[[Arrays], Arrays],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    settings, genuine = describe_index(index_type), search_genuine(index_type)
    with monkeypatch.context() as patch:
        patch.setattr("retrievers.vectors.dense.pack_index", lambda index: forge(pack_index(index)))
        patch.setattr("retrievers.vectors.dense.fill_index", lambda index, parts: index)
        searcher_of(DOCUMENTS, DiskStore(tmp_path), **settings)
    for _ in range(2):
        again = searcher_of(DOCUMENTS, DiskStore(tmp_path), **settings).search(QUERIES, 5)
        assert again.documents.tobytes() == genuine.documents.tobytes()
    assert caplog.text.count("; computing it again") == 1
