"""Intervals and paired tests, against scipy and by hand."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import Test
from runner.statistics.significance import (
    bootstrap_test,
    bound_p_values,
    compute_differences,
    mean_interval,
    moments,
    permutation_test,
    t_test,
)
from tests.statistics.examples import SAKAI, Floats, p_values, unequal


@pytest.fixture
def scores() -> Floats:
    return unequal()


def test_the_interval_is_that_of_scipy(scores: Floats) -> None:
    wide = 10 * scores  # not measures from 0 to 1, so that nothing is cut
    theirs = scipy.stats.t.interval(0.9, 59, wide.mean(axis=1), scipy.stats.sem(wide, axis=1))
    np.testing.assert_allclose(mean_interval(wide, 0.9), np.stack(theirs, axis=1))


def test_an_interval_of_measures_stays_from_0_to_1() -> None:
    low, high = mean_interval(np.array([0, 0, 0, 0, 0, 0, 0, 0, 0.1, 1]))
    assert low == 0
    assert 0.3 < high < 0.4
    low, high = mean_interval(np.array([0, 0, 0, 0, 0, 0, 0, 0, 0.1, 1]) - 0.01)
    assert low < 0


@pytest.mark.parametrize("hits", [0, 10])
def test_ten_equal_hits_or_misses_have_the_exact_interval(hits: int) -> None:
    """A bootstrap of them has no width, however many of the other queries are missed."""
    exact = scipy.stats.binomtest(hits, 10).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(mean_interval(np.full(10, hits / 10)), exact)


def test_equal_values_leave_room_for_what_a_small_sample_misses() -> None:
    ten, hundred = mean_interval(np.full(10, 0.3)), mean_interval(np.full(100, 0.3))
    assert ten[0] < hundred[0] < 0.3 < hundred[1] < ten[1]
    np.testing.assert_allclose(mean_interval(np.array([0.3])), [0.3 * 0.025, 0.3 * 0.025 + 0.975])
    assert np.isnan(mean_interval(np.array([3.0]))).all()


def test_an_interval_of_ten_rare_hits_covers_the_true_rate() -> None:
    """Three queries in a hundred have a hit: a percentile bootstrap covers that rate in 27 of 100 samples."""
    low, high = mean_interval((np.random.default_rng(4).random((1000, 10)) < 0.03).astype(np.float64)).T
    assert np.mean((low <= 0.03) & (high >= 0.03)) > 0.94


def test_the_interval_narrows_with_queries_and_widens_with_confidence(scores: Floats) -> None:
    few, many = mean_interval(scores[0, :15]), mean_interval(np.tile(scores[0], 4))
    assert np.ptp(few) > 2 * np.ptp(many)
    assert np.ptp(mean_interval(scores[0], 0.99)) > np.ptp(mean_interval(scores[0], 0.9))


def test_an_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(3).uniform(0, 1, (1000, 40))
    low, high = mean_interval(samples, confidence=0.9).T
    assert 0.87 < np.mean((low <= 0.5) & (high >= 0.5)) < 0.93


def test_a_system_has_the_same_interval_and_p_value_alone_as_among_others(scores: Floats) -> None:
    differences = scores - scores[2]
    for row in range(5):
        np.testing.assert_allclose(mean_interval(scores)[row], mean_interval(scores[row]), atol=1e-12)
        assert permutation_test(differences)[row] == permutation_test(differences[[row]])[0]


def test_queries_that_do_not_count_are_as_if_they_were_not_there(scores: Floats) -> None:
    gaps = scores[:2] - scores[2]
    gaps[0, 10:30] = np.nan
    np.testing.assert_allclose(
        permutation_test(gaps)[0], permutation_test(np.delete(gaps[:1], np.s_[10:30], axis=1))[0], atol=0.01
    )
    present = mean_interval(np.delete(gaps[0], np.s_[10:30]))
    np.testing.assert_allclose(mean_interval(gaps)[0], present)
    assert np.isnan(mean_interval(np.full((1, 5), np.nan))).all()
    assert np.isnan(mean_interval(np.empty((3, 0)))).all()


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


TESTS = tuple(PAIRED_TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_no_test_finds_a_difference_where_there_is_none_or_too_little_is_known(test: Test) -> None:
    nothing = np.zeros((1, 30))
    unknown = np.full((1, 30), np.nan)
    single = np.where(np.arange(30) == 7, 0.5, np.nan)[None]
    for rows in (nothing, unknown, single, nothing[:, :3], np.empty((1, 0))):
        assert p_values(rows, test, 200).tolist() == [1]


@pytest.mark.parametrize("alpha", [0.5, 0.25, 0.05, 0.01])
@pytest.mark.parametrize("test", TESTS)
def test_fewer_queries_than_a_test_requires_are_never_significant(test: Test, alpha: float) -> None:
    n = PAIRED_TESTS[test].count_required_queries(alpha)
    assert p_values(np.ones((1, n)), test)[0] < alpha
    assert p_values(np.ones((1, n - 1)), test)[0] >= alpha


@pytest.mark.parametrize("test", TESTS)
def test_a_test_treats_both_directions_alike_and_each_row_as_if_it_were_alone(test: Test, scores: Floats) -> None:
    gaps = scores - scores[3]
    gaps[0, 5:9] = np.nan
    found = p_values(gaps, test, 500)
    np.testing.assert_allclose(p_values(-gaps, test, 500), found, atol=1e-12)
    np.testing.assert_allclose([p_values(gap[None], test, 500)[0] for gap in gaps], found, atol=1e-12)
    assert (found[[0, 1, 2]] < 0.01).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_the_t_test_is_that_of_scipy(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((3, n))
    scores[0, : n // 3] = np.nan
    gaps = scores[1:] - scores[2] * 0.9
    np.testing.assert_allclose(t_test(gaps), scipy.stats.ttest_1samp(gaps, 0, axis=1).pvalue, atol=1e-10)
    paired_p = scipy.stats.ttest_rel(scores[1], scores[2]).pvalue
    assert t_test(compute_differences(scores[1:2], scores[2]))[0] == pytest.approx(paired_p, abs=1e-9)


def test_the_t_test_of_a_published_example() -> None:
    """Sakai (2015), table 5.1, the first two systems: mean difference 0.0750, t = 2.116, p = 0.048."""
    difference = compute_differences(SAKAI[:1], SAKAI[1])
    n, means, deviations = moments(difference)
    assert means[0] == pytest.approx(0.075)
    assert means[0] / deviations[0] * np.sqrt(n[0]) == pytest.approx(2.116, abs=5e-4)
    assert t_test(difference)[0] == pytest.approx(0.048, abs=5e-4)


def test_the_same_difference_everywhere_is_certain_by_t() -> None:
    assert t_test(np.full((1, 9), 0.1)).tolist() == [0]


def test_the_bootstrap_test_is_its_definition_on_the_same_resamples() -> None:
    """Noreen's shift method, one resample after the other: how often a centred mean is as extreme as the observed."""
    rng = np.random.default_rng(4)
    gaps = rng.normal(0.1, 0.4, (3, 20))
    gaps[2, 3:8] = np.nan
    draws = np.random.default_rng([9, 0]).integers(0, 20, size=(20, 400))
    expected = []
    for gap in gaps:
        observed, extreme = np.nanmean(gap), 0
        for draw in draws.T:
            extreme += abs(np.nanmean(gap[draw] - observed)) >= abs(observed)
        expected.append((extreme + 1) / 401)
    np.testing.assert_allclose(bootstrap_test(gaps, 400, seed=9), expected, atol=1e-12)


