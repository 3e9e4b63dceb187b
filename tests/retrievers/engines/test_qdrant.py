"""Qdrant's engine as a retriever: exactly what `dense` finds, and indexes against the exact."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, QueryText, RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.base import Embedded, Vectors
from retrievers.engines.folders import pack_folder, unpack_folder
from retrievers.engines.qdrant import Qdrant
from retrievers.engines.qdrant_shard import Shard, ShardSettings, _configure
from retrievers.filters import parse_filter
from retrievers.search import list_engines, search_cached
from retrievers.store import Arrays, MemoryStore, NoStore, Store
from retrievers.vectors.dense import Dense
from retrievers.vectors.vector_search import VectorSearcher
from runner.store import disk
from runner.store.disk import DiskStore
from tests.retrievers.engines.builds import Builds
from tests.retrievers.vectors.test_dense import DOCUMENTS, METRICS, QUERIES, Numbers, corpus_of, rows_of, texts_of
from tests.strategies.vectors import integer_vectors

pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed: pip install '.[qdrant]'")


def searcher_of(vectors: NDArray[Any], store: Store | None = None, **own: Any) -> VectorSearcher:
    searcher = Qdrant(Numbers(), **own).index(corpus_of(vectors), store or MemoryStore())
    assert isinstance(searcher, VectorSearcher)
    return searcher


def recall(searcher: VectorSearcher, k: int = 10) -> float:
    return searcher.diagnostics(QUERIES, k, NoStore())[f"index_recall_at_{k}"]


@dataclass(frozen=True)
class WordLengths:
    """An encoder: the numbers of words of a text by length. A text without words has no direction."""

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        return Embedded(
            [self._embed(list(corpus.contents()))], lambda texts, _: (self._embed(texts), np.zeros(len(texts)))
        )

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), 9), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, min(len(word), 9) - 1] += 1
        return vectors


@METRICS
@settings(max_examples=8)
@given(documents=integer_vectors(60), queries=integer_vectors(4), k=st.integers(1, 20))
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
    assert list_engines(Hybrid({"a": retriever, "b": Dense(Numbers())})) == [retriever.read_engine_version()]
    for version in ("qdrant-edge-py 0.9.0", "qdrant-edge-py 0.9.1"):
        monkeypatch.setattr("retrievers.engines.qdrant.read_engine_version", lambda version=version: version)
        work = retriever.plan(corpus, QUERIES, 5, NoStore())
        keys |= {work.key.digest, *(needed.key.digest for needed in work.needs if needed.title == "index")}
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


def test_an_index_is_built_before_all_vectors_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building takes most memory: two copies of the vectors and the graph, in the engine."""
    steps = []
    for module, step in (("engines.qdrant", "build_shard"), ("vectors.vector_search", "build_points")):
        work = getattr(importlib.import_module(f"retrievers.{module}"), step)
        note = lambda *given, step=step, work=work: steps.append(step) or work(*given)  # noqa: E731 (bound)
        monkeypatch.setattr(f"retrievers.{module}.{step}", note)
    searcher_of(DOCUMENTS[::10])
    assert steps == ["build_shard", "build_points"]


def test_an_open_index_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    searcher = searcher_of(DOCUMENTS[::10], NoStore())
    assert len(list(tmp_path.iterdir())) == 1
    del searcher
    assert list(tmp_path.iterdir()) == []


def test_zero_vectors_retrieve_nothing_and_are_never_retrieved() -> None:
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


# Words

SENTENCES = Corpus(
    [f"d{i}" for i in range(6)],
    [
        "the red boats",
        "a blue boat at sea",
        "sea sea, the sea",
        "",
        "red",
        "a boat in a harbour by the sea, the red sea",
    ],
)


def score_by_hand(query: str, k1: float, b: float, mean_length: float | None = None) -> dict[int, float]:
    """Return the scores of BM25 as Robertson and Zaragoza (2009) define it, with Lucene's IDF."""
    stems = {"boats": "boat", "the": "", "a": "", "at": "", "in": "", "by": ""}
    texts = [[stems.get(word, word) for word in text.replace(",", "").split()] for text in SENTENCES.texts]
    texts = [[word for word in text if word] for text in texts]
    lengths = [len(text) for text in texts if text]  # the engine leaves out documents without words
    mean, scores = mean_length or np.mean(lengths), {}
    for place, text in enumerate(texts):
        for word in query.split():
            n = sum(word in other for other in texts)
            if tf := text.count(word):
                idf = np.log(1 + (len(lengths) - n + 0.5) / (n + 0.5))
                weight = idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(text) / mean))
                scores[place] = scores.get(place, 0.0) + weight
    return scores


