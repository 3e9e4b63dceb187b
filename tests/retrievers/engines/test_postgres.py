"""PostgreSQL and pgvector: full text and vectors in tables that the program fills, and connections."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus
from retrievers.engines.postgres import Postgres
from retrievers.engines.postgres_server import ServerError, _Session
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.vectors.dense import Dense
from retrievers.vectors.vector_search import VectorSearcher
from runner.__main__ import main
from runner.store.disk import DiskStore
from runner.tracking.settings import Tracking
from tests.retrievers.engines.builds import Builds
from tests.retrievers.engines.postgres_queries import execute, list_tables, vectors_in
from tests.retrievers.engines.postgresql import Cluster
from tests.retrievers.vectors.test_dense import DOCUMENTS, METRICS, QUERIES, Numbers, corpus_of, rows_of, texts_of
from tests.strategies.vectors import integer_vectors

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")


@pytest.mark.parametrize("rank", ["ts_rank", "ts_rank_cd"])
@pytest.mark.parametrize("match", ["any", "all", "websearch"])
@pytest.mark.parametrize("normalization", [0, 1 | 32])
def test_full_text_is_that_of_plain_sql(
    cluster: Cluster, harbour: Corpus, rank: Any, match: Any, normalization: int
) -> None:
    queries = ["ships and ferries", "lighthouse", "market fish", "zeppelin", ""]
    own = Postgres(cluster.dsn, rank=rank, match=match, normalization=normalization)
    rankings = own.index(harbour, MemoryStore()).search(queries, 4)
    for query, documents, scores in zip(queries, rankings.documents, rankings.scores, strict=True):
        words = {
            "any": " | ".join(word for word in query.split() if word != "and"),
            "all": " & ".join(word for word in query.split() if word != "and"),
            "websearch": " & ".join(word for word in query.split() if word != "and"),
        }[match]
        expected = []
        for name, title, text in zip(harbour.ids, harbour.titles, harbour.texts, strict=True):
            statement = (
                f"SELECT d @@ q, {rank}(d, q, {normalization}) FROM to_tsvector('english', %s) AS d, "
                "to_tsquery('english', %s) AS q"
            )
            ((matches, score),) = execute(cluster, statement, f"{title} {text}", words)
            if matches:
                expected.append((np.float32(score), name))
        expected.sort(reverse=True)
        hits = [(score, harbour.ids[d]) for score, d in zip(scores, documents, strict=True) if d != NOTHING]
        assert hits == expected[:4]


def test_a_title_may_weigh_more_than_a_text(cluster: Cluster) -> None:
    corpus = Corpus(["a", "b"], ["the sea", "a boat boat"], ["a boat", "the sea"])
    for title_weight, first in ((0.0, 1), (1.0, 0)):
        own = Postgres(cluster.dsn, rank="ts_rank", title_weight=title_weight)
        assert own.index(corpus, MemoryStore()).search(["boat"], 1).documents[0, 0] == first


def test_ties_at_the_cutoff_are_broken_by_id(cluster: Cluster) -> None:
    ids = [f"d{i}" for i in range(12)]
    searcher = Postgres(cluster.dsn).index(Corpus(ids, ["a red boat at sea"] * 12), MemoryStore())
    documents = searcher.search(["red boat"], 5).documents[0]
    assert [ids[d] for d in documents] == sorted(ids, reverse=True)[:5]


def test_words_are_stored_once_for_all_search_settings(cluster: Cluster, harbour: Corpus) -> None:
    store = Builds()
    for own in ({}, {"match": "all"}, {"normalization": 2}, {"rank": "ts_rank"}, {"title_weight": 1.0}):
        search_cached(Postgres(cluster.dsn, **own), harbour, ["ships"], 3, store)  # type: ignore[arg-type]  # any settings
    assert (store.count["postgres index"], store.count["rankings"]) == (1, 5)
    search_cached(Postgres(cluster.dsn, config="simple"), harbour, ["ships"], 3, store)
    assert store.count["postgres index"] == 2


@METRICS
@settings(max_examples=5)
@given(documents=integer_vectors(60), queries=integer_vectors(4), k=st.integers(1, 20))
def test_flat_is_dense_with_its_ties(
    cluster: Cluster, metric: Any, documents: NDArray[Any], queries: NDArray[Any], k: int
) -> None:
    expected = Dense(Numbers(), metric=metric).index(corpus_of(documents), MemoryStore()).search(texts_of(queries), k)
    searcher = vectors_in(cluster, metric=metric).index(corpus_of(documents), MemoryStore())
    rankings = searcher.search(texts_of(queries), k)
    assert rankings.documents.tobytes() == expected.documents.tobytes()
    assert rankings.scores.tobytes() == expected.scores.tobytes()


def recall(cluster: Cluster, store: Store, k: int = 10, **own: Any) -> dict[str, float]:
    searcher = vectors_in(cluster, **own).index(corpus_of(DOCUMENTS), store)
    assert isinstance(searcher, VectorSearcher)
    return searcher.diagnostics(QUERIES, k, NoStore())


@METRICS
def test_more_candidates_find_more(cluster: Cluster, metric: Any) -> None:
    store = Builds()
    for effort, few, many in (("ef_search", 10, 400), ("probes", 1, 40)):
        own = {"metric": metric, "index_type": "hnsw" if effort == "ef_search" else "ivfflat", "lists": 40}
        own |= {"m": 4, "ef_construction": 8}
        little, much = (recall(cluster, store, **own, **{effort: n})["index_recall_at_10"] for n in (few, many))
        assert 0.1 < little < much
        assert much > 0.9
    assert store.count["postgres index"] == 2


def test_pgvector_returns_no_more_than_ef_search_and_short_answers_are_counted(cluster: Cluster) -> None:
    store = Builds()
    short = recall(cluster, store, 100, index_type="hnsw", ef_search=40)
    full = recall(cluster, store, 100, index_type="hnsw", ef_search=40, iterative_scan="strict_order")
    assert short["short_answers_at_100"] == len(QUERIES)
    assert short["index_recall_at_100"] <= 0.4
    assert full["short_answers_at_100"] == 0
    assert store.count["postgres index"] == 1


def test_halfvec_is_nearly_exact(cluster: Cluster) -> None:
    assert recall(cluster, MemoryStore(), type="halfvec")["index_recall_at_10"] > 0.98


@pytest.mark.parametrize(
    ("own", "exact_searches"),
    [({"rank": "ts_rank"}, 0), ({"index_type": "flat"}, 0), ({"type": "halfvec"}, 2), ({"index_type": "hnsw"}, 2)],
)
def test_a_plan_lists_the_work_of_a_search(cluster: Cluster, own: dict[str, Any], exact_searches: int) -> None:
    retriever, corpus, store = replace(vectors_in(cluster), **own), corpus_of(DOCUMENTS[::4]), Builds()
    work = retriever.plan(corpus, QUERIES, 12, NoStore())
    search_cached(retriever, corpus, QUERIES, 12, store)
    del store.count["diagnostics"]  # planned as part of the search
    assert Counter(planned.key.kind.name for planned in (work, *work.needs)) == store.count
    assert store.count["exact neighbours"] == exact_searches


def test_zero_vectors_retrieve_nothing_and_are_never_retrieved(cluster: Cluster) -> None:
    documents = np.array([[0, 0], [1, 0], [0, 0], [-1, 0]])
    for index_type in ("flat", "hnsw"):
        searcher = vectors_in(cluster, index_type=index_type, metric="dot").index(corpus_of(documents), MemoryStore())
        assert rows_of(searcher.search(["0 0", "2 0"], 4).documents) == [[], [1, 3]]


def test_settings_that_pgvector_refuses_are_refused_before() -> None:
    with pytest.raises(ValueError, match="ef_construction=64: should be at least twice m, that is, 128"):
        Postgres(rank="vector", encoder=Numbers(), index_type="hnsw", m=64)
    with pytest.raises(ValueError, match="encoder: is required for vectors"):
        Postgres(rank="vector")
    with pytest.raises(ValueError, match=r"sql: without %\(query\)s or %\(vector\)s"):
        Postgres(sql="SELECT id FROM t")
    with pytest.raises(ValueError, match="table and sql are mutually exclusive"):
        Postgres(sql="SELECT id FROM t", table="t")


def test_a_table_is_listed_removed_and_built_again(
    cluster: Cluster, harbour: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own, before = Postgres(cluster.dsn, config="german"), list_tables(cluster)
    store = DiskStore(Path("mlruns/cache"))
    own.index(harbour, store).search(["ships"], 3)
    (entry,) = (entry for entry in store.list_entries() if entry.kind == "postgres index")
    assert list_tables(cluster) - before == {f"index_{entry.digest}"}
    assert entry.bytes > 8192  # the table's size, not that of the note
    assert "tester" in entry.parts["server"]
    assert main(["cache", "cache.kind=postgres index", "cache.remove=true", "trust=[services,secrets]"]) == 0
    assert list_tables(cluster) == before
    assert not [entry for entry in store.list_entries() if entry.kind == "postgres index"]
    rankings = own.index(harbour, DiskStore(Path("mlruns/cache"))).search(["ships"], 3)
    assert rows_of(rankings.documents) != [[]]


def test_a_table_missing_on_the_server_is_built_again(cluster: Cluster, harbour: Corpus) -> None:
    own, store, before = Postgres(cluster.dsn, config="french"), Builds(), list_tables(cluster)
    first = own.index(harbour, store).search(["ships"], 3)
    (name,) = list_tables(cluster) - before
    execute(cluster, f"DROP TABLE retrieval_runner.{name}")
    assert own.index(harbour, store).search(["ships"], 3).documents.tobytes() == first.documents.tobytes()
    searcher = own.index(harbour, store)
    execute(cluster, f"DROP TABLE retrieval_runner.{name}")  # between two searches
    assert searcher.search(["ships"], 3).documents.tobytes() == first.documents.tobytes()


@pytest.mark.parametrize(
    "own",
    [
        {"rank": "ts_rank"},
        {"rank": "vector"},
        {"rank": "vector", "index_type": "hnsw"},
        {"sql": "SELECT 'd1', length(%(query)s)"},
    ],
)
def test_queries_are_searched_through_as_many_connections_as_concurrency_says(
    cluster: Cluster, own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, queries = corpus_of(DOCUMENTS[:50]), QUERIES[:8]
    one, four = (replace(vectors_in(cluster), **own, concurrency=n).index(corpus, MemoryStore()) for n in (1, 4))
    expected, barrier, configure = one.search(queries, 5), threading.Barrier(4, timeout=60), _Session.configure

    def wait(session: _Session, settings: Mapping[str, str]) -> None:
        barrier.wait()  # passes when four sessions are here
        configure(session, settings)

    monkeypatch.setattr(_Session, "configure", wait)
    rankings = four.search(queries, 5)
    assert rankings.documents.tobytes() == expected.documents.tobytes()
    assert rankings.scores.tobytes() == expected.scores.tobytes()


def test_a_connection_that_was_lost_is_opened_again(cluster: Cluster, harbour: Corpus) -> None:
    searcher = Postgres(cluster.dsn).index(harbour, MemoryStore())
    first = searcher.search(["ships"], 3)
    cluster.stop()
    with pytest.raises(ServerError, match=r"^PostgreSQL \(.*port=\d+.*\): .+") as raised:
        searcher.search(["ships"], 3)
    assert "\n" not in str(raised.value)
    cluster.start()
    assert searcher.search(["ships"], 3).documents.tobytes() == first.documents.tobytes()


def test_a_sweep_goes_on_when_the_server_is_back(
    cluster: Cluster, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    sweep = ["-m", "retriever=postgres", f"retriever.dsn={cluster.dsn}", "retriever.normalization=0,1"]
    sweep += ["tracking.background=false"]
    cluster.stop()
    try:
        assert main(sweep) == 1
    finally:
        cluster.start()
    assert "2 x ServerError: PostgreSQL (user=tester" in capsys.readouterr().out
    assert main(sweep) == 0  # the same command searches what failed
    assert "failed" not in capsys.readouterr().out
    assert main(sweep) == 0
    assert "all 2 combinations are already finished" in capsys.readouterr().err.lower()
