"""Measure how often `monitor` raises a false alarm, and how soon it notices a fall, if the truth is known.

`normal` windows have normal means whose standard errors are estimated from as many queries. Other windows draw queries
with replacement from the values of one BM25 on a collection; after a fall, queries are drawn with weights with which
the mean is lower by exactly the drop. The baseline is that of 8 windows of the same kind. `threshold` is the evidence
from which there is an alarm, `false` the number of
alarms in a year of 52 windows without a change, `noticed` the share of falls that raise an alarm within three windows,
`promised` what `find_chance` says of it, and `covered` the share of nominal 95 % intervals of a window's mean that
contain the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from benchmarks.simulations.gate_verdicts import weigh_queries
from benchmarks.simulations.scores import COLLECTIONS, one_system
from runner.statistics.change_detection import Detector, Means
from runner.statistics.significance import mean_interval

Floats = NDArray[np.float64]
Draw = Callable[[bool], tuple[Means, float]]
"""Returns a window of each course, after a fall if true, and the share of intervals that contain the mean before it."""

ERRORS, QUERIES = (0.01, 0.015, 0.02, 0.025, 0.03, 0.05), (30, 100, 200, 400)
MEASURES = ("nDCG@10", "Success@5")


def draw_normal(error: float, queries: int, drop: float, courses: int) -> Draw:
    """Return windows with normal means of a known error."""
    rng, degrees = np.random.default_rng(0), np.full(courses, queries - 1.0)

    def draw(has_fallen: bool) -> tuple[Means, float]:
        errors = error * np.sqrt(rng.chisquare(degrees) / degrees)
        return Means(rng.normal(-drop * has_fallen, error, courses), errors, degrees), float("nan")

    return draw


def draw_queries(values: Floats, queries: int, drop: float, courses: int) -> Draw:
    """Return windows of queries drawn from the values of a collection."""
    rng, truth = np.random.default_rng(0), float(values.mean())
    weights = weigh_queries(values, truth - drop)

    def draw(has_fallen: bool) -> tuple[Means, float]:
        samples = rng.choice(values, (courses, queries), p=weights if has_fallen else None)
        low, high = mean_interval(samples).T
        return Means.of(samples), float(np.mean((low <= truth + 1e-12) & (high >= truth - 1e-12)))

    return draw


def simulate(draw: Draw, detector: Detector, years: int) -> tuple[float, float, float, float, float]:
    """Return the threshold, false alarms a year, shares of falls noticed within three windows and promised, coverage.

    The threshold is that of the first course.
    """
    first = [draw(False)[0] for _ in range(detector.baseline)]
    baseline = np.mean([means.values for means in first], axis=0)
    error = np.sqrt(np.sum([np.square(means.errors) for means in first], axis=0)) / detector.baseline
    seen = Means(*(np.array([getattr(means, name)[0] for means in first]) for name in ("values", "errors", "degrees")))
    threshold = detector.find_threshold(seen, float(error[0]))
    covered: list[float] = []
    capital, false = np.zeros(len(baseline)), 0.0
    noticed = np.zeros(len(baseline), dtype=bool)
    for window in range(52 * years + 3):
        means, share = draw(window >= 52 * years)
        bets = detector.bet(means.values - baseline, np.hypot(means.errors, error), means.degrees)
        capital = np.exp(bets) * (capital + 1)
        alarms = capital >= threshold
        capital[alarms] = 0
        if window < 52 * years:
            false += alarms.mean() / years
            covered.append(share)
        else:
            noticed |= alarms
    promised = detector.find_chance(seen, float(error[0]), threshold)
    return threshold, false, float(noticed.mean()), promised, float(np.mean(covered))


def main() -> None:
    """Print a row for each kind of window."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=4)
    parser.add_argument("--courses", type=int, default=2000)
    parser.add_argument("--drop", type=float, default=0.05)
    parser.add_argument("--run-length", type=float, default=70.0)
    options = parser.parse_args()
    detector = Detector(options.drop, options.run_length)
    titles = ("windows", "queries", "standard error", "threshold", "false", "noticed", "promised", "covered")
    print(f"| {' | '.join(titles)} |\n|---|{'--:|' * (len(titles) - 1)}")
    rows = [("normal", queries, error) for queries in (30, 200) for error in ERRORS]
    for name, queries, error in rows:
        drawn = draw_normal(error, queries, options.drop, options.courses)
        print_row(name, queries, error, simulate(drawn, detector, options.years))
    for name in COLLECTIONS:
        if not (DATA / name).is_dir():
            continue
        for measure, values in zip(MEASURES, one_system(name, MEASURES), strict=True):
            for queries in QUERIES:
                drawn = draw_queries(values, queries, options.drop, options.courses)
                error = float(values.std()) / queries**0.5
                print_row(f"{name}, {measure}", queries, error, simulate(drawn, detector, options.years))


def print_row(name: str, queries: int, error: float, figures: tuple[float, ...]) -> None:
    """Print a row of the table."""
    print(f"| {name} | {queries} | {error:.3f} | {' | '.join(f'{figure:.3f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()