@pytest.mark.parametrize(
    "own",
    [
        {"rank": "text"},
        {"rank": "text", "k1": 0.9, "b": 0.4},
        {"rank": "bm25"},
        {"rank": "bm25", "k1": 0.9, "b": 0.4},
        {"rank": "bm25", "mean_length": 256.0},
    ],
)
def test_words_are_scored_by_bm25(own: dict[str, Any]) -> None:
    rankings = Qdrant(**own).index(SENTENCES, MemoryStore()).search(["sea boat", "red", "zeppelin"], 6)
    k1, b = own.get("k1", 1.2), own.get("b", 0.75)
    for row, query in enumerate(["sea boat", "red", "zeppelin"]):
        expected = score_by_hand(query, k1, b, own.get("mean_length"))
        hits = {d: s for d, s in zip(rankings.documents[row].tolist(), rankings.scores[row].tolist(), strict=True)}
        hits.pop(NOTHING, None)
        assert hits == pytest.approx(expected, rel=1e-5)


def test_a_language_decides_which_words_are_equal() -> None:
    for rank in ("text", "bm25"):
        found = {
            language: rows_of(
                Qdrant(rank=rank, language=language)
                .index(SENTENCES, MemoryStore())
                .search(["boats", "the"], 6)
                .documents
            )
            for language in ("english", None)
        }
        assert [sorted(row) for row in found["english"]] == [[0, 1, 5], []]
        assert [sorted(row) for row in found[None]] == [[0], [0, 2, 5]]


def test_ties_at_the_cutoff_are_broken_by_id() -> None:
    ids = [f"d{i:03}" for i in range(100)]
    for rank in ("text", "bm25"):
        searcher = Qdrant(rank=rank).index(Corpus(ids, ["a red boat at sea"] * 100), MemoryStore())
        assert [ids[d] for d in searcher.search(["red boat"], 5).documents[0]] == ids[:-6:-1]


def test_only_k1_and_b_of_a_text_index_are_search_settings() -> None:
    for rank, indexes in (("text", 1), ("bm25", 3)):
        store = Builds()
        for own in ({}, {"k1": 0.9}, {"b": 0.4}):
            search_cached(Qdrant(rank=rank, **own), SENTENCES, ["sea"], 3, store)  # type: ignore[arg-type]  # any settings
        assert (store.count["qdrant index"], store.count["rankings"]) == (indexes, 3)


@pytest.mark.parametrize("words", ["text", "bm25"])
@pytest.mark.parametrize("rrf_k", [2, 60])
def test_rrf_sums_reciprocal_ranks(words: Any, rrf_k: int) -> None:
    corpus = Corpus(SENTENCES.ids, SENTENCES.texts)
    own: dict[str, Any] = {"index_type": "flat", "words": words, "rrf_k": rrf_k}
    parts = [Qdrant(WordLengths(), "vector", index_type="flat"), Qdrant(rank=words)]
    expected: dict[int, float] = {}
    for part in parts:
        for place, document in enumerate(
            rows_of(part.index(corpus, MemoryStore()).search(["sea boat"], 6).documents)[0]
        ):
            expected[document] = expected.get(document, 0.0) + 1 / (rrf_k + place)
    rankings = Qdrant(WordLengths(), "rrf", **own).index(corpus, MemoryStore()).search(["sea boat"], 6)
    hits = dict(zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True))
    hits.pop(NOTHING, None)
    assert hits == pytest.approx(expected, rel=1e-5)


def test_dbsf_sums_scores_scaled_by_mean_and_deviation() -> None:
    corpus, expected = Corpus(SENTENCES.ids, SENTENCES.texts), {}
    for part in (Qdrant(WordLengths(), index_type="flat"), Qdrant(rank="text")):
        rankings = part.index(corpus, MemoryStore()).search(["sea boat"], 6)
        hits = {d: s for d, s in zip(rankings.documents[0], rankings.scores[0], strict=True) if d != NOTHING}
        mean, deviation = np.mean(list(hits.values())), np.std(list(hits.values()), ddof=1)
        for document, score in hits.items():
            scaled = (score - (mean - 3 * deviation)) / (6 * deviation)
            expected[int(document)] = expected.get(int(document), 0.0) + scaled
    rankings = Qdrant(WordLengths(), "dbsf", index_type="flat").index(corpus, MemoryStore()).search(["sea boat"], 6)
    hits = dict(zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True))
    hits.pop(NOTHING, None)
    assert hits == pytest.approx(expected, rel=1e-4)


