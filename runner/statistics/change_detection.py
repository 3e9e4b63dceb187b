"""Notice that a mean has fallen, window by window, with a stated average time between two false alarms.

Each window is a bet that its mean has fallen from that of the baseline by the drop that matters; the winnings of bets
begun in every window add up (the Shiryaev-Roberts e-detector of Shin, Ramdas and Rinaldo 2024, "E-detectors"). They
reach a threshold c on average at most once in c windows if means are normal with known errors and the baseline is
exact. Errors are estimated, and so is the baseline, so the threshold is found by simulating windows like these without
a change. `benchmarks.simulations.monitor_alarms` measures what comes out for scores that are not normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.significance import mean_interval, moments

Floats = NDArray[np.float64]

COURSES, QUIET, BEFORE = 2000, 156, 30
"""How many courses of windows are simulated, and the windows of each without a change, and before one."""

LEAST = 10.0
"""The least evidence of an alarm: with small errors, far less would be as rare, but it would convince nobody."""


@dataclass(frozen=True, eq=False)
class Means:
    """The means of windows in order (n,), their standard errors, and the degrees of freedom of these errors.

    NaN is a window without a mean.
    """

    values: Floats
    errors: Floats
    degrees: Floats

    @staticmethod
    def of(values: Floats, clusters: Clusters | None = None, weights: Floats | None = None) -> Means:
        """Return the mean of each row of values (windows x queries), of which NaN does not count.

        Equal values have no spread to estimate; a quarter of their 95 % interval stands for the standard error.
        """
        counts, means, deviations = moments(values, clusters, weights)
        errors = deviations / np.sqrt(np.maximum(counts, 1))
        equal = (counts > 0) & ~(deviations > 0)
        errors[equal] = np.diff(mean_interval(values[equal], 0.95, clusters), axis=1)[:, 0] / 4
        return Means(means, errors, np.maximum(counts - 1.0, 1.0))

    def __getitem__(self, some: slice | NDArray[np.bool_]) -> Means:
        """Return some windows."""
        return Means(self.values[some], self.errors[some], self.degrees[some])

    def pool(self) -> tuple[float, float]:
        """Return the mean of the windows, each of which counts the same, and its standard error."""
        known = self[~np.isnan(self.values)]
        n = max(len(known.values), 1)
        return float(known.values.sum() / n), float(np.sqrt(np.square(known.errors).sum()) / n)


@dataclass(frozen=True, eq=False)
class Course:
    """The evidence that means have fallen after each window (n,), NaN for those of the baseline and without a mean.

    An alarm is an evidence of at least the `threshold`; it resets the evidence to zero. `starts` is the window in which
    the present fall most likely began (n,), the next window where none did.
    """

    baseline: float
    baseline_error: float
    threshold: float
    evidence: Floats
    alarms: NDArray[np.bool_]
    starts: NDArray[np.intp]


@dataclass(frozen=True)
class Detector:
    """A detector of falls by `drop` or more, with one false alarm in `run_length` windows on average.

    The first `baseline` windows that have a mean are what later ones are compared with.
    """

    drop: float
    run_length: float
    baseline: int = 8

    def follow(self, means: Means) -> Course:
        """Return the evidence after each window; all of it is NaN if there are no windows after the baseline."""
        known = ~np.isnan(means.values)
        reference = known & (np.cumsum(known) <= self.baseline)
        mean, error = means[reference].pool()
        threshold = self.find_threshold(means[known], error)
        evidence, alarms = np.full(len(known), np.nan), np.zeros(len(known), dtype=bool)
        starts = np.arange(1, len(known) + 1)
        capital = best = 0.0
        start = len(known)
        for i in np.flatnonzero(known & ~reference).tolist():
            growth = float(self.bet(means.values[i] - mean, np.hypot(means.errors[i], error), means.degrees[i]))
            capital = np.exp(growth) * (capital + 1)
            best, start = (growth, i) if best <= 0 else (best + growth, start)
            evidence[i], alarms[i], starts[i] = capital, capital >= threshold, start if best > 0 else i + 1
            if alarms[i]:
                capital, best = 0.0, min(best, float(np.log(threshold)))  # the fall goes on, until better windows
        return Course(mean, error, threshold, evidence, alarms, starts)

    def bet(self, differences: Floats | float, errors: Floats | float, degrees: Floats | float) -> Floats:
        """Return the logarithm of what bets on falls win, given the differences to the baseline and their errors.

        The likelihood ratio of a normal mean that has fallen by the drop. A difference in units of its estimated error
        has Student's distribution, so it is replaced by the normal value with the same tail.
        """
        from scipy.special import log_ndtr, ndtri_exp, stdtr

        with np.errstate(divide="ignore"):
            tails = np.log(stdtr(degrees, differences / np.asarray(errors)))
        scores = -ndtri_exp(np.where(np.isfinite(tails), tails, log_ndtr(-37.0)))
        ratio = self.drop / np.asarray(errors)
        growth: Floats = ratio * scores - ratio**2 / 2
        return growth

    def find_threshold(self, means: Means, baseline_error: float) -> float:
        """Return the evidence that windows without a change reach once in `run_length` windows, at least `LEAST`.

        Each of `COURSES` simulated courses has a baseline with an error of its own, and draws its windows from the
        errors of the given ones. The seed is fixed.
        """
        if not len(means.values):
            return float("inf")
        bets = self._simulate(means, baseline_error, QUIET, 0.0)
        thresholds = np.geomspace(LEAST, 4 * self.run_length, 48)[:, None]
        capital, alarms = np.zeros((len(thresholds), COURSES)), np.zeros(len(thresholds))
        for growth in np.exp(bets):
            capital = growth * (capital + 1)
            reached = capital >= thresholds
            alarms += reached.mean(axis=1)
            capital[reached] = 0
        enough = alarms <= QUIET / self.run_length
        return float(thresholds[enough.argmax() if enough.any() else -1, 0])

    def find_chance(self, means: Means, baseline_error: float, threshold: float, within: int = 3) -> float:
        """Return the chance that a fall by the drop raises an alarm within some windows with errors like those given.

        The share of simulated courses, with a fixed seed, in which the fall comes after `BEFORE` quiet windows.
        """
        quiet = self._simulate(means, baseline_error, BEFORE + within, 0.0)
        fallen = self._simulate(means, baseline_error, BEFORE + within, self.drop)
        capital, noticed = np.zeros(COURSES), np.zeros(COURSES, dtype=bool)
        for window in range(BEFORE + within):
            capital = np.exp((fallen if window >= BEFORE else quiet)[window]) * (capital + 1)
            alarms = capital >= threshold
            noticed |= alarms & (window >= BEFORE)
            capital[alarms] = 0
        return float(noticed.mean())

    def _simulate(self, means: Means, baseline_error: float, windows: int, fall: float) -> Floats:
        """Return the bets (windows x `COURSES`) on simulated windows whose mean has fallen."""
        rng = np.random.default_rng(0)
        shift = rng.normal(0, baseline_error, COURSES)
        some = rng.integers(0, len(means.values), (windows, COURSES))
        errors, degrees = means.errors[some], means.degrees[some]
        estimated = errors * np.sqrt(rng.chisquare(degrees) / degrees)
        differences = rng.normal(0, errors) - fall - shift
        return self.bet(differences, np.hypot(estimated, baseline_error), degrees)
