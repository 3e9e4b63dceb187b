"""PostgreSQL and pgvector reproduce what was measured without this program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrievers.dense import Dense
from retrievers.engines.postgres import Postgres
from retrievers.engines.postgres_server import open_server
from retrievers.engines.qdrant import Qdrant
from runner.evaluation import Bench
from runner.store.disk import DiskStore
from tests.retrievers.engines.figures import CLUSTERED, RECALL, TermSvd, check, evaluate
from tests.retrievers.engines.postgresql import run_cluster


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(DiskStore(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with run_cluster() as cluster:
        yield cluster.dsn
        open_server(cluster.dsn).close()


@pytest.mark.parametrize(
    ("name", "own", "ndcg", "recall"),
    [
        ("cranfield", {"index_type": "flat"}, 0.3834, None),
        ("cranfield", {"index_type": "hnsw", "ef_search": 10}, None, 0.985),
        ("cranfield", {"index_type": "hnsw", "ef_search": 40}, None, 0.999),
        ("cranfield", {"index_type": "ivfflat", "lists": 30, "probes": 5}, None, 0.93),
        ("cranfield", {"index_type": "ivfflat", "lists": 30, "probes": 30}, 0.3834, 1.0),
    ],
)
def test_pgvector(
    bench: Bench, collections: Path, dsn: str, name: str, own: dict[str, Any], ndcg: float | None, recall: float | None
) -> None:
    result = evaluate(bench, collections, name, Postgres(dsn, rank="vector", encoder=TermSvd(), **own))
    check(result, ndcg, recall, CLUSTERED if own["index_type"] == "ivfflat" else RECALL)


LONG = pytest.mark.slow(reason="ranks every document that has a word of the query")


@pytest.mark.parametrize(
    ("name", "own", "ndcg"),
    [
        ("cranfield", {"rank": "ts_rank", "match": "websearch"}, 0.0215),
        ("cranfield", {"rank": "ts_rank", "normalization": 1}, 0.3224),
        pytest.param("cranfield", {"rank": "ts_rank", "normalization": 0}, 0.2864, marks=LONG),
        pytest.param("cranfield", {"rank": "ts_rank", "normalization": 2}, 0.1938, marks=LONG),
        pytest.param("cranfield", {"rank": "ts_rank_cd", "normalization": 0}, 0.2426, marks=LONG),
        pytest.param("cranfield", {"rank": "ts_rank_cd", "normalization": 1 | 32}, 0.2803, marks=LONG),
    ],
)
def test_full_text(bench: Bench, collections: Path, dsn: str, name: str, own: dict[str, Any], ndcg: float) -> None:
    check(evaluate(bench, collections, name, Postgres(dsn, **own)), ndcg, None)


def test_an_exact_search_by_any_engine_is_that_of_dense(bench: Bench, collections: Path, dsn: str) -> None:
    results = [
        evaluate(bench, collections, "cranfield", retriever)
        for retriever in (
            Dense(TermSvd()),
            Qdrant(TermSvd(), index_type="flat"),
            Postgres(dsn, rank="vector", encoder=TermSvd()),
        )
    ]
    hits = [
        [result.hits.ids(query, 10) for query in range(len(result.queries.ids))] for result in results if result.hits
    ]
    assert hits[0] == hits[1] == hits[2]
