from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25, BM25Searcher
from retrievers.lexical.postings import Postings
from retrievers.store import NoStore, Store
from retrievers.vectors.dense import Dense
from runner.datasets.base import Queries, Raw
from runner.datasets.source import DatasetSource
from runner.evaluation.bench import Bench, build_result
from runner.evaluation.experiment import Experiment
from runner.evaluation.grading import Grading
from runner.evaluation.records import format_record, load_record, save_record
from runner.evaluation.report.tables import heading
from runner.evaluation.result import Timings
from runner.metrics.settings import MetricSettings
from runner.store.base import WORTH_KEEPING_S
from runner.store.disk import DiskStore
from tests.evaluation.chats import always

METRICS = MetricSettings(k_values=(1, 2), depth=10)
RECORD = Path(__file__).with_name("graded_result.json")


@settings(frozen=True, kw_only=True)
class Small(DatasetSource):
    """Four documents and four queries: one of each kind, and search types of which other items are expected."""

    def read(self) -> Raw:
        corpus = Corpus(["a", "b", "c", "d"], ["red boat", "blue boat", "red house", "green"])
        queries = Queries(["q1", "q2", "q3", "q4"], ["red boat", "blue", "purple", "boat"], ["x", "x", "none", "y"])
        qrels = [("q1", "a", 2), ("q1", "c", 1), ("q2", "a", 1), ("q4", "b", 1), ("q4", "a", 0)]
        own = {"special": [("q4", "a", 1)], "graded": [("q1", "a", 1), ("q1", "c", 2)], "same": [("q2", "a", 1)]}
        return Raw(corpus, queries, qrels, ["q3"], own)


def experiment(retriever: object, name: str = "bm25", metrics: MetricSettings = METRICS) -> Experiment:
    return Experiment(name, name, retriever, Small(), metrics, {"choices": {}}, {})  # type: ignore[arg-type]  # any retriever


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(DiskStore(tmp_path))


PLAIN = Analyzer(stemmer=None, stopwords=None)


def test_a_result_has_means_statuses_and_hits(bench: Bench) -> None:
    result = bench.evaluate(experiment(BM25(analyzer=PLAIN)))
    assert result.queries.statuses == ("pass", "fail", "true_negative", "pass")
    assert result.means["RR"] == pytest.approx((1 + 0 + 1) / 3)
    assert result.queries.expected == [["a", "c"], ["a"], [], ["b"]]
    assert result.by_type.keys() == {"x", "y"}
    assert result.by_type["x"]["queries"] == 2
    assert result.by_type["x"]["RR"] == pytest.approx(0.5)
    assert result.hits is not None
    assert result.hits.ids(0) == ["a", "c", "b"]
    assert result.hits.grades[0].tolist() == [2, 1, -1, -1]
    assert np.isnan(result.of("RR")[2])


def test_expectations_may_differ_by_search_type(bench: Bench) -> None:
    result = bench.evaluate(experiment(BM25(analyzer=PLAIN), "special"))
    assert result.queries.expected[3] == ["a"]


def test_a_result_says_of_which_queries_its_search_type_has_gold_of_its_own(bench: Bench) -> None:
    special, plain = (bench.evaluate(experiment(BM25(analyzer=PLAIN), name)) for name in ("special", "bm25"))
    assert (special.own_gold, plain.own_gold) == (["q4"], [])
    told = "; separate gold for 1 of 4 queries: search type special"
    assert heading(special).endswith(told)
    assert told not in heading(plain)


def test_other_grades_are_gold_of_its_own_and_the_same_gold_is_not(bench: Bench) -> None:
    graded, same = (bench.evaluate(experiment(BM25(analyzer=PLAIN), name)) for name in ("graded", "same"))
    assert (graded.own_gold, same.own_gold) == (["q1"], [])


def test_gold_is_looked_up_once_for_each_search_type_and_goes_with_its_bench(tmp_path: Path) -> None:
    bench = Bench(DiskStore(tmp_path))
    one, other = (bench.evaluate(experiment(BM25(k1=k1, analyzer=PLAIN))) for k1 in (0.9, 1.2))
    assert one.queries.expected is other.queries.expected
    special = bench.evaluate(experiment(BM25(analyzer=PLAIN), "special"))
    assert (one.search_type, special.search_type) == ("bm25", "special")
    assert special.queries.expected != one.queries.expected
    dataset = weakref.ref(bench.datasets.load(Small()))
    del bench, one, other, special
    gc.collect()
    assert dataset() is None


