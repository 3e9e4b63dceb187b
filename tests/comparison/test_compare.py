"""Results side by side: what is said of them is what arithmetic says, and what is not comparable is refused."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runner.comparison.agreement import measure_pair
from runner.comparison.comparability import NotComparable, compute_depth, reorder_queries
from runner.comparison.compare import (
    Comparison,
    TableStatistics,
    compare_results,
    compute_mean,
    summarise_times,
)
from runner.comparison.leaderboard import build_leaderboard
from runner.evaluation.result import QueryTable, Result, ResultError
from runner.results.golden_reports import read_report
from runner.statistics.effects import queries_needed
from runner.statistics.significance import moments
from tests.pages.factory import result

QUICK = TableStatistics(permutations=500)
SEVERAL = "eval_20251221_070214_report.json"


def compared(*results: Result, **options: Any) -> Comparison:
    return compare_results(results, QUICK, **options)


@pytest.fixture(scope="module")
def two() -> Comparison:
    return compared(result("a", seed=1), result("b", seed=2, quality=0.8))


@pytest.fixture
def published(real_golden: Path) -> Comparison:
    return compared(*read_report(real_golden / "reports" / SEVERAL))


def shuffled(of: Result, seed: int = 3) -> Result:
    """Return the same result with its queries in another order."""
    order = np.random.default_rng(seed).permutation(len(of.queries.ids)).tolist()
    return reorder_queries(of, [of.queries.ids[i] for i in order])


def test_means_and_differences_are_those_of_the_queries(two: Comparison) -> None:
    a, b = two.results
    for measure, (first, other) in two.table.items():
        if measure == "tn_rate":
            continue
        assert first.mean == pytest.approx(a.means[measure])
        assert other.mean == pytest.approx(b.means[measure])
        own = other.difference
        assert own.mean == pytest.approx(b.means[measure] - a.means[measure])
        assert other.relative == pytest.approx(b.means[measure] / a.means[measure] - 1)
        assert own.low <= own.mean <= own.high
        assert own.wins + own.ties + own.losses == own.queries == 30


def test_the_effect_is_bias_corrected_and_the_same_as_on_a_leaderboard(two: Comparison) -> None:
    a, b = (of.of(two.primary)[:30] for of in two.results)
    t, _ = stats.ttest_rel(b, a)
    effect = two.table[two.primary][1].difference.effect
    assert effect == pytest.approx(t / math.sqrt(30) * (1 - 3 / (4 * 29 - 1)), rel=1e-3)
    board = build_leaderboard([two.results[0], two.results[1]], two.primary)
    assert [abs(row.difference.effect) for row in board.rows[1:]] == [pytest.approx(abs(effect))]


def test_uncorrected_p_values_are_those_of_scipy() -> None:
    statistics = TableStatistics(test="t", correction="none")
    comparison = compare_results([result("a"), result("b", seed=5)], statistics)
    a, b = (of.of("nDCG@10")[:30] for of in comparison.results)
    assert comparison.table["nDCG@10"][1].difference.p == pytest.approx(stats.ttest_rel(b, a).pvalue, abs=1e-6)


def test_the_primary_measure_is_corrected_for_candidates_and_no_other_measure() -> None:
    results = [result("a"), result("b", seed=5), result("c", seed=6)]
    holm = compare_results(results, TableStatistics(test="t"), rules=["RR"])
    assert holm.count_tests() == {"primary": 2, "gate": 2, "exploratory": 2 * (len(holm.table) - 2)}
    for family, count in holm.count_tests().items():
        rows = [row for measure, row in holm.table.items() if holm.find_family(measure) == family]
        tested = [versus.difference for row in rows for versus in row[1:]]
        smallest = min(tested, key=lambda own: own.p)
        assert smallest.corrected == pytest.approx(min(1, count * smallest.p))
    alone = compare_results(results[:2], TableStatistics(test="t")).table["nDCG@10"][1].difference
    assert alone.corrected == alone.p == holm.table["nDCG@10"][1].difference.p


def test_the_queries_needed_are_those_of_the_corrected_test() -> None:
    comparison = compare_results([result("a"), result("b", seed=5)], TableStatistics(test="t"))
    for family, tests in comparison.count_tests().items():
        tested = {m: row[1].difference for m, row in comparison.table.items() if comparison.find_family(m) == family}
        level = 0.05 / max(tests - sum(own.significant for own in tested.values()), 1)
        for measure, own in tested.items():
            first, second = comparison.scores[measure]
            _, means, deviations = moments((second - first)[None, :])
            assert own.needed == queries_needed(means, deviations, level)[0]
    assert {"primary": 1, "exploratory": len(comparison.table) - 1} == comparison.count_tests()


def test_identical_results_tie_everywhere() -> None:
    comparison = compared(result("a"), result("a"))
    assert all(comparison.winner(measure) == "tie" for measure in comparison.table)
    assert all(other.difference.mean == 0 and other.difference.p == 1 for _, other in comparison.table.values())
    assert comparison.list_changes(1) == []
    (agreement,) = comparison.agreement.values()
    assert agreement.coefficients == dict.fromkeys(agreement.coefficients, 1)


def test_agreement_covers_queries_with_gold_that_both_results_answered() -> None:
    a, b, c = result("a"), result("b", seed=2, errors={3: "timed out"}), result("c", seed=3, errors={5: "timed out"})
    comparison = compared(a, b, c)
    assert list(comparison.agreement.values()) == [measure_pair(a, b), measure_pair(a, c)]
    assert measure_pair(a, b).queries == 29


def test_the_winner_has_the_highest_mean_and_some_may_share_it() -> None:
    a, b = result("a", seed=1, quality=0.3), result("b", seed=2, quality=0.8)
    comparison = compared(a, b, replace(b, name="c"))
    assert comparison.winner("nDCG@10") == ", ".join(comparison.labels[1:])


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_difference_has_the_other_sign_the_other_way_round(one: int, other: int) -> None:
    statistics = TableStatistics(permutations=20)
    a, b = result("a", seed=one, queries=14), result("b", seed=other, queries=14)
    there, back = (compare_results(pair, statistics).table["nDCG@10"][1].difference for pair in ((a, b), (b, a)))
    assert there.mean == pytest.approx(-back.mean)
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert there.p == back.p


def test_a_difference_that_is_but_rounding_needs_more_queries_than_there_are() -> None:
    scores = result("a").scores.copy()
    scores[:, :3] += [0.3, -0.1, -0.2]
    versus = compared(result("a"), replace(result("b"), scores=scores)).table["nDCG@10"][1]
    assert abs(versus.difference.mean) < 1e-15
    assert versus.difference.needed > 1e9


def test_the_order_of_queries_in_a_result_does_not_matter(two: Comparison) -> None:
    again = compared(two.results[0], shuffled(two.results[1]))
    for measure, row in two.table.items():
        for versus, expected in zip(again.table[measure], row, strict=True):
            np.testing.assert_equal(asdict(versus), asdict(expected))
    changes, expected_changes = again.list_changes(1), two.list_changes(1)
    assert changes == expected_changes
    assert [(c.before, c.after) for c in changes] == [(c.before, c.after) for c in expected_changes]
    assert again.agreement == two.agreement


def test_changes_are_sorted_by_difference_and_include_the_hits(two: Comparison) -> None:
    changes = two.list_changes(1)
    differences = [change.difference for change in changes]
    assert differences == sorted(differences, reverse=True)
    a, b = (of.of(two.primary) for of in two.results)
    for change in changes:
        i = two.queries.ids.index(change.after.id)
        assert change.difference == pytest.approx(b[i] - a[i])
        assert change.before.retrieved
        assert change.after.text == two.queries.texts[i]


def test_queries_that_failed_somewhere_are_left_out_and_named() -> None:
    comparison = compared(result("a"), result("b", errors={3: "timed out", 5: "timed out"}))
    assert np.count_nonzero(~np.isnan(comparison.scores["nDCG@10"][0])) == 28
    assert any(note.startswith("without q003, q005, because") for note in comparison.notes)
    first, other = comparison.table["nDCG@10"]
    assert other.difference.mean == pytest.approx(other.mean - first.mean)


def test_where_no_query_counts_for_both_nothing_is_claimed() -> None:
    a, b = (
        result(n, queries=4, no_result=0, errors=dict.fromkeys(some, "x")) for n, some in (("a", [0, 1]), ("b", [2, 3]))
    )
    versus = compared(a, b).table["nDCG@10"][1]
    assert math.isnan(versus.difference.mean)
    assert not versus.difference.significant


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda r: replace(r, dataset=replace(r.dataset, fingerprint="0" * 32)), "different datasets"),
        (lambda r: replace(r, dataset=replace(r.dataset, fingerprint="0", corpus_fingerprint="1")), "their documents"),
        (lambda r: replace(r, primary="RR"), "the primary measures differ (nDCG@10 of a, RR of b"),
        (lambda r: unlike(r, texts="x"), "their query texts (of q000"),
        (lambda r: unlike(r, types="x"), "their query types (of q000"),
        (lambda r: unlike(r, expected=["x"]), "their expected items (of q000"),
        (lambda r: unlike(r, ids="x"), "their queries (q000, x in only one of them)"),
        (lambda r: replace(unlike(r, ids="x"), dataset=r.dataset), "their queries (q000, x in only one of them)"),
    ],
)
def test_what_was_measured_otherwise_is_refused_by_what_differs(other: Any, said: str) -> None:
    with pytest.raises(NotComparable) as caught:
        compared(result("a"), other(result("b")))
    assert said in str(caught.value)


def unlike(of: Result, **first: Any) -> Result:
    """Return a result without a fingerprint, as of a report, whose first query is another."""
    columns = {name: list(column) for name, column in vars(of.queries).items()}
    for name, value in first.items():
        columns[name][0] = value
    return replace(of, queries=QueryTable(**columns), dataset=replace(of.dataset, fingerprint=""))


def test_different_gold_of_the_same_dataset_is_compared_with_a_note() -> None:
    own = result("b")
    comparison = compared(result("a"), replace(unlike(own, expected=["d0"]), dataset=own.dataset), result("c"))
    assert "Measured on the same dataset" in comparison.same
    assert comparison.notes == [
        "1 of 34 queries have different gold in b and a (q000); each result is measured against its own gold"
    ]


def test_a_query_of_which_nothing_is_expected_in_one_is_left_out_and_that_is_said() -> None:
    a, b = result("a"), result("b")
    scores = b.scores.copy()
    scores[:, 0] = np.nan
    changed = replace(unlike(b, expected=[], statuses="true_negative"), scores=scores, dataset=b.dataset)
    notes = compared(a, changed).notes
    assert any(note.startswith("without q000, because they have no gold in some results") for note in notes)
    assert not any("failed" in note for note in notes)


def test_a_report_is_compared_by_its_queries_and_that_is_said() -> None:
    comparison = compared(result("a"), unlike(result("b")))
    assert "same queries, types and expected items" in comparison.same


def test_measures_of_whole_rankings_are_left_out_where_the_depths_differ() -> None:
    deep, shallow = (replace(result(n), config={"metrics": {"depth": d}}) for n, d in (("a", 100), ("b", 10)))
    comparison = compared(deep, shallow)
    assert "RR" not in comparison.table
    assert any(
        "without RR, AP, because the depths of the rankings differ (100, 10)" in note for note in comparison.notes
    )
    with pytest.raises(NotComparable, match="RR depends on the depth of the rankings"):
        compared(deep, shallow, primary="RR")


def test_the_depth_of_a_service_with_unknown_documents_is_not_capped_at_the_corpus() -> None:
    local = replace(result("a"), config={"metrics": {"depth": 10**6}})
    assert local.hits is not None
    service = replace(local, hits=replace(local.hits, unknown=frozenset(local.hits.documents[:1])))
    assert compute_depth(local) == local.dataset.documents < 10**6
    assert compute_depth(service) == 10**6


def test_the_depth_of_a_search_of_chunks_is_limited_by_their_number() -> None:
    local = replace(result("a"), config={"metrics": {"depth": 10**6}})
    chunked = replace(local, dataset=replace(local.dataset, chunks=3 * local.dataset.documents))
    assert compute_depth(chunked) == 3 * local.dataset.documents


@pytest.mark.parametrize("metrics", [{"depth": "os:system"}, {"depth": None}, "depth", ["depth"]])
def test_a_record_whose_depth_is_not_a_number_is_not_comparable(metrics: object) -> None:
    with pytest.raises(NotComparable, match=r"^a: metrics\.depth of its record is not a number"):
        compute_depth(replace(result("a"), config={"metrics": metrics}))


def test_a_measure_that_one_lacks_is_reported_as_missing() -> None:
    with pytest.raises(ResultError, match="a has no P@7"):
        compared(result("a"), result("b"), primary="P@7")


def test_no_result_queries_have_a_measure_of_their_own(two: Comparison) -> None:
    first, _ = two.table["tn_rate"]
    assert first.mean == two.results[0].abstention.everything.tn_rate
    assert "tn_rate" not in compared(result("a", no_result=0), result("b", no_result=0)).table


def test_unknown_times_are_left_out_of_the_summary() -> None:
    known = replace(result().timings, each_ms=[1.0, None, 3.0, 8.0])
    told = summarise_times(replace(result(), timings=known))
    assert (told.mean, told.median, told.least, told.most) == (4.0, 3.0, 1.0, 8.0)
    told = summarise_times(result(mean_ms=None))
    assert (told.mean, told.median, told.p95, told.least, told.most) == (None,) * 5


def test_differences_and_agreement_are_those_that_the_published_report_has(
    published: Comparison, real_golden: Path
) -> None:
    said = json.loads((real_golden / "reports" / SEVERAL).read_text(encoding="utf-8"))["comparison"]
    names = {"precision": "P", "recall": "R"}
    for key, figures in said["metric_differences"].items():
        name, _, cutoff = key.partition("@")
        if name in names or name == "mrr":
            measure = f"{names[name]}@{cutoff}" if cutoff else "RR"
            first, other = published.table[measure]
            assert first.mean == pytest.approx(figures["bm25"], abs=1e-12)
            assert other.mean == pytest.approx(figures["vector"], abs=1e-12)
            assert other.difference.mean == pytest.approx(figures["difference"], abs=1e-9)
            assert other.relative * 100 == pytest.approx(figures["percent_change"], abs=1e-6)
            assert published.winner(measure) == figures["winner"]
    (agreement,) = published.agreement.values()
    for name, theirs in (
        ("rank_1", "rank_1_agreement"),
        ("jaccard@3", "top_3_overlap"),
        ("jaccard@5", "top_5_overlap"),
    ):
        assert agreement.coefficients[name] == pytest.approx(said["agreement"][theirs], abs=1e-12)


def test_an_oracle_is_at_least_as_good_as_the_best(published: Comparison) -> None:
    assert published.headroom.oracle >= published.headroom.mean
    assert published.headroom.mean == pytest.approx(compute_mean(published.scores["nDCG@10"][1]))


def test_published_reports_of_different_days_can_be_compared(real_golden: Path) -> None:
    reports = sorted((real_golden / "reports").glob("*.json"))
    comparison = compared(*(found for file in reports for found in read_report(file)))
    assert comparison.labels[1:] == ["bm25", "vector", "vector-lc"]
    assert len(comparison.list_changes(2)) > 0
