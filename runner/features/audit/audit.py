"""Compute what two means and the number of queries say about a difference, whatever the scores behind them were.

Scores are from 0 to 1. Their spread is unknown, so each result is computed for the largest spread that the means allow
and for a typical one, or for one that is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from runner.metrics.measures import parse
from runner.statistics.effects import detectable_difference, queries_needed
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.typical_spread import assume_spread

Interval = tuple[float, float]


class AuditError(ValueError):
    """Numbers that no scores can have; the message names the setting."""


@dataclass(frozen=True)
class SpreadAssumption:
    """The standard deviation of the differences of single queries, and what follows from it.

    `needed` is the number of queries with which a paired t-test detects the difference with a power of 0.8.
    """

    name: str
    deviation: float
    interval: Interval
    p: float
    needed: float


@dataclass(frozen=True)
class Audit:
    """What can be said about a value, and about its difference from a baseline (NaN and empty without one).

    The difference is tested at `level`: `alpha` divided by the number of `systems` that were tried (Bonferroni).
    `intervals` are those of the value, by assumption. At least `fewest` queries differ, so no test can have a p-value
    below `smallest_p`. The difference is significant if differences deviate by less than `enough`. `detectable` is the
    difference that a test detects with a power of 0.8 and a typical spread. `possible` says whether the difference can
    be significant.
    """

    queries: int
    measure: str
    value: float
    baseline: float | None
    alpha: float
    systems: int
    level: float
    intervals: dict[str, Interval]
    difference: float = math.nan
    fewest: int = 0
    smallest_p: float = math.nan
    enough: float = math.nan
    assumptions: Sequence[SpreadAssumption] = ()
    detectable: float = math.nan
    possible: bool = True

    @property
    def is_exact(self) -> bool:
        """Return whether scores are hits and misses, so that p-values are exact."""
        return "exact" in self.intervals


def audit_value(
    n: int,
    value: float,
    baseline: float | None,
    measure: str,
    sd: float | None = None,
    alpha: float = 0.05,
    systems: int = 1,
) -> Audit:
    """Return the audit of a mean over n queries, at least 2; raises `AuditError` for what no scores can have."""
    name = parse(measure).name
    if name == "Success":
        value = _count_hits("value", value, n) / n
        baseline = None if baseline is None else _count_hits("baseline", baseline, n) / n
    spread = assume_spread(name)
    level, intervals = alpha / systems, _list_intervals(n, value, name, spread.share, alpha)
    audit = Audit(n, measure, value, baseline, alpha, systems, level, intervals)
    if baseline is None:
        return audit
    difference, exact = value - baseline, name == "Success"
    least, largest = _bound_deviation(n, value, baseline, exact)
    if sd is not None and not least - 1e-9 <= sd <= largest + 1e-9:
        raise AuditError(f"sd={sd:g}: with these means, differences deviate by {least:.3f} to {largest:.3f}")
    typical = min(max(spread.differences, least), largest)
    deviations = {"given": sd} if sd is not None else {"typical": typical, "largest": largest}
    assumptions = [_assume(kind, deviation, difference, n, level, exact) for kind, deviation in deviations.items()]
    fewest = math.ceil(round(abs(difference) * n, 9))
    changed = fewest if exact else n * bool(difference)
    smallest = PAIRED_TESTS["permutation"].smallest_p(changed) if changed else 1.0
    (detectable,) = detectable_difference(np.array([n]), np.array([assumptions[0].deviation]), level).tolist()
    return replace(
        audit,
        difference=difference,
        fewest=fewest,
        smallest_p=smallest,
        enough=abs(difference) * math.sqrt(n) / _find_quantile(n, level),
        assumptions=assumptions,
        detectable=detectable,
        possible=smallest < level and (sd is None or assumptions[0].p < level),
    )


def _count_hits(key: str, mean: float, n: int) -> int:
    """Return how many of n queries have a hit; raises `AuditError` if no number of hits has this mean."""
    hits, digits = round(mean * n), len(f"{mean!r}".partition(".")[2])
    if abs(hits / n - mean) > 0.5 * 10.0**-digits + 1e-9:
        near = sorted({math.floor(mean * n), math.ceil(mean * n)})
        shares = " and ".join(f"{count} of {n} is {count / n:.{digits}f}" for count in near)
        raise AuditError(
            f"{key}={mean:g}: no number of hits in {n} queries has this mean ({shares}); check n and measure"
        )
    return hits


def _list_intervals(n: int, value: float, name: str, share: float, alpha: float) -> dict[str, Interval]:
    """Return the interval of the value by assumption; for hits and misses, that of Clopper & Pearson (1934)."""
    from scipy.special import betaincinv

    if name == "Success":
        hits = round(value * n)
        low = betaincinv(hits, n - hits + 1, alpha / 2) if hits else 0.0
        high = betaincinv(hits + 1, n - hits, 1 - alpha / 2) if hits < n else 1.0
        return {"exact": (float(low), float(high))}
    largest = math.sqrt(value * (1 - value) * n / (n - 1))
    halves = {kind: _find_half(n, of, alpha) for kind, of in (("typical", share * largest), ("largest", largest))}
    return {kind: (max(value - half, 0.0), min(value + half, 1.0)) for kind, half in halves.items()}


def _bound_deviation(n: int, value: float, baseline: float, exact: bool) -> Interval:
    """Return the least and the largest standard deviation of paired differences between scores with these means.

    The largest is that of hits and misses that coincide as rarely as possible. Other scores can all differ by the same;
    the least deviation of hits and misses is that of as few different queries as possible.
    """
    difference = abs(value - baseline)
    squares = difference if exact else difference**2, min(value + baseline, 2 - value - baseline)
    least, largest = (math.sqrt(max(square - difference**2, 0.0) * n / (n - 1)) for square in squares)
    return least, largest


def _assume(kind: str, deviation: float, difference: float, n: int, alpha: float, exact: bool) -> SpreadAssumption:
    half = _find_half(n, deviation, alpha)
    p = _test_hits(difference, deviation, n) if exact else _test(difference, deviation, n)
    (needed,) = queries_needed(np.array([difference]), np.array([deviation]), alpha).tolist()
    interval = (max(difference - half, -1.0), min(difference + half, 1.0))
    return SpreadAssumption(kind, deviation, interval, p, needed)


def _test(difference: float, deviation: float, n: int) -> float:
    """Return the p-value of a paired t-test."""
    from scipy.special import stdtr

    if not difference:
        return 1.0
    return float(2 * stdtr(n - 1, -abs(difference) / deviation * math.sqrt(n))) if deviation else 0.0


def _test_hits(difference: float, deviation: float, n: int) -> float:
    """Return the exact p-value (McNemar 1947) for hits and misses whose differences have this deviation."""
    from scipy.special import bdtr

    net = round(abs(difference) * n)
    differing = max(round(deviation**2 * (n - 1) + difference**2 * n), net)
    differing += (differing - net) % 2  # gains and losses are whole numbers
    return min(float(2 * bdtr((differing - net) // 2, differing, 0.5)), 1.0) if differing else 1.0


def _find_half(n: int, deviation: float, alpha: float) -> float:
    """Return half the width of Student's interval of a mean."""
    return _find_quantile(n, alpha) * deviation / math.sqrt(n)


def _find_quantile(n: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - alpha / 2))
