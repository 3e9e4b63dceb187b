"""PostgreSQL and pgvector reproduce what was measured without this program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrievers.engines.postgres import Postgres
from retrievers.engines.postgres_server import open_server
from retrievers.engines.qdrant import Qdrant
from retrievers.vectors.dense import Dense
from runner.evaluation.bench import Bench
from runner.store.disk import DiskStore
from tests.retrievers.engines.figures import EXACT, SCIFACT, TermSvd, check, check_mean_recall, evaluate
from tests.retrievers.engines.postgresql import run_cluster


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(DiskStore(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with run_cluster() as cluster:
        yield cluster.dsn
        open_server(cluster.dsn).close()


@pytest.mark.parametrize(("name", "ndcg"), [("cranfield", 0.3834), pytest.param("scifact", 0.4046, marks=SCIFACT)])
def test_an_exact_search_has_the_measured_ndcg(
    bench: Bench, collections: Path, dsn: str, name: str, ndcg: float
) -> None:
    exact = Postgres(dsn, rank="vector", encoder=TermSvd())
    check(evaluate(bench, collections, name, exact), ndcg, None, EXACT)
    every_cell = replace(exact, index_type="ivfflat", lists=30, probes=30)
    check(evaluate(bench, collections, name, every_cell), ndcg, 1.0, EXACT)


# pgvector draws the links of a graph and the first centres of cells at random, from a generator that a session cannot
# seed. In the mean of these numbers of builds, each test fails by chance with a probability of at most 1e-6: a single
# build of IVFFlat on Cranfield has a recall of 0.9319 with a standard deviation of 0.0062 (60 builds).
#
# On SciFact at ef_search=10 the figure, 0.944, is of one build. Builds there have a standard deviation of 0.0055 (20
# builds, mean 0.9343): with a confidence of 99.9 %, the mean behind the figure is within 3.29 of these. The test
# compares with that interval; the mean of 12 builds leaves it by chance with a probability of 1e-7.
@pytest.mark.parametrize(
    ("name", "index", "builds", "figures"),
    [
        ("cranfield", {"index_type": "hnsw"}, 4, {10: 0.985, 40: 0.999}),
        ("cranfield", {"index_type": "ivfflat", "lists": 30}, 16, {5: 0.93}),
        pytest.param("scifact", {"index_type": "hnsw"}, 4, {40: 0.988, 200: 1.0}, marks=SCIFACT),
        pytest.param(
            "scifact", {"index_type": "hnsw"}, 12, {10: pytest.approx(0.944, abs=3.29 * 0.0055)}, marks=SCIFACT
        ),
    ],
)
def test_indexes_have_the_measured_recall_in_the_mean(
    collections: Path, dsn: str, name: str, index: dict[str, Any], builds: int, figures: dict[int, Any]
) -> None:
    setting = "ef_search" if index["index_type"] == "hnsw" else "probes"

    def create(build: int, effort: int) -> Postgres:
        own: dict[str, Any] = {**index, setting: effort, "schema": f"build_{build}"}
        return Postgres(dsn, rank="vector", encoder=TermSvd(), **own)

    check_mean_recall(collections, name, builds, create, figures)


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
