"""Effect sizes and the queries they take, against published figures, scipy and definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from runner.statistics.effects import (
    cohens_d,
    detectable_difference,
    hedges_g,
    power,
    queries_needed,
)
from runner.statistics.significance import compute_differences, t_test
from tests.statistics.examples import SAKAI, unequal


def test_the_effect_size_of_a_published_example() -> None:
    """Sakai (2015), table 5.1, the first two systems: 0.473 of the differences' standard deviation."""
    assert cohens_d(compute_differences(SAKAI[:1], SAKAI[1]))[0] == pytest.approx(0.473, abs=5e-4)


def test_cohens_d_is_t_over_the_root_of_the_queries() -> None:
    gaps = compute_differences(unequal(), unequal()[3])[[0, 1, 2, 4]]
    expected = scipy.stats.ttest_1samp(gaps, 0, axis=1).statistic / np.sqrt(60)
    np.testing.assert_allclose(cohens_d(gaps), expected, atol=1e-9)
    gaps[0, :20] = np.nan
    assert cohens_d(gaps)[0] == pytest.approx(cohens_d(gaps[:1, 20:])[0])


def test_hedges_correction_is_that_of_his_table_and_nears_his_approximation() -> None:
    """The factor c(m) for m degrees of freedom, Hedges (1981): 0.5642 for 2, 0.7236 for 3, 0.9227 for 10."""
    rng = np.random.default_rng(0)
    for degrees, factor in ((2, 0.5642), (3, 0.7236), (10, 0.9227)):
        gaps = rng.normal(1, 1, (1, degrees + 1))
        assert hedges_g(gaps)[0] / cohens_d(gaps)[0] == pytest.approx(factor, abs=5e-5)
    gaps = rng.normal(1, 1, (1, 61))
    assert hedges_g(gaps)[0] / cohens_d(gaps)[0] == pytest.approx(1 - 3 / (4 * 60 - 1), abs=1e-5)


def test_hedges_g_of_small_samples_is_right_on_average() -> None:
    gaps = np.random.default_rng(1).normal(0.5, 1, (20000, 8))
    assert hedges_g(gaps).mean() == pytest.approx(0.5, abs=0.01)
    assert cohens_d(gaps).mean() > 0.54


def test_effects_where_nothing_or_everything_differs_or_little_is_known() -> None:
    rows = np.array([[0.0] * 4, [0.1] * 4, [-0.1] * 4, [0.3, np.nan, np.nan, np.nan], [np.nan] * 4])
    np.testing.assert_array_equal(cohens_d(rows), [0, np.inf, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(hedges_g(rows), [0, np.inf, -np.inf, np.nan, np.nan])
    assert np.isnan(hedges_g(np.array([[0.1, 0.2]]))).all()


@pytest.mark.parametrize(
    ("n", "effect", "expected"),
    [
        (25, -0.25, 0.224525),  # G*Power 3's user guide, generic t test: N = 25, d = 0.25, two-sided
        (50, 0.421637, 0.832114),  # and its example of dependent means: 50 pairs, d_z = 0.421637
    ],
)
def test_power_is_that_of_published_examples(n: int, effect: float, expected: float) -> None:
    assert power(np.array([n]), np.array([effect]))[0] == pytest.approx(expected, abs=1.5e-6)


def test_power_is_scipys_for_small_and_large_effects() -> None:
    queries, effects = np.meshgrid(np.array([2.0, 3, 10, 300, 20_000, 10**8]), np.geomspace(1e-6, 50, 40))
    least, centre = scipy.stats.t.ppf(0.975, queries - 1), effects * np.sqrt(queries)
    expected = scipy.stats.nct.sf(least, queries - 1, centre) + scipy.stats.nct.sf(least, queries - 1, -centre)
    np.testing.assert_allclose(power(queries, effects), expected, rtol=1e-12)


def test_power_is_how_often_the_test_finds_what_is_there() -> None:
    gaps = np.random.default_rng(3).normal(0.6, 1, (20000, 20))
    assert np.mean(t_test(gaps) < 0.05) == pytest.approx(float(power(np.array(20), np.array(0.6))), abs=0.012)


@pytest.mark.parametrize("alpha", [1e-9, 1e-17, 1e-100, 1e-300])
def test_the_queries_needed_at_a_very_small_level_are_about_those_of_the_normal_distribution(alpha: float) -> None:
    z = scipy.stats.norm.isf([alpha / 2, 0.2]).sum()
    assert queries_needed(np.array([0.01]), np.ones(1), alpha)[0] == pytest.approx((z / 0.01) ** 2, rel=0.01)


def test_the_queries_needed_are_those_of_common_tables() -> None:
    """For small, medium and large effects (Cohen's d_z 0.2, 0.5, 0.8) at 0.05 and 0.8: 199, 34 and 15 pairs."""
    assert queries_needed(np.array([0.2, -0.5, 0.8]), np.ones(3)).tolist() == [199, 34, 15]
    assert queries_needed(np.array([0.1]), np.array([0.2])).tolist() == [34]


@given(st.floats(0.01, 20), st.sampled_from([0.001, 0.01, 0.05, 0.2]), st.sampled_from([0.5, 0.8, 0.99]))
def test_the_queries_needed_are_the_fewest_that_have_the_power(effect: float, alpha: float, chance: float) -> None:
    n = float(queries_needed(np.array([effect]), np.ones(1), alpha, chance)[0])
    assert n >= 2
    assert power(np.array(n), np.array(effect), alpha) >= chance
    assert n == 2 or power(np.array(n - 1), np.array(effect), alpha) < chance


def test_no_number_of_queries_shows_a_difference_that_is_not_there() -> None:
    found = queries_needed(np.array([0.0, 0.0, 0.1, 0.1]), np.array([0.5, 0.0, 0.0, np.nan]))
    assert (found[0], found[1], found[2]) == (math.inf, math.inf, 2)
    assert math.isnan(found[3])
    assert queries_needed(np.array([1e-6]), np.ones(1))[0] == pytest.approx(7.8489e12, rel=1e-4)


def test_a_detectable_difference_is_seen_with_just_the_power() -> None:
    queries, deviations = np.array([2, 5, 42, 42, 1000]), np.array([0.1, 0.2, 0.3, 0.6, 0.3])
    found = detectable_difference(queries, deviations, 0.01, 0.9)
    np.testing.assert_allclose(power(queries, found / deviations, 0.01), 0.9, atol=1e-6)
    assert found[3] == pytest.approx(2 * found[2])
    assert queries_needed(found[2:3] * (1 + 1e-9), deviations[2:3], 0.01, 0.9).tolist() == [42]
    assert np.isnan(detectable_difference(np.array([1, 0]), np.array([np.nan, np.nan]))).all()