def test_the_bootstrap_test_comes_close_to_all_resamples_that_there_are() -> None:
    gap = np.array([0.3, -0.1, 0.25, 0.4, 0.05])
    every = np.array(list(itertools.product(gap - gap.mean(), repeat=5))).mean(axis=1)
    exact = np.mean(np.abs(every) >= abs(gap.mean()) - 1e-12)
    assert bootstrap_test(gap[None], 50000)[0] == pytest.approx(exact, abs=4 * np.sqrt(exact / 50000))


@pytest.mark.parametrize("test", TESTS)
def test_p_values_of_noise_are_as_often_small_as_they_say(test: Test) -> None:
    gaps = np.random.default_rng(12).normal(0, 1, (1500, 40))
    found = p_values(gaps, test, 1000)
    assert np.mean(found <= 0.05) == pytest.approx(0.05, abs=0.02 if test != "bootstrap" else 0.03)


def test_what_rounding_leaves_of_no_difference_is_none() -> None:
    noise = np.array([[0.1 + 0.2, 1 / 3, 0.7]])
    assert compute_differences(noise, np.array([0.3, 1 - 2 / 3, 0.7])).tolist() == [[0, 0, 0]]


def test_threads_that_draw_at_once_leave_blas_the_threads_that_it_had(
    scores: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product is held up a little, so that without care one thread would meet the limit of another."""
    limit = ThreadpoolController.limit

    @contextmanager
    def slowly(controller: ThreadpoolController, **limits: object) -> Iterator[None]:
        with limit(controller, **limits):
            time.sleep(random.random() / 100)
            yield

    monkeypatch.setattr(ThreadpoolController, "limit", slowly)
    with threadpool_limits(2), ThreadPoolExecutor(4) as threads:
        before = threadpool_info()
        intervals = list(threads.map(lambda _: bootstrap_test(scores).tolist(), range(8)))
        assert threadpool_info() == before
    assert all(interval == intervals[0] for interval in intervals)


@given(hnp.arrays(np.float64, (5, 12), elements=st.floats(-1, 1, width=16)))
def test_the_bound_on_a_p_value_is_at_least_the_exact_one(differences: Floats) -> None:
    bounds = bound_p_values(differences)
    assert (permutation_test(differences) <= bounds + 1e-12).all()


def test_a_p_value_below_all_that_resamples_can_show_is_their_smallest() -> None:
    clear, unclear = np.full(40, 0.5), np.tile([0.5, -0.4], 20)
    p_values = permutation_test(np.stack([clear, unclear]), resamples=999)
    assert p_values[0] == 1 / 1000
    assert p_values[1] == permutation_test(unclear[None], resamples=999)[0]