def test_a_weight_of_one_ranks_by_the_vectors_and_of_zero_by_the_words() -> None:
    for weight, part in ((1.0, Qdrant(WordLengths(), index_type="flat")), (0.0, Qdrant(rank="text"))):
        fused = Qdrant(WordLengths(), "rrf", index_type="flat", vector_weight=weight)
        first, expected = (r.index(SENTENCES, MemoryStore()).search(["sea boat"], 6).documents for r in (fused, part))
        n = int((expected != NOTHING).sum())
        assert first[0, :n].tolist() == expected[0, :n].tolist()


def test_a_query_without_direction_is_searched_by_its_words() -> None:
    fused = Qdrant(WordLengths(), "rrf", index_type="flat").index(SENTENCES, MemoryStore())
    assert rows_of(fused.search(["", "zeppelin"], 3).documents)[0] == []


@pytest.mark.parametrize("rank", ["vector", "rrf", "dbsf"])
def test_vectors_need_an_encoder(rank: Any) -> None:
    with pytest.raises(ValueError, match=f"encoder: rank={rank} needs one, such as encoder=lsa"):
        Qdrant(rank=rank)


@pytest.mark.parametrize("own", [{"rank": "text"}, {"rank": "bm25"}, {"rank": "rrf"}, {"rank": "vector"}])
def test_a_plan_lists_the_work_of_a_search(own: dict[str, Any]) -> None:
    retriever, store = Qdrant(WordLengths(), **own), Builds()
    work = retriever.plan(SENTENCES, ["sea"], 3, NoStore())
    search_cached(retriever, SENTENCES, ["sea"], 3, store)
    del store.count["diagnostics"]  # planned as part of the search
    assert Counter(planned.key.kind.name for planned in (work, *work.needs)) == store.count


# Filters


def test_a_graph_is_searched_among_the_points_that_pass() -> None:
    """The engine filters while it searches, so no answer is short, unlike pgvector's."""
    rows = [{"n": i % 50} for i in range(len(DOCUMENTS))]
    corpus = replace(corpus_of(DOCUMENTS), metadata=rows, filter_fields=("n",))
    queries = [QueryText(query, query, own=parse_filter({"n": 7})) for query in QUERIES]
    rankings = search_cached(Qdrant(Numbers(), ef_search=40), corpus, queries, 10, MemoryStore())
    hits = rankings.documents[rankings.documents != NOTHING]
    assert all(document % 50 == 7 for document in hits.tolist())
    figures = {
        name.partition(".")[0]: value for name, value in rankings.diagnostics.items() if "1_to_5_percent" in name
    }
    assert figures["short_answers_at_10"] == 0
    assert figures["index_recall_at_10"] > 0.9


@pytest.mark.parametrize("words", ["text", "bm25"])
def test_fusion_ranks_the_documents_that_pass(words: Any) -> None:
    rows = [{"even": place % 2 == 0} for place in range(len(SENTENCES))]
    corpus = replace(SENTENCES, metadata=rows, filter_fields=("even",))
    queries = [QueryText("sea boat", "q", own=parse_filter({"even": False}))]
    expected: dict[int, float] = {}
    for part in (Qdrant(WordLengths(), index_type="flat"), Qdrant(rank=words)):
        documents = part.index(corpus, MemoryStore()).search(queries, 6).documents
        for place, document in enumerate(rows_of(documents)[0]):
            expected[document] = expected.get(document, 0.0) + 1 / (2 + place)
    fused = Qdrant(WordLengths(), "rrf", index_type="flat", words=words).index(corpus, MemoryStore())
    rankings = fused.search(queries, 6)
    hits = dict(zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True))
    hits.pop(NOTHING, None)
    assert hits == pytest.approx(expected, rel=1e-5)
    assert {document % 2 for document in hits} == {1}


