"""Choose a system, and estimate how much of its lead is selection bias.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. Larger is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.inversion import withhold_intervals
from runner.statistics.significance import times_drawn
from runner.statistics.signs import blocks, most_extreme, shares, sign_blocks

Floats = NDArray[np.float64]

FOLDS = 5
"""The number of folds for queries."""


@dataclass(frozen=True, eq=False)
class Nested:
    """The result of nested cross-validation: for each fold, the winner by all other queries, measured on the fold.

    `winners` are systems by fold; `held_out` are their values on the queries that were not used to choose them (NaN for
    a query that is in no fold).
    """

    winners: NDArray[np.int64]
    held_out: Floats


def folds(
    types: Sequence[str],
    counted: NDArray[np.bool_],
    k: int = FOLDS,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> NDArray[np.int64]:
    """Deal the queries that count into folds of equal size, evenly by type; return fold numbers, -1 for none.

    All queries of a cluster are in one fold, dealt by the type of the first; folds then have equally many clusters.
    There are fewer than `k` folds if fewer queries (or clusters) count.
    """
    if clusters is not None:
        return _folds_of_clusters(types, counted, k, seed, clusters)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counted))
    order = order[np.argsort(np.array(types)[order], kind="stable")]
    numbers = np.full(len(counted), -1, dtype=np.int64)
    numbers[order] = np.arange(len(order)) % k
    return numbers


def _folds_of_clusters(
    types: Sequence[str], counted: NDArray[np.bool_], k: int, seed: int, clusters: Clusters
) -> NDArray[np.int64]:
    _, first, cluster_of = np.unique(clusters[counted], return_index=True, return_inverse=True)
    kinds = np.array(types)[counted][first].tolist()
    numbers = np.full(len(counted), -1, dtype=np.int64)
    numbers[counted] = folds(kinds, np.ones(len(kinds), dtype=np.bool_), k, seed)[cluster_of]
    return numbers


def means(scores: Floats, queries: NDArray[np.bool_]) -> Floats:
    """Return the mean of each system (m x queries) over some queries (m,); NaN if none of them counts for it."""
    some = scores[:, queries]
    counts = np.count_nonzero(~np.isnan(some), axis=1)
    result = np.full(len(some), np.nan)
    np.divide(np.nansum(some, axis=1), counts, out=result, where=counts > 0)
    return result


def choose_nested(scores: Floats, folds: NDArray[np.int64], candidates: NDArray[np.bool_] | None = None) -> Nested:
    """Choose a system for each fold by the mean over all other folds, and measure the winner on it.

    This is cross-validation with the choice inside (Varma & Simon 2006; Cawley & Talbot 2010): the mean of `held_out`
    is what the procedure of choosing yields on new queries, without selection bias. `candidates` (folds x systems)
    marks the systems that each fold may choose from, at least one; by default all. Of equal systems, the first wins.
    """
    winners = np.zeros(int(folds.max(initial=-1)) + 1, dtype=np.int64)
    held_out = np.full(scores.shape[1], np.nan)
    for fold in range(len(winners)):
        values = np.nan_to_num(means(scores, (folds >= 0) & (folds != fold)), nan=-np.inf)
        among = np.arange(len(scores)) if candidates is None else np.flatnonzero(candidates[fold])
        winners[fold] = among[np.argmax(values[among])]
        held_out[folds == fold] = scores[winners[fold], folds == fold]
    return Nested(winners, held_out)


def estimate_nested_intervals(
    scores: Floats,
    measures: Floats,
    folds: NDArray[np.int64],
    candidates: NDArray[np.bool_] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> Floats:
    """Return the intervals of the estimates of `choose_nested` by several measures (k x m x queries), as k x 2.

    The whole choice, by `scores` (m x queries), is repeated on resamples of the queries, each of which stays in its
    fold. The standard deviation over resamples is the standard error. Unlike that of the held-out values alone, it
    includes how the winners vary with the queries that chose them, and that the choices for two folds share queries.
    Student's t gives the factor. NaN below two queries (or clusters).
    """
    from scipy.special import stdtrit

    units, n = _number_units(folds, clusters)
    estimates = np.array([np.nanmean(select_nested_values(scores, values, folds, candidates)) for values in measures])
    if n < 2:
        return np.full((len(measures), 2), np.nan)
    drawn = []
    for start, size in blocks(resamples, n):
        times = np.zeros((len(folds), size))
        times[folds >= 0] = times_drawn(n, size, seed, start)[units]
        drawn.append(_choose_again(scores, measures, folds, candidates, times, times))
    errors = np.nanstd(np.concatenate(drawn, axis=1), axis=1, ddof=1)
    half = stdtrit(n - 1, (1 + confidence) / 2) * errors
    intervals: Floats = np.stack([estimates - half, estimates + half], axis=1)
    bounded = ~((measures < 0) | (measures > 1)).any(axis=(1, 2))
    intervals[bounded] = np.clip(intervals[bounded], 0, 1)
    return intervals


def measure_nested_gain(
    gains: Floats,
    folds: NDArray[np.int64],
    candidates: NDArray[np.bool_] | None = None,
    *,
    level: float = 0.05,
    permutations: int = 2000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> tuple[float, Floats]:
    """Return the p-value and the interval (2,) of the mean gain of what `choose_nested` selects.

    `gains` (m x queries) are the differences of the systems from one that was named before. The signs of the gains of a
    query (or cluster) are flipped for all systems together, and the whole choice is repeated. The test is exact if
    gains of equal systems are as likely to have either sign. A test of the held-out values alone is not, because the
    choices for two folds share queries. A gain that all systems share does not change the choice under a flip, so the
    interval, the shared gains that flips do not reject, needs no further choices. NaN for an unbounded interval.
    """
    units, n = _number_units(folds, clusters)
    held_out = choose_nested(gains, folds, candidates).held_out
    observed = float(np.nanmean(held_out))
    flipped, shifts = [], []
    for signs in sign_blocks(n, permutations, seed):
        weights = np.zeros((len(folds), len(signs)))
        weights[folds >= 0] = signs.T[units]
        once = np.ones((len(folds), 1))
        flipped.append(_choose_again(gains, gains[None], folds, candidates, weights, once)[0])
        shifts.append(weights[folds >= 0].mean(axis=0))
    means, shift = np.concatenate(flipped), np.concatenate(shifts)
    extreme = np.array([np.count_nonzero(np.abs(means) >= abs(observed) - 1e-12)])
    p_value = float(shares(extreme, n, permutations)[0])
    most = most_extreme(level, n, permutations)
    if most < 0:
        return p_value, np.full(2, np.nan)
    # Less a shared gain of x, a flip is as extreme as no flip for each x between these two quotients, for any x at 0/0.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([np.round(observed - means, 12) / (1 - shift), np.round(observed + means, 12) / (1 + shift)])
    always = np.isnan(ends).any(axis=0)
    low = np.sort(np.where(always, -np.inf, ends.min(axis=0)))[most]
    high = np.sort(np.where(always, np.inf, ends.max(axis=0)))[-most - 1]
    return p_value, withhold_intervals(np.array([[low, high]]), held_out[None], clusters)[0]


def select_nested_values(
    scores: Floats, values: Floats, folds: NDArray[np.int64], candidates: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the values of the winners of `choose_nested`, each on its fold (queries,).

    `values` are m x queries, as are the scores that the choice is made by.
    """
    winners = choose_nested(scores, folds, candidates).winners
    held_out = np.full(scores.shape[1], np.nan)
    for fold, winner in enumerate(winners):
        held_out[folds == fold] = values[winner, folds == fold]
    return held_out


