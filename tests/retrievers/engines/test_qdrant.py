"""Qdrant's engine as a retriever: exactly what `dense` finds, and indexes against the exact."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers.base import NOTHING, RetrieverError
from retrievers.dense import Dense
from retrievers.engines.folders import pack_folder, unpack_folder
from retrievers.engines.qdrant import Qdrant
from retrievers.fusion import Hybrid
from retrievers.search import list_engines, search_cached
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.vector_search import VectorSearcher
from runner.store.disk import DiskStore
from tests.retrievers.engines.builds import Builds
from tests.retrievers.test_dense import DOCUMENTS, METRICS, QUERIES, Numbers, corpus_of, rows_of, texts_of

pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed: pip install 'retrieval-runner[qdrant]'")


def searcher_of(vectors: NDArray[Any], store: Store | None = None, **own: Any) -> VectorSearcher:
    return Qdrant(Numbers(), **own).index(corpus_of(vectors), store or MemoryStore())


def recall(searcher: VectorSearcher, k: int = 10) -> float:
    return searcher.diagnostics(QUERIES, k, NoStore())[f"index_recall_at_{k}"]


small = st.integers(-2, 2)


@METRICS
@settings(max_examples=8)
@given(
    documents=arrays(np.int64, st.tuples(st.integers(1, 60), st.just(3)), elements=small),
    queries=arrays(np.int64, st.tuples(st.integers(1, 4), st.just(3)), elements=small),
    k=st.integers(1, 20),
)
def test_flat_is_dense_with_its_ties(metric: Any, documents: NDArray[Any], queries: NDArray[Any], k: int) -> None:
    expected = Dense(Numbers(), metric=metric).index(corpus_of(documents), MemoryStore()).search(texts_of(queries), k)
    rankings = searcher_of(documents, metric=metric, index_type="flat").search(texts_of(queries), k)
    assert rankings.documents.tobytes() == expected.documents.tobytes()
    assert rankings.scores.tobytes() == expected.scores.tobytes()


@METRICS
def test_flat_is_dense_among_many_with_ties_past_the_cutoff(metric: Any) -> None:
    documents = np.concatenate([DOCUMENTS, np.tile(DOCUMENTS[:2], (200, 1))])
    corpus, queries = corpus_of(documents), [*QUERIES, *texts_of(DOCUMENTS[:2])]
    expected = Dense(Numbers(), metric=metric).index(corpus, MemoryStore()).search(queries, 25)
    rankings = Qdrant(Numbers(), metric=metric, index_type="flat").index(corpus, MemoryStore()).search(queries, 25)
    assert rankings.documents.tobytes() == expected.documents.tobytes()
    assert rankings.scores.tobytes() == expected.scores.tobytes()
    assert searcher_of(documents, index_type="flat").diagnostics(queries, 10, NoStore()) == {}


@METRICS
def test_more_candidates_find_more(metric: Any) -> None:
    store, own = MemoryStore(), {"metric": metric, "m": 4, "ef_construct": 16}
    little, much = (recall(searcher_of(DOCUMENTS, store, **own, ef_search=ef)) for ef in (1, 400))
    assert 0.1 < little < much
    assert much > 0.9


def test_scores_of_a_graph_are_those_of_the_metric() -> None:
    for metric in ("cosine", "dot", "l2"):
        exact, nearly = (
            searcher_of(DOCUMENTS, metric=metric, index_type=index_type, ef_search=2000).search(QUERIES, 5)
            for index_type in ("flat", "hnsw")
        )
        np.testing.assert_allclose(nearly.scores[:, 0], exact.scores[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("quantization", ["int8", "binary", "product_x16", "turbo_4bit"])
def test_compression_loses_hits_and_rescoring_more_candidates_finds_them(quantization: Any) -> None:
    store, own = MemoryStore(), {"index_type": "flat", "quantization": quantization}
    rough, rescored = (
        recall(searcher_of(DOCUMENTS, store, **own, rescore=rescore, oversampling=times))
        for rescore, times in ((False, None), (True, 20.0))
    )
    assert rough < rescored
    assert rescored > 0.8


def test_search_settings_share_an_index_and_build_settings_do_not() -> None:
    store, documents = Builds(), DOCUMENTS[::4]
    corpus = corpus_of(documents)
    for own in ({"ef_search": 10}, {"ef_search": 20}, {"ef_search": 40}, {"rescore": True, "oversampling": 2.0}):
        search_cached(Qdrant(Numbers(), **own), corpus, QUERIES, 10, store)  # type: ignore[arg-type]  # any settings
    assert store.count["qdrant index"] == 1
    assert store.count["rankings"] == 4
    assert store.count["exact neighbours"] == 1
    for own in ({"m": 8}, {"ef_construct": 32}, {"quantization": "int8"}, {"metric": "dot"}, {"index_type": "flat"}):
        search_cached(Qdrant(Numbers(), **own), corpus, QUERIES, 10, store)  # type: ignore[arg-type]  # any settings
    assert store.count["qdrant index"] == 6


def test_a_flat_index_has_no_settings_of_a_graph() -> None:
    store = Builds()
    for m in (8, 16):
        searcher_of(DOCUMENTS[::10], store, index_type="flat", m=m)
    assert store.count["qdrant index"] == 1


def test_rankings_and_indexes_depend_on_the_version_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, retriever, keys = corpus_of(DOCUMENTS[::10]), Qdrant(Numbers()), set()
    assert list_engines(Hybrid({"a": retriever, "b": Dense(Numbers())})) == [retriever.engine_version]
    for version in ("qdrant-edge-py 0.9.0", "qdrant-edge-py 0.9.1"):
        monkeypatch.setattr("retrievers.engines.qdrant.read_engine_version", lambda version=version: version)
        work = retriever.plan(corpus, QUERIES, 5, NoStore())
        keys |= {work.key.digest, *(needed.key.digest for needed in work.needs if needed.name == "index")}
    assert len(keys) == 4


def test_an_index_on_disk_is_opened_and_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, retriever = corpus_of(DOCUMENTS), Qdrant(Numbers(), ef_search=16)
    monkeypatch.setattr("runner.store.disk.WORTH_KEEPING_S", 0.0)
    first = retriever.index(corpus, DiskStore(tmp_path)).search(QUERIES, 10)
    monkeypatch.setattr("retrievers.engines.qdrant.build_shard", lambda *_: pytest.fail("built again"))
    again = retriever.index(corpus, DiskStore(tmp_path)).search(QUERIES, 10)
    assert again.documents.tobytes() == first.documents.tobytes()
    (entry,) = (entry for entry in DiskStore(tmp_path).list_entries() if entry.kind == "qdrant index")
    assert entry.parts["m"] == "16"
    assert "ef_search" not in entry.parts
    assert entry.bytes < 20_000_000


def test_an_open_index_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    searcher = searcher_of(DOCUMENTS[::10], NoStore())
    assert len(list(tmp_path.iterdir())) == 1
    del searcher
    assert list(tmp_path.iterdir()) == []


def test_texts_without_direction_find_nothing_and_are_not_found() -> None:
    documents = np.array([[0, 0], [1, 0], [0, 0], [-1, 0]])
    for index_type in ("flat", "hnsw"):
        rankings = searcher_of(documents, index_type=index_type, metric="dot").search(["0 0", "2 0"], 4)
        assert rows_of(rankings.documents) == [[], [1, 3]]
    assert (searcher_of(np.zeros((2, 2))).search(["1 0"], 3).documents == NOTHING).all()


@pytest.mark.parametrize("wrong", [{"m": 1}, {"ef_search": 0}, {"quantization": "int4"}, {"oversampling": 0.5}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Qdrant(Numbers(), **wrong)


def test_an_error_of_the_engine_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left\n on device")

    monkeypatch.setattr("retrievers.engines.qdrant_shard.unpack_folder", fail)
    with pytest.raises(RetrieverError, match=r"^Qdrant's engine: No space left on device \(temporary files: .*\)$"):
        searcher_of(DOCUMENTS[::10])


def test_a_folder_is_packed_and_unpacked(tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    (there / "a" / "b").mkdir(parents=True)
    (there / "a" / "b" / "c.bin").write_bytes(bytes(range(256)))
    (there / "empty").touch()
    (there / "reserved").write_bytes(b"x" + bytes((3 << 20) - 1))
    packed = pack_folder(there)
    assert json.loads(packed["names"].tobytes()) == [["a/b/c.bin", 256], ["empty", 0], ["reserved", 3 << 20]]
    assert packed["file_2"].nbytes == 1 << 20
    back.mkdir()
    unpack_folder(packed, back)
    assert (back / "a" / "b" / "c.bin").read_bytes() == bytes(range(256))
    assert (back / "empty").read_bytes() == b""
    assert (back / "reserved").read_bytes() == (there / "reserved").read_bytes()