def test_the_depth_of_rankings_is_limited_to_the_corpus_size(bench: Bench) -> None:
    deep = MetricSettings(k_values=(1,), depth=1_000_000)
    found = bench.evaluate(experiment(BM25(), metrics=deep)).hits
    assert found is not None
    assert found.rankings.depth == 4


def test_a_record_reads_back_as_it_was(bench: Bench, tmp_path: Path) -> None:
    result = bench.evaluate(experiment(BM25(analyzer=PLAIN)))
    save_record(result, tmp_path / "record")
    again = load_record(tmp_path / "record")
    assert again.means == result.means
    assert again.queries.expected == result.queries.expected
    np.testing.assert_array_equal(again.scores, result.scores)
    assert again.hits is not None
    assert [again.hits.ids(q) for q in range(4)] == [result.hits.ids(q) for q in range(4)]  # type: ignore[union-attr]  # found is kept


def test_the_record_of_a_graded_result_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    bench = Bench(DiskStore(tmp_path / "cache"))
    chat = always('{"grade": 12, "reasoning": "r"}')
    metrics = MetricSettings(measures=("RR",), primary="RR", k_values=(1, 2), depth=10)
    made = experiment(BM25(analyzer=PLAIN), "special", metrics)
    made = replace(made, swept={"retriever.k1": 0.9}, grading=Grading(llm=chat))
    measured = bench.measure(made)
    grades = bench.grade(made, measured)
    assert grades is not None
    measured = replace(
        measured, timings=Timings(0.0, 0.0, 0.0, 0.0, None, None), environment={}, figures={"filtered": 0.5}
    )  # these vary, or are none
    result = build_result(made, measured, replace(grades, prompt="prompt"), {"llm/grade/calls": 4.0})
    assert format_record(result).decode() == RECORD.read_text(encoding="utf-8").rstrip()


def test_each_part_of_a_hybrid_is_searched_once_for_all_weights(bench: Bench) -> None:
    parts = {"lexical": BM25(analyzer=PLAIN), "semantic": Dense(LSAEncoder(analyzer=PLAIN))}
    searches = []
    for alpha in (0.2, 0.4, 0.6):
        stages = bench.evaluate(experiment(Hybrid(parts=parts, alpha=alpha))).timings.stages
        searches.append([stage.reused for stage in stages if stage.kind == "rankings"])
    assert sorted(searches[0]) == [False, False, False]  # the two parts and the hybrid itself
    assert [sorted(reused) for reused in searches[1:]] == [[False, True, True]] * 2


class Clock:
    """The time, in seconds, that work is measured by."""

    now = 0.0


@dataclass(frozen=True)
class Slow:
    """Takes its time to index and to search, by a clock that nothing else moves."""

    def index(self, corpus: Corpus, store: Store) -> SlowSearcher:
        Clock.now += 2 * WORTH_KEEPING_S
        return SlowSearcher(BM25(analyzer=PLAIN).index(corpus, store))


@dataclass(frozen=True)
class SlowSearcher:
    inner: BM25Searcher

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        Clock.now += 3 * WORTH_KEEPING_S if len(queries) > 1 else 0
        return self.inner.search(queries, k)


def test_analysing_queries_is_timed_as_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_terms = Postings.find_terms

    def slowly(postings: Postings, queries: Sequence[str], analyzer: Analyzer) -> object:
        Clock.now += 7.0 if len(queries) > 1 else 0
        return find_terms(postings, queries, analyzer)

    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)
    monkeypatch.setattr(Postings, "find_terms", slowly)
    timings = Bench(DiskStore(tmp_path)).evaluate(experiment(BM25(analyzer=PLAIN))).timings
    assert (timings.index_s, timings.search_s) == (0, 7)


def test_times_are_what_the_work_costs_however_much_of_it_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)
    for reused in (False, True):
        timings = Bench(DiskStore(tmp_path)).evaluate(experiment(Slow())).timings
        assert timings.index_s == pytest.approx(2 * WORTH_KEEPING_S)
        assert timings.search_s == pytest.approx(3 * WORTH_KEEPING_S)
        assert timings.mean_ms is not None
        assert any(stage.reused for stage in timings.stages) == reused
        assert timings.wall_s == pytest.approx(0 if reused else 5 * WORTH_KEEPING_S)
