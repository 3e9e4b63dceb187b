"""Tables of the users' own in PostgreSQL, and their SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, QueryText, RetrieverError
from retrievers.engines.postgres import Postgres
from retrievers.filters import parse_filter
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from tests.retrievers.engines.postgres_queries import execute
from tests.retrievers.engines.postgresql import Cluster
from tests.retrievers.test_filters import filter_by_hand, list_hits, passes
from tests.retrievers.vectors.test_dense import METRICS, Numbers, rows_of, texts_of

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")


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
    assert ids_alone.search(["x"], 2).scores.tolist() == [[1.0]]


def test_an_error_of_a_statement_is_one_of_its_query(cluster: Cluster, articles: str, harbour: Corpus) -> None:
    own = Postgres(cluster.dsn, sql="SELECT 'd1', 1 / %(query)s::int")
    rankings = own.index(harbour, MemoryStore()).search(["1", "0"], 2)
    assert rankings.documents[0, 0] == 0
    assert rankings.errors is not None
    assert list(rankings.errors) == [1]
    assert rankings.errors[1].endswith("division by zero")
