"""Estimates of the time and disk space of work, from rates that earlier runs measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus, Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.search import Work, plan_rankings
from retrievers.store import Key, MemoryStore
from retrievers.vectors.dense import Dense
from retrievers.work import DIAGNOSTICS, LIVE_MODEL, POSTINGS, RANKINGS, Cost, WorkKind
from runner.evaluation.bench import Bench
from runner.evaluation.result import Result
from runner.store.base import Entry
from runner.store.disk import DiskStore
from runner.sweep.estimates import Estimate, Estimator
from tests.broken import Broken
from tests.retrievers.test_contract import ALL
from tests.sweep.test_plan import experiment, plan_for

MINE = WorkKind("mine", "index")


@cache
def evaluate_once() -> Result:
    """Return a result, for tests that give it other times."""
    with TemporaryDirectory() as folder:
        return Bench(DiskStore(Path(folder))).evaluate(experiment(BM25()))


def entry(kind: WorkKind, seconds: float, size: int, **parts: object) -> Entry:
    key = Key.of(kind, "retrievers.search", **parts)
    return Entry(kind.name, key.digest, kind.name, dict(key.parts), size, seconds, 0.0, ())


def postings(characters: int, **parts: object) -> Work:
    return Work(Key.of(POSTINGS, "retrievers.search", corpus=str(characters), characters=characters, **parts))


def search_of(retriever: str, documents: int, asked: int, scans: bool = True) -> Work:
    key = Key.of(RANKINGS, "retrievers.search", retriever=retriever, documents=documents, asked=asked, k=10)
    return Work(key, grows_with=("asked", "documents") if scans else ("asked",))


def timed(retriever: Retriever, score_s: float, **stages: float) -> Result:
    """Return the result of an evaluation of four documents by two queries that took these times."""
    config = {"retriever": {"_target_": f"{type(retriever).__module__}.{type(retriever).__name__}"}}
    costs = [Cost(kind.replace("_", " "), seconds) for kind, seconds in stages.items()]
    return replace(
        evaluate_once(), config=config, timings=replace(evaluate_once().timings, score_s=score_s, stages=costs)
    )


def test_an_estimate_is_in_proportion_to_what_was_measured() -> None:
    kept = [entry(POSTINGS, 700.0, 10_000_000, corpus="c", characters=10**10, analyzer="Analyzer()")]
    whole, half = (Estimator(kept).estimate(postings(n, analyzer="Analyzer()")) for n in (10**10, 5 * 10**9))
    assert whole == Estimate(700.0, 10_000_000)
    assert half == Estimate(350.0, 5_000_000)


def test_an_estimate_is_rough_if_what_was_measured_is_far_smaller() -> None:
    kept = [entry(POSTINGS, 2.0, 1000, corpus="c", characters=1000)]
    assert Estimator(kept).estimate(postings(10_000)) == Estimate(20.0, 10_000, rough=False)
    assert Estimator(kept).estimate(postings(10_001)).rough


def test_work_with_the_most_similar_settings_is_used() -> None:
    kept = [
        entry(POSTINGS, seconds, 1, corpus="c", characters=10**10, analyzer=f"Analyzer(stemmer={stemmer!r})")
        for stemmer, seconds in (("english", 10.0), ("german", 1000.0), ("german", 3000.0))
    ]
    assert Estimator(kept).estimate(postings(10**10, analyzer="Analyzer(stemmer='english')")).seconds == 10
    assert Estimator(kept).estimate(postings(10**10, analyzer="Analyzer(stemmer='german')")).seconds == 2000


def test_a_search_is_only_compared_with_searches_of_its_class() -> None:
    kept = [entry(RANKINGS, 5.0, 1, retriever="RankBM25(k1=1.5)", documents=1000, asked=100, k=10)]
    assert Estimator(kept).estimate(search_of("BM25(k1=1.5)", 1000, 100)).seconds is None
    assert Estimator(kept).estimate(search_of("RankBM25(k1=2.0)", 1000, 100)).seconds == 5


def test_a_search_grows_with_documents_if_its_class_scans_them() -> None:
    kept = [entry(RANKINGS, 5.0, 1, retriever="R()", documents=1000, asked=100, k=10)]
    assert Estimator(kept).estimate(search_of("R()", 3000, 200)).seconds == 30
    assert Estimator(kept).estimate(search_of("R()", 3000, 200, scans=False)).seconds == 10


@pytest.mark.parametrize(
    ("retriever", "grows_with"),
    [
        (BM25(), ("asked", "documents")),
        (Dense(LSAEncoder()), ("asked", "documents")),
        (Broken("never"), ("asked", "documents")),
        (Hybrid({"a": BM25(), "b": RankBM25()}), ()),
        (ALL["reranked"], ()),
        (ALL["expanded"], ()),
        (ALL["agentic"], ()),
    ],
)
def test_the_class_of_a_retriever_declares_what_its_search_grows_with(
    retriever: Retriever, grows_with: tuple[str, ...], harbour: Corpus
) -> None:
    assert plan_rankings(retriever, harbour, ["ships"], 5, MemoryStore()).grows_with == grows_with
    assert RANKINGS.grows_with == ("asked",)


def test_the_figures_of_a_search_are_part_of_its_time() -> None:
    parts = {"documents": 10**6, "asked": 1000, "k": 10, "retriever": "Dense(index_type='hnsw')"}
    kept = [entry(RANKINGS, 150.0, 1, **parts), entry(DIAGNOSTICS, 300.0, 1, **parts)]
    assert Estimator(kept).estimate(search_of("Dense(index_type='hnsw')", 10**6, 1000)).seconds == 450


def test_work_without_sizes_takes_as_long_as_before() -> None:
    key = Key.of(MINE, "retrievers.search", a=1)
    assert Estimator([]).estimate(Work(key)) == Estimate()
    assert Estimator([entry(MINE, 7.0, 100, a=2)]).estimate(Work(key)) == Estimate(7.0, 100)


def test_work_that_no_store_keeps_has_the_rate_of_logged_runs() -> None:
    estimator = Estimator([], [timed(RankBM25(), 0.5, rankings=0.02, postings=0.01)])
    documents, queries = evaluate_once().dataset.documents, evaluate_once().dataset.queries
    twice = search_of("RankBM25(k1=9)", 2 * documents, queries)
    assert estimator.estimate(twice).seconds == pytest.approx(0.04)
    assert estimator.estimate(search_of("BM25()", documents, queries)).seconds is None
    assert estimator.estimate(postings(100, documents=3 * documents)).seconds == pytest.approx(0.03)
    assert estimator.score_s == pytest.approx(0.5 / queries)


def test_logged_rankings_of_a_hybrid_are_its_own_and_not_those_of_its_parts() -> None:
    hybrid = Hybrid({"a": BM25(), "b": RankBM25()})
    logged = timed(hybrid, 0.5)
    costs = [Cost("rankings", 1.0), Cost("rankings", 40.0), Cost("rankings", 90.0), Cost("latency", 30.0)]
    estimator = Estimator([], [replace(logged, timings=replace(logged.timings, stages=costs))])
    size = evaluate_once().dataset.documents, evaluate_once().dataset.queries
    assert estimator.estimate(search_of("Hybrid(parts)", *size, scans=False)).seconds == 1.0
    assert estimator.estimate(search_of("BM25()", *size)).seconds is None


def test_a_model_is_opened_at_the_rate_of_runs_with_the_same_model() -> None:
    settings = {"_target_": "retrievers.vectors.dense.Dense", "encoder": {"model": "models/small"}}
    logged = timed(BM25(), 0.5, live_model=6.0)
    estimator = Estimator([], [replace(logged, config={"retriever": settings})])
    opening = Work(Key.of(LIVE_MODEL, "retrievers.search", model="a hash of its files"))
    assert estimator.estimate(opening, settings).seconds == 6.0
    assert estimator.estimate(opening, {"encoder": {"model": "models/large"}}).seconds is None


@given(st.integers(1, 10**7), st.integers(1, 10**4), st.integers(1, 1000))
def test_more_takes_longer(documents: int, asked: int, more: int) -> None:
    kept = [entry(RANKINGS, 5.0, 100, retriever="R()", documents=100, asked=10, k=10)]
    less, most = (
        Estimator(kept).estimate(search_of("R()", d, a))
        for d, a in ((documents, asked), (documents + more, asked + more))
    )
    assert less.seconds is not None
    assert most.seconds is not None
    assert 0 < less.seconds < most.seconds
    assert 0 < less.bytes < most.bytes


def test_workers_share_the_work_but_no_combination_is_split(tmp_path: Path) -> None:
    bench, same = Bench(DiskStore(tmp_path)), [RankBM25(k1=k1) for k1 in (1.0, 1.2, 1.4, 1.6)]
    earlier = [timed(RankBM25(), score_s=2.0, rankings=10.0)]
    one, two, four, many = (
        plan_for(bench, *same, workers=workers, earlier=earlier).wall_seconds for workers in (1, 2, 4, 100)
    )
    assert one == pytest.approx(4 * 12.0)
    assert two == pytest.approx(24.0)
    assert four == many == pytest.approx(12.0)
