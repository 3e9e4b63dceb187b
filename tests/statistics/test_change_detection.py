"""A fall of a mean is noticed soon after it happens, and alarms without a change are as rare as stated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from runner.statistics.change_detection import Detector, Means
from runner.statistics.significance import mean_interval

Bools = NDArray[np.bool_]

DETECTOR = Detector(drop=0.05, run_length=65)


def draw(seed: int, levels: list[float], error: float = 0.015) -> Means:
    values = np.random.default_rng(seed).normal(levels, error)
    return Means(values, np.full(len(values), error), np.full(len(values), 200.0))


@pytest.mark.parametrize("degrees", [3.0, 30.0, 1e6])
@pytest.mark.parametrize("error", [0.02, 0.1])
def test_a_bet_on_an_unchanged_mean_wins_nothing_on_average(error: float, degrees: float) -> None:
    def weigh(score: float) -> float:
        return float(np.exp(DETECTOR.bet(-score * error, error, degrees)) * stats.t.pdf(score, degrees))

    mean, _ = integrate.quad(weigh, -np.inf, np.inf, limit=200)
    assert mean == pytest.approx(1, abs=1e-6)


def test_a_bet_is_the_likelihood_ratio_of_a_mean_that_has_fallen() -> None:
    expected = stats.norm.logpdf(-0.04, -0.05, 0.02) - stats.norm.logpdf(-0.04, 0, 0.02)
    assert float(DETECTOR.bet(-0.04, 0.02, 1e9)) == pytest.approx(expected, rel=1e-5)


def test_differences_beyond_any_tail_still_give_a_number() -> None:
    bets = DETECTOR.bet(np.array([-1e6, 1e6]), 1e-3, 1e6)
    assert bets[0] > 100
    assert np.exp(bets[1]) == 0


def test_a_fall_raises_an_alarm_that_names_its_window() -> None:
    course = DETECTOR.follow(draw(0, [0.6] * 30 + [0.53] * 4, 0.01))
    assert np.flatnonzero(course.alarms)[0] in range(30, 33)
    assert course.starts[np.flatnonzero(course.alarms)[0]] in range(28, 31)
    assert course.baseline == pytest.approx(0.6, abs=0.02)
    assert course.baseline_error == pytest.approx(0.01 / 8**0.5)


def test_the_baseline_and_windows_without_a_mean_have_no_evidence() -> None:
    means = draw(1, [0.6] * 14)
    means.values[[3, 11]] = np.nan
    course = DETECTOR.follow(means)
    assert np.flatnonzero(np.isnan(course.evidence)).tolist() == [*range(9), 11]
    assert course.baseline == pytest.approx(np.nanmean(means.values[:9]))


def test_nothing_is_decided_without_windows_after_the_baseline() -> None:
    course = DETECTOR.follow(draw(2, [0.6] * 8))
    assert np.isnan(course.evidence).all()
    assert not course.alarms.any()


def test_no_windows_at_all_raise_no_alarm() -> None:
    nothing = np.empty(0)
    assert len(DETECTOR.follow(Means(nothing, nothing, nothing)).alarms) == 0


def follow_many(error: float, threshold: float, levels: list[float]) -> Bools:
    """Return the alarms of 4,000 courses (windows x courses) with known errors, by the formulas of the densities."""
    rng, n = np.random.default_rng(1), 4000
    baseline = rng.normal(0, error, (8, n)).mean(axis=0)
    capital, alarms = np.zeros(n), []
    for level in levels:
        differences, spread = rng.normal(level, error, n) - baseline, error * np.sqrt(1 + 1 / 8)
        capital = (capital + 1) * stats.norm.pdf(differences, -0.05, spread) / stats.norm.pdf(differences, 0, spread)
        alarms.append(capital >= threshold)
        capital[alarms[-1]] = 0
    return np.array(alarms)


@pytest.mark.parametrize("error", [0.015, 0.03])
def test_windows_without_a_change_raise_alarms_as_rarely_as_stated(error: float) -> None:
    threshold = DETECTOR.find_threshold(draw(0, [0.6] * 20, error), error / 8**0.5)
    alarms = follow_many(error, threshold, [0.0] * 156)
    assert 0.75 / 65 < alarms.mean() < 1.25 / 65


def test_the_chance_to_notice_a_fall_is_that_of_simulated_courses() -> None:
    windows = draw(0, [0.6] * 20, 0.025)
    chance = DETECTOR.find_chance(windows, 0.025 / 8**0.5, 20.0)
    alarms = follow_many(0.025, 20.0, [0.0] * 30 + [-0.05] * 3)
    assert 0.5 < chance < 0.95
    assert alarms[30:].any(axis=0).mean() == pytest.approx(chance, abs=0.04)


def test_means_have_the_errors_of_their_queries() -> None:
    values = np.array([[0.2, 0.4, 0.9, np.nan], [1.0, 1.0, 1.0, 1.0]])
    means = Means.of(values)
    assert means.values == pytest.approx([0.5, 1.0])
    assert means.errors[0] == pytest.approx(stats.sem([0.2, 0.4, 0.9]))
    assert means.errors[1] == pytest.approx((1 - mean_interval(values[1])[0]) / 4)
    assert means.degrees.tolist() == [2, 3]
    repeated = Means.of(np.repeat(values[:1, :3], 5, axis=1), np.repeat(np.arange(3), 5))
    assert repeated.errors[0] == pytest.approx(means.errors[0])
