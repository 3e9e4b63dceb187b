"""Filters in PostgreSQL and pgvector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import NOTHING, Corpus, QueryText, RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.engines.postgres import Postgres
from retrievers.filters import parse_filter
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from tests.retrievers.engines.postgres_queries import execute, vectors_in
from tests.retrievers.engines.postgresql import Cluster
from tests.retrievers.test_filters import filter_by_hand, list_hits, passes
from tests.retrievers.vectors.test_dense import DOCUMENTS, QUERIES, Numbers, corpus_of
from tests.strategies.filters import FILTERS, METADATA

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")


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
