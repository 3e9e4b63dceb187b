"""Intervals and paired tests, against scipy and by hand."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.analysis.significance import bootstrap_interval, compare_to, holm, permutation_test

Floats = NDArray[np.float64]


@pytest.fixture
def scores() -> Floats:
    """Five systems on 60 queries of unequal difficulty: the third is the best, the last all but equal to it."""
    rng = np.random.default_rng(7)
    easy = rng.beta(2, 2, 60)
    quality = np.array([0.3, 0.5, 0.9, 0.6, 0.9])
    found: Floats = np.clip(easy * quality[:, None] + rng.normal(0, 0.05, (5, 60)), 0, 1)
    found[4] = found[2]
    found[4, :4] -= [0.01, -0.01, 0.02, 0.01]
    return found


def test_the_interval_is_that_of_scipy(scores: Floats) -> None:
    ours = bootstrap_interval(scores, resamples=20000)
    for values, interval in zip(scores, ours, strict=True):
        theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=20000, method="percentile", rng=1)
        np.testing.assert_allclose(interval, theirs.confidence_interval, atol=0.05 * np.ptp(interval))


def test_the_interval_narrows_with_queries_and_widens_with_confidence(scores: Floats) -> None:
    few, many = bootstrap_interval(scores[0, :15]), bootstrap_interval(np.tile(scores[0], 4))
    assert np.ptp(few) > 2 * np.ptp(many)
    assert np.ptp(bootstrap_interval(scores[0], 0.99)) > np.ptp(bootstrap_interval(scores[0], 0.9))


def test_an_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(3).uniform(0, 1, (1000, 40))
    low, high = bootstrap_interval(samples, confidence=0.9).T
    assert 0.87 < np.mean((low <= 0.5) & (high >= 0.5)) < 0.93


def test_a_system_has_the_same_interval_and_p_value_alone_as_among_others(scores: Floats) -> None:
    differences = scores - scores[2]
    for row in range(5):
        np.testing.assert_allclose(bootstrap_interval(scores)[row], bootstrap_interval(scores[row]), atol=1e-12)
        assert permutation_test(differences)[row] == permutation_test(differences[[row]])[0]


def test_the_same_seed_gives_the_same_and_another_seed_nearly_the_same(scores: Floats) -> None:
    first, again, other = (bootstrap_interval(scores, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(first, other, atol=0.02)


def test_queries_that_do_not_count_are_as_if_they_were_not_there(scores: Floats) -> None:
    gaps = scores[:2] - scores[2]
    gaps[0, 10:30] = np.nan
    np.testing.assert_allclose(
        permutation_test(gaps)[0], permutation_test(np.delete(gaps[:1], np.s_[10:30], axis=1))[0], atol=0.01
    )
    present = bootstrap_interval(np.delete(gaps[0], np.s_[10:30]))
    np.testing.assert_allclose(bootstrap_interval(gaps)[0], present, atol=0.1 * np.ptp(present))
    assert np.isnan(bootstrap_interval(np.full((1, 5), np.nan))).all()
    assert np.isnan(bootstrap_interval(np.empty((3, 0)))).all()


@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.125, 0.5, 1.0]), min_size=2, max_size=8))
def test_few_queries_are_tested_exactly_as_by_scipy(differences: list[float]) -> None:
    theirs = scipy.stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    ours = permutation_test(np.array([differences]))[0]
    signs = itertools.product([-1, 1], repeat=len(differences))
    sums = np.array([np.dot(sign, differences) for sign in signs])
    assert ours == pytest.approx(np.mean(np.abs(sums) >= abs(sum(differences)) - 1e-9))
    assert ours == pytest.approx(min(theirs.pvalue, 1))


def test_many_queries_are_tested_as_by_scipy(scores: Floats) -> None:
    gaps = np.vstack([scores[1] - scores[3], (scores[1] - scores[3]) / 8 + np.random.default_rng(1).normal(0, 0.1, 60)])
    for row, ours in zip(gaps, permutation_test(gaps, resamples=20000), strict=True):
        theirs = scipy.stats.permutation_test(
            (row,), np.mean, permutation_type="samples", n_resamples=20000, alternative="two-sided", rng=2
        )
        assert ours == pytest.approx(theirs.pvalue, abs=0.012)


def test_a_sample_of_signs_comes_close_to_all_of_them() -> None:
    gaps = np.random.default_rng(5).normal(0.2, 0.5, (4, 12))
    exact = permutation_test(gaps)
    sampled = permutation_test(np.hstack([gaps, np.zeros((4, 1))]), resamples=20000)
    np.testing.assert_allclose(sampled, exact, atol=0.012)


def test_p_values_under_no_difference_are_as_often_small_as_they_say() -> None:
    gaps = np.random.default_rng(11).normal(0, 1, (2000, 25))
    p_values = permutation_test(gaps, resamples=2000)
    for alpha in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(p_values <= alpha) == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 2000))


def test_equal_systems_have_a_p_value_of_1_and_none_is_0() -> None:
    assert permutation_test(np.zeros((2, 30))).tolist() == [1, 1]
    assert permutation_test(np.zeros((1, 5))).tolist() == [1]
    assert permutation_test(np.empty((1, 0))).tolist() == [1]
    assert permutation_test(np.ones((1, 200)), resamples=999)[0] == pytest.approx(1 / 1000)


def test_holm_steps_down_and_never_lets_a_larger_p_pass_a_smaller() -> None:
    """Four tests by hand: 0.005 x 4, 0.01 x 3, then 0.03 x 2 = 0.06, which 0.04 x 1 may not undercut."""
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.5, 0.9, 0.6])), [1, 1, 1])
    assert holm(np.array([0.2])).tolist() == [0.2]
    assert holm(np.array([])).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p_values: list[float]) -> None:
    raw = np.array(p_values)
    corrected = holm(raw)
    assert (corrected >= raw).all()
    assert (corrected <= np.minimum(raw * len(raw), 1) + 1e-12).all()
    assert (np.diff(corrected[np.argsort(raw, kind="stable")]) >= 0).all()


def test_systems_are_compared_to_the_best(scores: Floats) -> None:
    best = int(np.argmax(scores.mean(axis=1)))
    table = compare_to(best, scores)
    np.testing.assert_allclose(table.differences, scores.mean(axis=1) - scores[best].mean())
    assert table.significant.tolist() == [True, True, False, True, False]
    assert (table.p_values >= permutation_test(scores - scores[best])).all()
    assert (table.wins + table.ties + table.losses == 60).all()


def test_the_reference_ties_with_itself_and_is_not_corrected_for(scores: Floats) -> None:
    table = compare_to(1, scores)
    assert (table.wins[1], table.ties[1], table.losses[1]) == (0, 60, 0)
    assert (table.differences[1], table.p_values[1]) == (0, 1)
    others = [0, 2, 3, 4]
    np.testing.assert_allclose(table.p_values[others], holm(permutation_test(scores[others] - scores[1])))


def test_wins_and_losses_skip_queries_that_do_not_count() -> None:
    table = compare_to(1, np.array([[1.0, 0.5, 0.5, np.nan], [0.5, 0.5, 0.75, 1.0], [np.nan] * 4]))
    assert (table.wins[0], table.ties[0], table.losses[0]) == (1, 1, 1)
    assert np.isnan(table.differences[2])
    assert not table.significant.any()


def test_one_system_alone_is_the_best() -> None:
    table = compare_to(0, np.array([[0.5, 1.0]]))
    assert (table.p_values.tolist(), table.significant.tolist()) == ([1], [False])


def test_more_permutations_are_a_finer_p_value() -> None:
    scores = np.vstack([np.ones(50), np.zeros(50)])
    assert compare_to(0, scores, permutations=99).p_values[1] == pytest.approx(1 / 100)
    assert compare_to(0, scores, permutations=999).p_values[1] == pytest.approx(1 / 1000)


def test_a_thousand_systems_are_tested_in_a_moment() -> None:
    gaps = np.random.default_rng(0).normal(0, 1, (1000, 300))
    start = time.perf_counter()
    permutation_test(gaps)
    assert time.perf_counter() - start < 5  # takes about 0.4 s; the rest is for a busy machine
