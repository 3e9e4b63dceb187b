"""Systems against one of them and against each other: what is tested is what is reported."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from retrievers.choices import list_choices
from runner.statistics.comparison import Differences, compare, compare_pairs, compare_to
from runner.statistics.corrections import benjamini_hochberg, holm, level_of_each, run_randomised_tukey
from runner.statistics.effects import hedges_g, queries_needed
from runner.statistics.inversion import invert_permutation_test, withhold_intervals
from runner.statistics.maxt import run_max_t
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Statistics, Test
from runner.statistics.significance import compute_differences, t_test
from tests.statistics.examples import Floats, p_values, unequal

TESTS = tuple(PAIRED_TESTS)
CORRECTIONS = tuple(list_choices(CorrectionName))


def to(reference: int, scores: Floats, **options: Any) -> Differences:
    return compare_to(reference, scores, compare_pairs(scores, Statistics(**options)))


@pytest.fixture
def scores() -> Floats:
    return unequal()


def test_systems_are_compared_to_the_best(scores: Floats) -> None:
    best = int(np.argmax(scores.mean(axis=1)))
    table = to(best, scores)
    np.testing.assert_allclose(table.differences, scores.mean(axis=1) - scores[best].mean())
    assert table.significant.tolist() == [True, True, False, True, False]
    assert (table.wins + table.ties + table.losses == 60).all()
    assert (table.differences[best], table.p_values[best]) == (0, 1)
    np.testing.assert_array_equal(table.p_values, run_max_t(scores).p_values[best])


def test_a_row_of_differences_is_a_value(scores: Floats) -> None:
    rows = compare(compute_differences(scores, scores[2])[:2], Statistics(correction="holm"))
    one = rows.describe(1)
    assert one.mean == pytest.approx(scores[1].mean() - scores[2].mean())
    assert (one.low, one.high) == tuple(rows.intervals[1])
    assert (one.p, one.corrected) == (rows.uncorrected[1], rows.p_values[1])
    level = level_of_each(rows.uncorrected, 0.05, "holm")
    assert (one.effect, one.needed) == (rows.effects[1], queries_needed(rows.differences, rows.deviations, level)[1])
    assert (one.queries, one.differing) == (60, one.wins + one.losses)
    assert one.differing == np.count_nonzero(scores[1] != scores[2])


def test_wins_and_losses_skip_queries_that_do_not_count() -> None:
    table = to(1, np.array([[1.0, 0.5, 0.5, np.nan], [0.5, 0.5, 0.75, 1.0], [np.nan] * 4]))
    assert (table.wins[0], table.ties[0], table.losses[0]) == (1, 1, 1)
    assert np.isnan(table.differences[2])
    assert not table.significant.any()


def test_one_system_alone_is_the_best() -> None:
    table = to(0, np.array([[0.5, 1.0]]))
    assert (table.p_values.tolist(), table.significant.tolist()) == ([1], [False])


def test_more_permutations_are_a_finer_p_value() -> None:
    scores = np.vstack([np.ones(50), np.zeros(50)])
    assert to(0, scores, permutations=99).p_values[1] == pytest.approx(1 / 100)
    assert to(0, scores, permutations=999).p_values[1] == pytest.approx(1 / 1000)


@pytest.mark.parametrize("test", TESTS)
def test_a_difference_to_the_best_is_corrected_for_all_pairs(test: Test, scores: Floats) -> None:
    first, second = np.triu_indices(5, 1)
    each = p_values(compute_differences(scores[first], scores[second]), test)
    expected = dict(zip(zip(first.tolist(), second.tolist(), strict=True), benjamini_hochberg(each), strict=True))
    found = to(2, scores, test=test, correction="bh").p_values
    assert found.tolist() == [expected[0, 2], expected[1, 2], 1, expected[2, 3], expected[2, 4]]


def test_tukeys_correction_is_that_of_all_pairs(scores: Floats) -> None:
    expected = run_randomised_tukey(scores, 1000, seed=3).p_values
    found = to(2, scores, permutations=1000, seed=3, correction="tukey")
    np.testing.assert_array_equal(found.p_values, expected[2])


@pytest.mark.parametrize("test", ["permutation", "t", "bootstrap"])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("queries", [6, 9, 40])
def test_an_interval_excludes_0_exactly_where_its_p_value_is_small(
    queries: int, correction: CorrectionName, test: Test
) -> None:
    """Percentile intervals of the bootstrap, beside p-values of sign flips, contradicted one row in twenty."""
    rng = np.random.default_rng(queries)
    easy = rng.random((12, 1, queries))
    shifts = rng.normal(0, 0.15, (12, 5, 1))
    for scores in np.round(np.clip(easy + rng.normal(0, 0.3, (12, 5, queries)) + shifts, 0, 1), 1):
        best = int(np.argmax(scores.mean(axis=1)))
        found = to(best, scores, permutations=300, test=test, correction=correction)
        excludes = (found.intervals[:, 0] > 0) | (found.intervals[:, 1] < 0)
        np.testing.assert_array_equal(excludes, found.p_values < 0.05)
        rows = compare(compute_differences(scores, scores[best]), Statistics(permutations=300, test=test))
        excludes = (rows.intervals[:, 0] > 0) | (rows.intervals[:, 1] < 0)
        np.testing.assert_array_equal(excludes, rows.uncorrected < 0.05)


def test_too_few_queries_have_no_interval(scores: Floats) -> None:
    assert np.isnan(to(0, scores[:2, :5]).intervals[1]).all()
    assert np.isnan(compare(compute_differences(scores[:1, :5], scores[1, :5])).intervals).all()


@pytest.mark.parametrize("test", list_choices(Test))
@pytest.mark.parametrize(("differing", "bounded"), [(0, False), (3, False), (4, True)])
def test_systems_that_differ_on_few_queries_have_no_interval(test: Test, differing: int, bounded: bool) -> None:
    scores = np.zeros((2, 30))
    scores[1, :differing] = 1
    found = to(0, scores, test=test, permutations=400)
    assert np.isnan(found.intervals[1]).any() != bounded
    assert found.differences[1] == pytest.approx(differing / 30)
    rows = compare(compute_differences(scores[1:], scores[:1]), Statistics(test=test, permutations=400))
    assert np.isnan(rows.intervals).any() != bounded
    if bounded:
        assert rows.intervals[0, 0] < differing / 30 < rows.intervals[0, 1]


def test_an_interval_needs_enough_clusters_that_differ_not_just_queries() -> None:
    differences = np.zeros((1, 40))
    differences[0, :8] = 0.5
    assert not np.isnan(compare(differences).intervals).any()
    clusters = np.arange(40) // 4
    assert np.isnan(compare(differences, clusters=clusters).intervals).all()


def test_intervals_of_hits_cover_the_true_difference_as_often_as_they_say() -> None:
    """Without the rule, the intervals of a third of such samples are empty or have one sign, and do not cover."""
    rng = np.random.default_rng(0)
    samples = rng.choice([0.0, 1.0, -1.0], p=[0.9, 0.08, 0.02], size=(2000, 30))
    low, high = compare(samples, Statistics(permutations=400)).intervals.T
    given = ~np.isnan(low)
    assert 0.2 < given.mean() < 0.6
    assert np.mean((low <= 0.06) & (high >= 0.06), where=given) > 0.93
    low, high = invert_permutation_test(samples, 0.05, 400).T
    assert np.mean((low <= 0.06) & (high >= 0.06)) < 0.9


def test_what_is_said_of_a_difference_is_of_the_same_queries(scores: Floats) -> None:
    scores[0, 10:20] = np.nan
    scores = np.insert(scores, 30, np.nan, axis=1)
    found = to(1, scores, confidence=0.8, seed=5, correction="none")
    differences = compute_differences(scores, scores[1])
    assert found.queries.tolist() == [50, 60, 60, 60, 60]
    np.testing.assert_allclose(found.differences, np.nanmean(differences, axis=1))
    np.testing.assert_allclose(found.deviations, np.nanstd(differences, axis=1, ddof=1))
    np.testing.assert_allclose(found.effects, hedges_g(differences))
    counted = np.delete(differences, 30, axis=1)
    expected = withhold_intervals(invert_permutation_test(counted, 0.2, seed=5), counted)
    np.testing.assert_allclose(found.intervals, expected, atol=1e-12)
    assert np.isnan(found.intervals).all(axis=1).tolist() == [False, True, False, False, False]


def test_variants_of_a_query_are_one_observation(scores: Floats) -> None:
    """Each query three times says no more than once; taken as independent, it would be three times as sure."""
    clusters = np.repeat(np.arange(20), 3)
    once, thrice = scores[:, :20], np.repeat(scores[:, :20], 3, axis=1)
    for correction in ("maxt", "holm", "none"):
        alone = to(2, once, correction=correction, permutations=400)
        pairs = compare_pairs(thrice, Statistics(correction=correction, permutations=400), clusters)
        variants = compare_to(2, thrice, pairs, clusters)
        assert variants.units.tolist() == [20] * 5
        assert variants.queries.tolist() == [60] * 5
        np.testing.assert_allclose(variants.p_values, alone.p_values)
        np.testing.assert_allclose(variants.intervals, alone.intervals, atol=1e-9)
        np.testing.assert_allclose(variants.effects, alone.effects)
    for test in TESTS:
        statistics = Statistics(test=test, permutations=400)
        rows = compare(compute_differences(thrice, thrice[2]), statistics, clusters)
        expected = compare(compute_differences(once, once[2]), statistics)
        np.testing.assert_allclose(rows.p_values, expected.p_values)
        np.testing.assert_allclose(rows.intervals, expected.intervals, atol=1e-9)


def test_rows_of_differences_are_one_family(scores: Floats) -> None:
    rows = np.vstack([compute_differences(scores, scores[2]), compute_differences(scores, scores[3])])
    found = compare(rows, Statistics(test="t"))
    np.testing.assert_allclose(found.p_values, holm(t_test(rows)), atol=1e-12)
    np.testing.assert_allclose(found.uncorrected, t_test(rows), atol=1e-12)
    with pytest.raises(ValueError, match="correction=tukey"):
        compare(rows, Statistics(correction="tukey"))
    assert compare(rows[:0]).p_values.tolist() == []


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_all_pairs_are_as_each_pair_alone(test: Test, correction: CorrectionName, scores: Floats) -> None:
    found = compare_pairs(scores, Statistics(permutations=400, test=test, correction=correction)).p_values
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 1).all()
    first, second = upper = np.triu_indices(5, 1)
    alone = p_values(compute_differences(scores[first], scores[second]), test, 400)
    if correction in ("holm", "bh"):
        corrected = {"holm": holm, "bh": benjamini_hochberg}[correction]
        np.testing.assert_array_equal(found[upper], corrected(alone))
    if correction == "none":
        np.testing.assert_array_equal(found[upper], alone)
        wanted = np.zeros((5, 5), dtype=np.bool_)
        wanted[1, 2] = wanted[2, 1] = True
        alone_each = Statistics(permutations=400, test=test, correction="none")
        some = compare_pairs(scores, alone_each, wanted=wanted).p_values
        assert some[1, 2] == found[1, 2]
        assert np.count_nonzero(np.isnan(some)) == 18


def test_max_t_is_that_of_the_test_and_holm_replaces_it_where_there_is_none(
    scores: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_t = compare_pairs(scores, Statistics(test="t", correction="maxt")).p_values
    np.testing.assert_array_equal(by_t, compare_pairs(scores, Statistics(test="t", correction="holm")).p_values)
    max_t = run_max_t(scores, seed=5)
    monkeypatch.setitem(PAIRED_TESTS, "t", replace(PAIRED_TESTS["t"], run_max_t=lambda *_, **__: max_t))  # type: ignore[arg-type]  # a dict
    assert compare_pairs(scores, Statistics(test="t", correction="maxt")).p_values is max_t.p_values


@pytest.mark.parametrize("test", TESTS)
def test_a_single_pair_is_the_single_test_of_the_same_differences(test: Test, scores: Floats) -> None:
    of_pair, alone = Statistics(test=test), Statistics(test=test, correction="none")
    for pair in combinations(scores, 2):
        two = np.stack(pair)
        own = compare(compute_differences(two[1:], two[0]), alone).describe(0)
        pair_alone = compare_to(0, two, compare_pairs(two, of_pair)).describe(1)
        assert vars(pair_alone) == pytest.approx(vars(own), rel=1e-9, abs=1e-12)


def test_letters_tell_which_systems_differ_and_the_best_has_the_first(scores: Floats) -> None:
    found = compare_pairs(scores, Statistics(test="t", correction="holm"))
    assert found.letters(range(5)) == ["d", "c", "a", "b", "a"]
    assert found.letters([1, 2, 4]) == ["b", "a", "a"]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_identical_systems_never_differ(test: Test, correction: CorrectionName) -> None:
    same = np.tile(unequal()[0], (4, 1))
    same[3] = (same[3] + 0.1) - 0.1  # but for rounding
    found = compare_pairs(same, Statistics(permutations=200, test=test, correction=correction))
    assert (found.p_values == 1).all()
    assert found.letters(range(4)) == ["a"] * 4
    table = compare_to(0, same, found)
    assert table.ties.tolist() == [60] * 4


def test_many_pairs_get_the_permutations_that_their_correction_needs() -> None:
    """Fifteen systems are 105 pairs: below 4,200 permutations Holm's correction lets none of them be significant."""
    scores = np.vstack([np.ones((1, 60)), np.zeros((14, 60))])
    found = compare_pairs(scores, Statistics(permutations=50, correction="holm"))
    assert (found.p_values[0, 1:] < 0.05).all()
    assert found.letters(range(15)) == ["a"] + ["b"] * 14


