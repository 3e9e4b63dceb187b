"""A dataset with every query repeated as variants of itself is as sure of everything as the dataset without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings
from runner.comparison.comparability import NotComparable
from runner.comparison.compare import Comparison, TableStatistics, Versus, compare_results
from runner.comparison.gate import Gate, check_gate
from runner.comparison.leaderboard import LeaderboardRow, build_leaderboard
from runner.comparison.report.tables import describe_statistics, differences_table
from runner.evaluation.measuring import RankedDocuments, measure
from runner.evaluation.records import load_record, save_record
from runner.evaluation.report.tables import intervals_of
from runner.evaluation.result import DatasetSummary, JudgedQueries, Result, Timings
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.statistics.clusters import number_clusters
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.prediction import correlations
from runner.statistics.selection import estimate_nested_intervals, folds
from runner.statistics.settings import Statistics
from runner.sweep.report.tables import board_heading, leaderboard_table, verdict
from runner.sweep.selection import compare_with_default
from tests.pages.factory import result, with_variants

TIMES = 5
COUNTS = ("wins", "ties", "losses")


def systems(queries: int = 10) -> list[Result]:
    """Return three results on few queries, for which the permutation test is exact."""
    qualities = {"a": 0.5, "b": 0.53, "c": 0.6}
    return [
        result(name, seed=i, quality=quality, queries=queries, no_result=0, hits=False)
        for i, (name, quality) in enumerate(qualities.items())
    ]


def variants(results: Sequence[Result]) -> list[Result]:
    return [with_variants(each, TIMES) for each in results]


def figures(row: LeaderboardRow | Versus) -> dict[str, Any]:
    """Return the figures of a row, with counts of queries as shares of them."""
    every: dict[str, Any] = row.to_dict() if isinstance(row, Versus) else {"mean": row.mean, **row.list_figures()}
    queries = sum(every[name] for name in COUNTS)
    every |= {name: every[name] / queries if queries else 0 for name in COUNTS}
    return {name: value for name, value in every.items() if isinstance(value, float | int)}


def test_the_leaderboard_tests_clusters() -> None:
    once, again = build_leaderboard(systems(), "nDCG@10"), build_leaderboard(variants(systems()), "nDCG@10")
    assert (once.queries, once.clusters, again.queries, again.clusters) == (10, None, 50, 10)
    assert again.detectable == pytest.approx(once.detectable)
    assert again.letters == once.letters
    for row, expected in zip(again.rows, once.rows, strict=True):
        assert figures(row) == pytest.approx(figures(expected), nan_ok=True)
        assert row.difference.p == expected.difference.p or np.isnan(row.difference.p)
    alike = [replace(r, queries=replace(r.queries, clusters=())) for r in variants(systems())]
    independent = build_leaderboard(alike, "nDCG@10")
    assert independent.rows[1].difference.p < again.rows[1].difference.p  # what clusters are for


def table(comparison: Comparison) -> list[dict[str, Any]]:
    return [figures(versus) for row in comparison.table.values() for versus in row]


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_a_comparison_tests_clusters(test: Any) -> None:
    statistics = TableStatistics(test=test, permutations=200)
    once, again = compare_results(systems(), statistics), compare_results(variants(systems()), statistics)
    assert (once.clusters, again.clusters) == (None, 10)
    for row, expected in zip(table(again), table(once), strict=True):
        assert row == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_a_comparison_takes_clusters_from_the_result_that_has_them() -> None:
    first, second, _ = variants(systems())
    imported = replace(
        first, queries=replace(first.queries, clusters=()), dataset=replace(first.dataset, fingerprint="")
    )
    expected = compare_results([first, second], TableStatistics(permutations=200))
    found = compare_results([imported, second], TableStatistics(permutations=200))
    for row, of_both in zip(table(found), table(expected), strict=True):
        assert row == pytest.approx(of_both, nan_ok=True)


def test_results_with_and_without_clusters_are_not_compared() -> None:
    first, second, _ = variants(systems())
    alone = replace(
        second, queries=replace(second.queries, clusters=()), dataset=replace(second.dataset, fingerprint="f")
    )
    with pytest.raises(NotComparable, match=r"query clusters \(dataset\.cluster_field\) differ"):
        compare_results([first, alone], TableStatistics())


def test_the_gate_tests_clusters() -> None:
    """Four queries are too few to be sure of a loss, however many variants there are of each."""
    gate = Gate(drops={"primary": 0.0}, drops_by_type={"*": {"primary": 0.0}})
    for queries, expected in ((4, "undecided"), (10, "fail")):
        good, worse = systems(queries)[0], systems(queries)[0]
        worse = replace(worse, name="b", scores=worse.scores - 0.1)
        once, again = (
            check_gate(gate, compare_results(pair, TableStatistics()))
            for pair in ([good, worse], variants([good, worse]))
        )
        for one, other in zip(once, again, strict=True):
            assert other.verdict == one.verdict
            assert (other.p, other.hidden, other.more) == pytest.approx((one.p, one.hidden, one.more), nan_ok=True)
        assert again[0].verdict == expected


def test_reports_count_clusters_where_tests_go_by_them() -> None:
    pair = systems()[:2]
    once, again = compare_results(pair, TableStatistics()), compare_results(variants(pair), TableStatistics())
    titles = [[column.title for column in differences_table(c, 1).columns] for c in (once, again)]
    assert ("queries needed" in titles[0], "clusters needed" in titles[1]) == (True, True)
    assert "by cluster" in describe_statistics(again) and "cluster" not in describe_statistics(once)
    board = build_leaderboard(variants(pair), "nDCG@10")
    assert f" in {board.clusters} clusters" in board_heading(board)
    assert "by cluster" in verdict(board)


def test_a_sample_of_few_clusters_is_marked_as_small_however_many_queries_there_are() -> None:
    few, enough = variants(systems(10)), variants(systems(30))
    assert few[0].dataset.queries == 50
    for results, is_marked in ((few, True), (enough, False)):
        titles = [intervals_of(results[0]), leaderboard_table(build_leaderboard(results, "nDCG@10")).columns[3].title]
        assert ["small sample" in title for title in titles] == [is_marked, is_marked], titles


def test_the_winner_is_tested_against_the_default_by_cluster() -> None:
    once, _, best = systems()
    expected = compare_with_default(best, once, Statistics())
    found = compare_with_default(with_variants(best, TIMES), with_variants(once, TIMES), Statistics())
    assert expected is not None
    assert found is not None
    own, other = found.difference, expected.difference
    assert (own.p, own.low, own.high) == (other.p, pytest.approx(other.low), pytest.approx(other.high))


def test_variants_are_in_one_fold_and_leave_the_interval_of_a_choice_as_wide() -> None:
    rng = np.random.default_rng(0)
    scores, kinds = rng.random((4, 30)), ["x", "y"] * 15
    again, clusters = np.repeat(scores, TIMES, axis=1), np.repeat(np.arange(30), TIMES)
    once = folds(kinds, np.ones(30, dtype=np.bool_), seed=1)
    dealt = folds(np.repeat(kinds, TIMES).tolist(), np.ones(150, dtype=np.bool_), seed=1, clusters=clusters)
    np.testing.assert_array_equal(dealt, np.repeat(once, TIMES))
    expected = estimate_nested_intervals(scores, scores[None], once, resamples=200)
    found = estimate_nested_intervals(again, again[None], dealt, resamples=200, clusters=clusters)
    np.testing.assert_allclose(found, expected)


def test_predictors_are_correlated_by_cluster() -> None:
    rng = np.random.default_rng(0)
    predicted, truth = rng.random((2, 12))
    once = correlations({"WIG": predicted}, truth)["WIG"]
    clusters = np.repeat(np.arange(12), TIMES)
    again = correlations({"WIG": np.repeat(predicted, TIMES)}, np.repeat(truth, TIMES), clusters)["WIG"]
    assert vars(again) == pytest.approx(vars(once))


def measured_again(times: int) -> Result:
    """Return the result of 6 queries, each of them so many times."""
    ids, clusters = [f"q{i}.{t}" for i in range(6) for t in range(times)], [f"q{i}" for i in range(6)]
    n, depth = len(ids), 3
    corpus = Corpus([f"d{i}" for i in range(8)], [""] * 8)
    golds = np.repeat(np.arange(6, dtype=np.int32), times)
    found = np.repeat(np.array([[0, 1, 2], [0, 1, 2], [2, 0, 1], [3, 4, 5], [0, 4, 1], [7, 6, 5]]), times, axis=0)
    from runner.datasets.base import Judgments

    judgments = Judgments(np.arange(n, dtype=np.int32), golds, np.ones(n, np.int32))
    scores = np.tile(np.arange(depth, 0, -1, dtype=np.float32), (n, 1))
    labels = [c for c in clusters for _ in range(times)] if times > 1 else []
    gold = [[corpus.ids[g]] for g in golds]
    measurements = measure(
        Rankings(found.astype(np.int32), scores),
        Grader(judgments, n, 8),
        MetricSettings(k_values=(3,)),
        Statistics(),
        JudgedQueries(ids, [""] * n, [""] * n, gold, [[1]] * n, clusters=labels),
        RankedDocuments(corpus.ids),
    )
    return Result(
        **vars(measurements),
        name="r",
        retriever="r",
        config={},
        config_hash="",
        dataset=DatasetSummary("d", "test", "f", "c", 8, n, n),
        timings=Timings(0.0, 0.0, 0.0, 0.0, None, None),
    )


def test_intervals_use_clusters_and_records_store_them(tmp_path: Path) -> None:
    once, again = measured_again(1), measured_again(TIMES)
    for name, interval in once.intervals.items():
        assert again.intervals[name] == pytest.approx(interval, nan_ok=True)
    save_record(again, tmp_path / "again")
    save_record(once, tmp_path / "once")
    assert load_record(tmp_path / "again").queries.clusters == again.queries.clusters
    assert load_record(tmp_path / "once").queries.clusters == ()
    np.testing.assert_array_equal(
        load_record(tmp_path / "again").queries.cluster_numbers, number_clusters(again.queries.clusters)
    )
    assert load_record(tmp_path / "once").queries.cluster_numbers is None
