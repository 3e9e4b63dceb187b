"""How reliably a dataset ranks systems, against scipy, formulas, and small simulations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from runner.statistics.comparison import compare_pairs
from runner.statistics.effects import power
from runner.statistics.reliability import (
    compute_detectable,
    compute_taus,
    extrapolate_same_best,
    list_separations,
    measure_discriminative_power,
    measure_information,
    measure_stability,
)
from runner.statistics.settings import Statistics

Floats = NDArray[np.float64]
FEW = Statistics(permutations=500)


def draw(systems: int, queries: int, spread: float, seed: int = 0) -> Floats:
    """Return scores of systems whose true means differ by `spread`, on queries that differ in difficulty."""
    rng = np.random.default_rng(seed)
    means = 0.5 + rng.normal(0, spread, (systems, 1))
    return means + rng.normal(0, 0.2, queries) + rng.normal(0, 0.2, (systems, queries))


def test_taus_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    observed, others = rng.random(7), rng.random((5, 7))
    expected = [stats.kendalltau(observed, other).statistic for other in others]
    assert compute_taus(observed, others).tolist() == pytest.approx(expected)


def test_a_tied_pair_counts_as_half_swapped() -> None:
    assert compute_taus(np.array([1.0, 2.0]), np.array([[3.0, 3.0]])).tolist() == [0.0]


def test_systems_far_apart_keep_their_order_and_equal_ones_do_not() -> None:
    apart = np.arange(5)[:, None] + draw(5, 40, 0)
    stable = measure_stability(apart)
    assert (stable.tau, stable.low, stable.high, stable.same_best) == (1.0, 1.0, 1.0, 1.0)
    alike = measure_stability(draw(5, 40, 0, seed=2))
    assert abs(alike.tau) < 0.35
    assert alike.low < -0.4 < 0.4 < alike.high


def test_systems_that_never_differ_from_their_mean_difference_are_certain() -> None:
    base = np.random.default_rng(0).random(20)
    assert measure_stability(np.stack([base, base + 0.1, base + 0.2])).low == 1.0


def test_an_exact_copy_of_every_query_in_its_cluster_changes_nothing() -> None:
    scores = draw(4, 30, 0.05)
    clusters = np.arange(60) // 2
    assert measure_stability(np.repeat(scores, 2, axis=1), clusters) == measure_stability(scores)
    once, twice = measure_information(scores), measure_information(np.repeat(scores, 2, axis=1), clusters)
    assert once.shares == pytest.approx(twice.shares)
    assert once.discriminations == pytest.approx(twice.discriminations)


def test_the_tau_interval_covers_the_tau_on_new_queries() -> None:
    """The full simulation is benchmarks/simulations/ranking_stability.py."""
    rng, inside = np.random.default_rng(3), 0
    for trial in range(60):
        means = rng.normal(0, 0.05, (6, 1))
        one, other = (means + rng.normal(0, 0.3, (6, 50)) for _ in range(2))
        stability = measure_stability(one, resamples=200, seed=trial)
        tau = compute_taus(one.mean(axis=1), other.mean(axis=1)[None])[0]
        inside += stability.low - 1e-9 <= tau <= stability.high + 1e-9
    assert inside >= 59


@pytest.mark.parametrize(("systems", "spread"), [(4, 0.05), (10, 0.05), (10, 0.1)])
def test_the_expected_tau_is_on_average_that_on_new_queries(systems: int, spread: float) -> None:
    rng = np.random.default_rng(systems)
    expected, true = [], []
    for trial in range(60):
        means, family = rng.normal(0, spread, (systems, 1)), np.arange(systems) % 3
        one, other = (means + rng.normal(0, 0.3, (3, 50))[family] + rng.normal(0, 0.1, (systems, 50)) for _ in range(2))
        expected.append(measure_stability(one, resamples=100, seed=trial).tau)
        true.append(compute_taus(one.mean(axis=1), other.mean(axis=1)[None])[0])
    assert np.mean(expected) == pytest.approx(np.mean(true), abs=0.05)


@pytest.mark.parametrize(("systems", "deviation"), [(3, 0.3), (10, 0.5), (20, 0.5)])
def test_the_best_system_stays_the_best_as_often_as_predicted(systems: int, deviation: float) -> None:
    """Systems are in three families, in which they are similar."""
    rng, errors = np.random.default_rng(systems), []
    family = np.arange(systems) % 3
    for trial in range(60):
        means = rng.normal(0, 0.1, 3)[family] + rng.normal(0, 0.01, systems)
        one = means[:, None] + rng.normal(0, deviation, (3, 50))[family] + rng.normal(0, 0.1, (systems, 50))
        noise = rng.normal(0, deviation, (200, 3))[:, family] + rng.normal(0, 0.1, (200, systems))
        same_best = ((means + noise / 50**0.5).argmax(axis=1) == one.mean(axis=1).argmax()).mean()
        errors.append(measure_stability(one, resamples=200, seed=trial).same_best - same_best)
    assert np.mean(errors) == pytest.approx(0, abs=0.05)


def test_the_chance_of_the_same_best_is_extrapolated_from_halves_and_quarters() -> None:
    best, other = [1.0, 0.0], [0.0, 1.0]
    halves = np.array([best] * 10), np.array([best] * 7 + [other] * 3)
    quarters = np.array([best] * 10), np.array([best] * 6 + [other] * 4)
    assert extrapolate_same_best(halves, quarters) == pytest.approx(0.8)
    assert extrapolate_same_best(quarters, halves) == pytest.approx(0.6)  # not below that of halves


def test_discriminative_power_counts_pairs_below_alpha() -> None:
    scores = draw(6, 50, 0.1)
    found = measure_discriminative_power(scores, compare_pairs(scores, FEW), statistics=FEW)
    first, second = np.triu_indices(6, 1)
    p_values = [stats.ttest_rel(scores[i], scores[j]).pvalue for i, j in zip(first, second, strict=True)]
    assert found.levels.tolist() == pytest.approx(sorted(p_values), abs=0.08)
    assert found.levels.tolist() == sorted(found.levels.tolist())
    assert found.significant == np.count_nonzero(found.levels < 0.05)
    assert found.corrected <= found.significant


def test_neighbours_are_listed_best_first_with_the_queries_they_need() -> None:
    scores = draw(4, 80, 0.1)
    tested = compare_pairs(scores, FEW)
    pairs = list_separations(scores, tested)
    order = np.argsort(-scores.mean(axis=1)).tolist()
    assert [(pair.better, pair.worse) for pair in pairs] == list(pairwise(order))
    for pair in pairs:
        differences = scores[pair.better] - scores[pair.worse]
        assert pair.difference == pytest.approx(differences.mean())
        effect = np.array(differences.mean() / differences.std(ddof=1))
        level = float(tested.levels(differences[None])[0])
        assert 0.005 < level < 0.05, "that of one test among the six of four systems"
        assert power(np.array(pair.needed), effect, level) >= 0.8 > power(np.array(pair.needed - 1), effect, level)


def test_the_detectable_difference_is_significant_in_80_percent_of_samples() -> None:
    scores = draw(2, 400, 0)
    (detectable,) = compute_detectable(scores, np.array([50])).tolist()
    deviation = float((scores[0] - scores[1]).std(ddof=1))
    rng = np.random.default_rng(0)
    samples = rng.normal(detectable, deviation, (4000, 50))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.02)


def test_discrimination_is_the_correlation_with_the_other_queries() -> None:
    scores = draw(9, 12, 0.2)
    information = measure_information(scores)
    for query in range(12):
        others = np.delete(scores, query, axis=1).mean(axis=1)
        assert information.discriminations[query] == pytest.approx(stats.pearsonr(scores[:, query], others).statistic)


def test_queries_with_equal_scores_carry_no_information() -> None:
    scores = np.array([[1.0, 0.5, 0.0, 0.2], [1.0, 0.5, 1.0, 0.3], [1.0, 0.5, 0.0, 0.4]])
    information = measure_information(scores)
    assert information.uninformative == 2
    assert information.half == 1
    assert information.shares.sum() == pytest.approx(1)
    assert np.isnan(information.discriminations[:2]).all()
    assert measure_information(np.ones((3, 4))).half == 0