def _number_units(folds: NDArray[np.int64], clusters: Clusters | None) -> tuple[NDArray[np.int64], int]:
    """Return the number of the unit (query or cluster) of each query in a fold, and how many units there are."""
    counted = folds >= 0
    units = np.unique(np.flatnonzero(counted) if clusters is None else clusters[counted], return_inverse=True)[1]
    return units, int(units.max(initial=-1)) + 1


def _choose_again(
    scores: Floats,
    measures: Floats,
    folds: NDArray[np.int64],
    candidates: NDArray[np.bool_] | None,
    weights: Floats,
    times: Floats,
) -> Floats:
    """Return the held-out means by each measure (k x b) of b choices, in which values have weights (queries x b).

    `times` is how often a query counts (queries x b, or x 1).
    """
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    present, filled = (~np.isnan(scores)).astype(np.float64), np.nan_to_num(scores)
    sums = np.stack([filled[:, part] @ weights[part] for part in parts])
    counts = np.stack([present[:, part] @ times[part] for part in parts])
    total, n, times = sums.sum(axis=0), counts.sum(axis=0), np.broadcast_to(times, weights.shape)
    totals, queries = np.zeros((2, len(measures), weights.shape[1]))
    for fold, part in enumerate(parts):
        others = n - counts[fold]
        means = np.divide(total - sums[fold], others, out=np.full(total.shape, -np.inf), where=others > 0)
        if candidates is not None:
            means[~candidates[fold]] = -np.inf
        winners = np.argmax(means, axis=0)
        for winner in np.unique(winners):
            where = winners == winner
            values = measures[:, winner, part]
            totals[:, where] += np.nan_to_num(values) @ weights[np.ix_(part, where)]
            queries[:, where] += (~np.isnan(values)).astype(np.float64) @ times[np.ix_(part, where)]
    held_out: Floats = np.divide(totals, queries, out=np.full(totals.shape, np.nan), where=queries > 0)
    return held_out


def find_front(values: Floats, larger: Sequence[bool], ignored: float = 0.0) -> NDArray[np.bool_]:
    """Return which systems (m x objectives) are on the Pareto front: no other is as good in all and better in one.

    `larger` says for each objective whether larger is better. A system with a NaN is not on the front. In the last
    objective, a system on the front also counts as equal to one that is better by at most `ignored`, if it is better in
    an earlier objective; systems are added in the order of the objectives, the best first. The script of a page has the
    same rule (`findFront`).
    """
    signed = np.where(np.array(larger, dtype=np.bool_), values, -values)
    known = np.flatnonzero(~np.isnan(signed).any(axis=1))
    on_front = np.zeros(len(signed), dtype=np.bool_)
    # In descending order, only a system before it can beat a system, so one on the front does.
    for i in known[np.lexsort(signed[known].T[::-1])[::-1]]:
        better = signed[on_front]
        as_good = (better[:, :-1] >= signed[i, :-1]).all(axis=1) & (better[:, -1] + ignored >= signed[i, -1])
        on_front[i] = not (as_good & (better > signed[i]).any(axis=1)).any()
    return on_front