def test_no_system_and_one_are_no_pairs() -> None:
    assert compare_pairs(np.empty((0, 5))).letters([]) == []
    assert compare_pairs(np.ones((1, 5))).letters([0]) == ["a"]


def test_only_small_p_values_are_tested_with_more_permutations() -> None:
    rng = np.random.default_rng(3)
    differences = np.round(rng.normal(np.linspace(0, 0.12, 400)[:, None], 0.3, (400, 60)), 12)
    table = compare(differences, Statistics(correction="holm", permutations=999))
    once = PAIRED_TESTS["permutation"].compute_p_values(differences, 999, 0, None, None)
    more = PAIRED_TESTS["permutation"].compute_p_values(differences, 16_000, 0, None, None)
    small = once < 0.01
    assert 20 < np.count_nonzero(small) < 380
    np.testing.assert_array_equal(table.uncorrected[~small], once[~small])
    np.testing.assert_array_equal(table.uncorrected[small], np.minimum(more[small], 0.01))
    excluded = (table.intervals > 0).all(axis=1) | (table.intervals < 0).all(axis=1)
    np.testing.assert_array_equal(excluded, table.uncorrected < 0.05)


def test_p_values_of_two_stages_are_valid() -> None:
    rng = np.random.default_rng(4)
    differences = np.round(rng.standard_t(3, (4000, 40)), 12)
    p_values = compare(differences, Statistics(correction="holm", permutations=199)).uncorrected
    for alpha in (0.001, 0.005, 0.01, 0.05, 0.2):
        limit = alpha + 4 * np.sqrt(alpha * (1 - alpha) / 4000)  # four standard errors
        assert np.mean(p_values <= alpha) <= limit


@pytest.mark.parametrize("correction", ["maxt", "tukey", "holm"])
def test_the_level_of_a_pair_shrinks_with_the_number_of_pairs(correction: CorrectionName) -> None:
    scores = np.random.default_rng(1).random((8, 200))
    differences = compute_differences(scores[:1], scores[1:2])
    two, all_pairs = (
        compare_pairs(some, Statistics(correction=correction)).levels(differences)[0] for some in (scores[:2], scores)
    )
    assert two == 0.05
    assert 0.0005 < all_pairs < 0.01
