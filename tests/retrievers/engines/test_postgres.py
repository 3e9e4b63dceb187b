"""PostgreSQL as a retriever: full text against plain SQL, vectors against `dense`, and a server that comes and goes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, QueryText, RetrieverError
from retrievers.dense import Dense
from retrievers.engines.postgres import Postgres
from retrievers.engines.postgres_server import ServerError, _Session, open_server
from retrievers.filters import parse_filter
from retrievers.fusion import Hybrid
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.vector_search import VectorSearcher
from runner.__main__ import main
from runner.store.disk import DiskStore
from runner.tracking.settings import Tracking
from tests.retrievers.engines.builds import Builds
from tests.retrievers.engines.postgresql import Cluster, run_cluster
from tests.retrievers.test_dense import DOCUMENTS, METRICS, QUERIES, Numbers, corpus_of, rows_of, texts_of
from tests.retrievers.test_filters import FILTERS, METADATA, filter_by_hand, list_hits, passes

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'retrieval-runner[postgres]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with run_cluster() as cluster:
        yield cluster
        open_server(cluster.dsn).close()


def vectors_in(cluster: Cluster, **own: Any) -> Postgres:
    return Postgres(cluster.dsn, rank="vector", encoder=Numbers(), **own)


def execute(cluster: Cluster, statement: str, *values: object) -> list[Any]:
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def list_tables(cluster: Cluster) -> set[str]:
    statement = "SELECT tablename FROM pg_tables WHERE schemaname = 'retrieval_runner'"
    return {name for (name,) in execute(cluster, statement)}


# Full text


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


# Vectors

small = st.integers(-2, 2)


@METRICS
@settings(max_examples=5)
@given(
    documents=arrays(np.int64, st.tuples(st.integers(1, 60), st.just(3)), elements=small),
    queries=arrays(np.int64, st.tuples(st.integers(1, 4), st.just(3)), elements=small),
    k=st.integers(1, 20),
)
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
    assert Counter(planned.key.kind for planned in (work, *work.needs)) == store.count
    assert store.count["exact neighbours"] == exact_searches


def test_texts_without_direction_find_nothing_and_are_not_found(cluster: Cluster) -> None:
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


# The store


def test_a_table_is_listed_dropped_and_made_again(
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
    assert main(["cache", "cache.kind=postgres index", "cache.remove=true"]) == 0
    assert list_tables(cluster) == before
    assert not [entry for entry in store.list_entries() if entry.kind == "postgres index"]
    rankings = own.index(harbour, DiskStore(Path("mlruns/cache"))).search(["ships"], 3)
    assert rows_of(rankings.documents) != [[]]


def test_a_table_that_the_server_lost_is_made_again(cluster: Cluster, harbour: Corpus) -> None:
    own, store, before = Postgres(cluster.dsn, config="french"), Builds(), list_tables(cluster)
    first = own.index(harbour, store).search(["ships"], 3)
    (name,) = list_tables(cluster) - before
    execute(cluster, f"DROP TABLE retrieval_runner.{name}")
    assert own.index(harbour, store).search(["ships"], 3).documents.tobytes() == first.documents.tobytes()
    searcher = own.index(harbour, store)
    execute(cluster, f"DROP TABLE retrieval_runner.{name}")  # between two searches
    assert searcher.search(["ships"], 3).documents.tobytes() == first.documents.tobytes()


# Tables of the user's


@pytest.fixture
def articles(cluster: Cluster, harbour: Corpus) -> Iterator[str]:
    execute(cluster, "CREATE EXTENSION IF NOT EXISTS vector")
    execute(cluster, "CREATE SCHEMA IF NOT EXISTS search")
    execute(cluster, 'CREATE TABLE search."Articles" (id text, text text, words tsvector, embedding vector(2))')
    for place, (name, text) in enumerate(zip(harbour.ids, harbour.texts, strict=True)):
        vector = f"[{place}, 1]"
        statement = "INSERT INTO search.\"Articles\" VALUES (%s, %s, to_tsvector('english', %s), %s::vector)"
        execute(cluster, statement, name, text, text, vector)
    yield "search.Articles"
    execute(cluster, 'DROP TABLE search."Articles"')


def test_a_table_of_the_users_is_searched_by_its_columns(cluster: Cluster, articles: str, harbour: Corpus) -> None:
    for column in ("text", "words"):
        own = Postgres(cluster.dsn, table=articles, text_column=column)
        assert own.live
        rankings = own.index(harbour, MemoryStore()).search(["lighthouse", "zeppelin"], 3)
        assert [{harbour.ids[d] for d in row} for row in rows_of(rankings.documents)] == [{"d1", "d5"}, set()]
        assert rankings.errors is None
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("text_column", {}),
        ("id_column", {}),
        ("vector_column", {"rank": "vector", "encoder": Numbers()}),
    ]
    for setting, own in wrong:
        message = rf"^{setting}=body: search\.Articles has no such column; its columns are id, text, words, embedding$"
        with pytest.raises(RetrieverError, match=message):
            Postgres(cluster.dsn, table=articles, **{setting: "body"}, **own).index(harbour, MemoryStore())


@pytest.fixture
def library(cluster: Cluster) -> Iterator[Corpus]:
    """Make a table of vectors and words with columns to filter by, and return the corpus of its rows."""
    vectors = np.random.default_rng(2).integers(-9, 10, (120, 3))
    vectors[(vectors == 0).all(axis=1)] = 1
    words = ["red", "boat", "sea", "tree"]
    rows = [
        {"year": 2000 + i % 6, "language": ["de", "en", "fr"][i % 3], "tags": words[: i % 4], "open": i % 2 == 0}
        for i in range(120)
    ]
    table = "papers (id text, body text, embedding vector(3), year integer, language text, tags text[], open boolean)"
    execute(cluster, "CREATE EXTENSION IF NOT EXISTS vector")
    execute(cluster, f"CREATE TABLE {table}")
    texts = texts_of(vectors)
    columns = zip(texts, map(str, vectors.tolist()), rows, strict=True)
    values = [(f"d{i:03}", text, vector, *row.values()) for i, (text, vector, row) in enumerate(columns)]
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        statement = "INSERT INTO papers VALUES (%s, %s, %s::vector, %s, %s, %s, %s)"
        connection.cursor().executemany(statement, values)
    yield Corpus([f"d{i:03}" for i in range(120)], texts, metadata=rows, filter_fields=tuple(rows[0]))
    execute(cluster, "DROP TABLE papers")


LIBRARY_FILTERS: list[dict[str, Any]] = [
    {"year": 2003},
    {"year": {"from": 2004}, "language": "de"},
    {"year": [2001, 2002], "tags": ["boat", "sea"]},
    {"language": {"from": "e"}, "open": True},
    {"tags": {"from": "c"}},
    {"year": {"from": 2100}},
]


@METRICS
def test_the_vectors_of_a_table_are_compared_as_dense_does(cluster: Cluster, library: Corpus, metric: Any) -> None:
    texts = ["3 -2 1", "-5 5 2", "0 1 0"]
    queries = [QueryText(t, t, own=parse_filter(own)) for own in ({}, *LIBRARY_FILTERS) for t in texts]
    own = Postgres(cluster.dsn, rank="vector", encoder=Numbers(), metric=metric, table="papers")
    scores = search_cached(own, library, queries, 20, MemoryStore()).scores  # ties have the order of the server
    expected = search_cached(Dense(Numbers(), metric=metric), library, queries, 20, MemoryStore()).scores
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_the_words_of_a_table_are_searched_among_the_rows_that_pass(cluster: Cluster, library: Corpus) -> None:
    own = Postgres(cluster.dsn, table="papers", text_column="body", config="simple")
    full = search_cached(own, library, ["1 2"], 120, MemoryStore())
    for conditions in LIBRARY_FILTERS:
        query = QueryText("1 2", "q", own=parse_filter(conditions))
        rankings = search_cached(own, library, [query], 120, MemoryStore())
        masks = [[passes(row, conditions) for row in library.metadata]]
        assert sorted(list_hits(rankings)[0]) == sorted(filter_by_hand(full, masks, 120)[0])
        assert not rankings.errors


def test_a_filter_needs_columns_of_the_names_of_its_fields(cluster: Cluster, library: Corpus) -> None:
    own = Postgres(cluster.dsn, table="papers", text_column="body")
    query = QueryText("1 2", "q", own=parse_filter({"topic": "wings"}))
    with pytest.raises(RetrieverError, match=r"^filter: topic: papers has no such column; its columns are id, body"):
        search_cached(own, library, [query], 3, MemoryStore())


def test_a_statement_of_the_users_gets_the_query_its_vector_and_the_depth(
    cluster: Cluster, articles: str, harbour: Corpus
) -> None:
    statement = (
        "SELECT id, 1 - (embedding <=> %(vector)s) FROM search.\"Articles\" WHERE %(query)s <> '' "
        "ORDER BY embedding <=> %(vector)s LIMIT %(k)s"
    )
    own = Postgres(cluster.dsn, sql=statement, encoder=Numbers())
    rankings = own.index(harbour, MemoryStore()).search(["0 1", "100 1"], 2)
    assert [[harbour.ids[d] for d in row] for row in rows_of(rankings.documents)] == [["d1", "d2"], ["d6", "d5"]]
    assert rankings.scores[0, 0] == 1
    ids_alone = Postgres(cluster.dsn, sql="SELECT 'd3' WHERE %(query)s > ''").index(harbour, MemoryStore())
    assert ids_alone.search(["x"], 2).scores[0].tolist() == [1.0, -np.inf]


def test_an_error_of_a_statement_is_one_of_its_query(cluster: Cluster, articles: str, harbour: Corpus) -> None:
    own = Postgres(cluster.dsn, sql="SELECT 'd1', 1 / %(query)s::int")
    rankings = own.index(harbour, MemoryStore()).search(["1", "0"], 2)
    assert rankings.documents[0, 0] == 0
    assert rankings.errors is not None
    assert list(rankings.errors) == [1]
    assert rankings.errors[1].endswith("division by zero")


# Several queries at a time


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


# A server that comes and goes


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


# Filters


def with_rows(corpus: Corpus, rows: list[dict[str, Any]]) -> Corpus:
    return replace(corpus, metadata=rows, filter_fields=("language", "tags", "year"))


@settings(max_examples=5)
@given(data=st.data())
def test_full_text_with_filters_is_the_full_ranking_of_what_passes(cluster: Cluster, data: st.DataObject) -> None:
    harbour = Corpus(["a", "b", "c", "d"], ["ships at sea", "a ferry and ships", "fish on the market", "a lighthouse"])
    rows = data.draw(st.lists(METADATA, min_size=len(harbour), max_size=len(harbour)))
    conditions = data.draw(st.lists(FILTERS, min_size=3, max_size=3))
    texts = ["ships and ferries", "lighthouse", "market fish"]
    queries = [QueryText(text, text, own=parse_filter(own)) for text, own in zip(texts, conditions, strict=True)]
    full = Postgres(cluster.dsn).index(harbour, MemoryStore()).search(texts, len(harbour))
    masks = [[passes(row, own) for row in rows] for own in conditions]
    rankings = Postgres(cluster.dsn).index(with_rows(harbour, rows), MemoryStore()).search(queries, 2)
    assert list_hits(rankings) == filter_by_hand(full, masks, 2)


@settings(max_examples=5)
@given(rows=st.lists(METADATA, min_size=60, max_size=60), conditions=st.lists(FILTERS, min_size=3, max_size=3))
def test_flat_with_filters_is_dense_with_filters(
    cluster: Cluster, rows: list[dict[str, Any]], conditions: list[dict[str, Any]]
) -> None:
    corpus = with_rows(corpus_of(DOCUMENTS[:60]), rows)
    queries = [QueryText(q, q, own=parse_filter(own)) for q, own in zip(QUERIES[:3], conditions, strict=True)]
    expected = Dense(Numbers()).index(corpus, MemoryStore()).search(queries, 7)
    rankings = vectors_in(cluster).index(corpus, MemoryStore()).search(queries, 7)
    assert rankings.documents.tolist() == expected.documents.tolist()
    assert rankings.scores.tolist() == expected.scores.tolist()


def test_a_hybrid_fuses_what_passes(cluster: Cluster) -> None:
    """Neither `ts_rank` nor the vectors depend on other documents, so it is the hybrid over what passes alone."""
    numbers = np.random.default_rng(1).integers(1, 5, (60, 2))
    texts = [f"{row[0]} {row[1]}" for row in numbers.tolist()]
    rows = [{"n": i % 3} for i in range(60)]
    corpus = Corpus([f"d{i}" for i in range(60)], texts, metadata=rows, filter_fields=("n",))
    hybrid = Hybrid({"words": Postgres(cluster.dsn, config="simple"), "vectors": vectors_in(cluster)}, alpha=0.3)
    queries = [QueryText(text, text, own=parse_filter({"n": [0, 2]})) for text in ("1 2", "4 3", "2 2")]
    rankings = search_cached(hybrid, corpus, queries, 10, MemoryStore())
    passing = [i for i in range(60) if i % 3 != 1]
    alone = Corpus([corpus.ids[i] for i in passing], [texts[i] for i in passing])
    expected = search_cached(hybrid, alone, [str(query) for query in queries], 10, MemoryStore())
    assert rankings.documents.tolist() == [[passing[d] for d in row] for row in expected.documents.tolist()]
    assert rankings.scores.tolist() == expected.scores.tolist()


def test_hnsw_filters_after_its_search_unless_scans_are_iterative(cluster: Cluster) -> None:
    rows = [{"n": i % 50} for i in range(len(DOCUMENTS))]
    corpus = replace(corpus_of(DOCUMENTS), metadata=rows, filter_fields=("n",))
    passing = sum(row["n"] == 7 for row in rows)
    queries = [QueryText(q, q, own=parse_filter({"n": 7})) for q in QUERIES]
    store, counts = MemoryStore(), {}
    for scan in ("off", "strict_order"):
        own = vectors_in(cluster, index_type="hnsw", ef_search=40, iterative_scan=scan)
        rankings = search_cached(own, corpus, queries, 10, store)
        hits = rankings.documents[rankings.documents != NOTHING]
        assert all(document % 50 == 7 for document in hits.tolist())
        short, recall = (
            rankings.diagnostics[f"{name}_at_10.filter_1_to_5_percent"] for name in ("short_answers", "index_recall")
        )
        counts[scan] = (len(hits) / len(queries), short, recall)
    assert counts["off"][0] < 0.5 * min(passing, 10)  # hits of a query, of ten
    assert counts["off"][1] == len(QUERIES)
    assert counts["off"][2] < 0.5
    assert (counts["strict_order"][:2], counts["strict_order"][2] > 0.9) == ((min(passing, 10), 0), True)


def test_a_statement_gets_the_filter_as_json(cluster: Cluster) -> None:
    execute(cluster, "CREATE TABLE papers (id text, year integer)")
    execute(cluster, "INSERT INTO papers VALUES ('old', 1958), ('new', 2020)")
    statement = (
        "SELECT id FROM papers WHERE %(query)s <> '' AND year >= coalesce("
        "(%(filter)s::jsonb->'year'->>'from')::integer, 0) ORDER BY year LIMIT %(k)s"
    )
    queries = [QueryText("a", "1", own=parse_filter({"year": {"from": 2000}})), QueryText("b", "2")]
    corpus = Corpus(["old", "new"], ["", ""])
    try:
        rankings = search_cached(Postgres(cluster.dsn, sql=statement), corpus, queries, 2, MemoryStore())
        assert rankings.errors is None
        assert rankings.documents.tolist() == [[1, NOTHING], [0, 1]]
        blind = Postgres(cluster.dsn, sql="SELECT id FROM papers WHERE %(query)s <> '' LIMIT %(k)s")
        with pytest.raises(RetrieverError, match="Postgres does not apply filters, but 1 of 2 queries have one"):
            search_cached(blind, corpus, queries, 2, MemoryStore())
    finally:
        execute(cluster, "DROP TABLE papers")