def test_an_index_is_built_again_where_the_fields_of_filters_change() -> None:
    store = Builds()
    for rows in ([{"n": 1}] * 6, [{"n": 2}] * 6, [{"n": 2, "other": 1}] * 6):
        corpus = replace(SENTENCES, metadata=rows, filter_fields=("n",))
        Qdrant(rank="text").index(corpus, store)
    assert store.count["qdrant index"] == 2


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


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_a_stored_index_cannot_write_outside_its_folder(name: str, tmp_path: Path) -> None:
    packed = {"names": np.frombuffer(json.dumps([[name, 1]]).encode(), np.uint8), "file_0": np.ones(1, np.uint8)}
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match="names a file outside its folder"):
        unpack_folder(packed, tmp_path / "in")
    assert not (tmp_path / "outside").exists()


def _forge_points(ids: Sequence[Any], vectors: NDArray[Any]) -> Arrays:
    """Return an index of Qdrant with points of these ids."""
    import qdrant_edge as engine

    settings = ShardSettings("cosine", 0, 4, None)
    with tempfile.TemporaryDirectory() as folder:
        shard = engine.EdgeShard.create(folder, _configure(settings, vectors.shape[1], None))
        points = [engine.Point(name, row) for name, row in zip(ids, vectors.tolist(), strict=True)]
        shard.update(engine.UpdateOperation.upsert_points(points))
        shard.flush()
        shard.close()
        return pack_folder(Path(folder))


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (range(300), "the places of the hits are not different whole numbers from 0 to 29; the index in the store"),
        (range(2**63, 2**63 + 30), "the places of the hits are not different whole numbers from 0 to 29"),
        ([str(UUID(int=i)) for i in range(30)], "the places of the hits are not different whole numbers from 0 to 29"),
        (range(9), "an exact index returns fewer than 26 documents, so it is not that of this corpus; remove it"),
    ],
    ids=["more points", "large numbers", "names", "fewer points"],
)
def test_places_that_are_not_of_the_corpus_are_refused(
    ids: Sequence[Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    vectors = DOCUMENTS[: len(ids)].astype(np.float32)
    with monkeypatch.context() as patch:
        patch.setattr("retrievers.engines.qdrant.build_shard", lambda *_: _forge_points(ids, vectors))
        searcher_of(DOCUMENTS[:30], DiskStore(tmp_path), index_type="flat")
    with pytest.raises(RetrieverError) as raised:
        searcher_of(DOCUMENTS[:30], DiskStore(tmp_path), index_type="flat").search(QUERIES, 10)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": np.frombuffer(b'[["../outside", 1]]', np.uint8)},
        {"names": np.frombuffer(b'[["a", "1"]]', np.uint8)},
        {"names": np.frombuffer(b"[[", np.uint8)},
        {"names": np.frombuffer(b'[["a", 1]]', np.uint8), "file_0": np.zeros(2, np.uint8)},
        {"names": np.frombuffer(b'[["a", 99]]', np.uint8), "file_0": np.zeros(2, np.float64)},
    ],
)
def test_an_entry_that_is_not_a_folder_of_files_is_built_again(
    wrong: dict[str, NDArray[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("retrievers.engines.qdrant.build_shard", lambda *_: {"file_0": np.zeros(1, np.uint8), **wrong})
        patch.setattr("retrievers.engines.qdrant.Shard", lambda *_: None)
        searcher_of(DOCUMENTS[:30], DiskStore(tmp_path), index_type="flat")
    found = searcher_of(DOCUMENTS[:30], DiskStore(tmp_path), index_type="flat").search(QUERIES, 10)
    genuine = searcher_of(DOCUMENTS[:30], index_type="flat").search(QUERIES, 10)
    assert found.documents.tobytes() == genuine.documents.tobytes()
    assert caplog.text.count("; computing it again") == 1


def test_damaged_files_are_an_error_of_the_engine() -> None:
    arrays = _forge_points(range(30), DOCUMENTS[:30].astype(np.float32))
    names = [Path(name).name for name, _ in json.loads(arrays["names"].tobytes())]
    for name in ("edge_config.json", "segment.json", "version.info"):
        place = f"file_{names.index(name)}"
        with pytest.raises(RetrieverError, match=r"^Qdrant's engine: .*\(temporary files: .*\)$"):
            Shard({**arrays, place: np.full(len(arrays[place]), 0xFE, np.uint8)}, 30)
