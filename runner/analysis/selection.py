"""Which system to choose, and how much of its lead is the luck of having been chosen.

Systems are rows, queries are columns, and NaN is a query that does not count for a system. Larger is better. Knows
nothing of measures, of splits, or of where systems come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FOLDS = 5
"""How many parts queries are dealt into."""


@dataclass(frozen=True, eq=False)
class Nested:
    """What choosing is worth where it was not done: for each fold the winner by all other queries, measured on it.

    `winners` are systems by fold, `held_out` their values of the queries that they were chosen without (NaN for a query
    that is in no fold).
    """

    winners: NDArray[np.int64]
    held_out: Floats


def folds(types: Sequence[str], counted: NDArray[np.bool_], k: int = FOLDS, seed: int = 0) -> NDArray[np.int64]:
    """Deal the queries that count into folds of the same size, each type's evenly; return their numbers, -1 for none.

    There are fewer than `k` where fewer queries count.
    """
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counted))
    order = order[np.argsort(np.array(types)[order], kind="stable")]
    numbers = np.full(len(counted), -1, dtype=np.int64)
    numbers[order] = np.arange(len(order)) % k
    return numbers


def means(scores: Floats, queries: NDArray[np.bool_]) -> Floats:
    """Return the mean of each system (m x queries) over some queries (m); NaN where none of them counts for it."""
    some = scores[:, queries]
    counts = np.count_nonzero(~np.isnan(some), axis=1)
    found = np.full(len(some), np.nan)
    np.divide(np.nansum(some, axis=1), counts, out=found, where=counts > 0)
    return found


def nested(scores: Floats, folds: NDArray[np.int64], candidates: NDArray[np.bool_] | None = None) -> Nested:
    """Choose once for each fold, by the mean over all other folds, and measure the winner on it.

    This is cross-validation with the choice inside of it (Varma & Simon 2006; Cawley & Talbot 2010): the mean of
    `held_out` is what the procedure of choosing yields on new queries, without selection bias. `candidates`
    (folds x systems) are those that each fold has to choose from, at least one; by default all. Of equals, the first
    wins.
    """
    winners = np.zeros(int(folds.max(initial=-1)) + 1, dtype=np.int64)
    held_out = np.full(scores.shape[1], np.nan)
    for fold in range(len(winners)):
        found = np.nan_to_num(means(scores, (folds >= 0) & (folds != fold)), nan=-np.inf)
        among = np.arange(len(scores)) if candidates is None else np.flatnonzero(candidates[fold])
        winners[fold] = among[np.argmax(found[among])]
        held_out[folds == fold] = scores[winners[fold], folds == fold]
    return Nested(winners, held_out)


def front(values: Floats, larger: Sequence[bool]) -> NDArray[np.bool_]:
    """Tell which systems (m x objectives) are on the Pareto front: none is as good in all and better in one.

    `larger` says of each objective whether more is better. One without a value (NaN) is on no front, nor before one.
    """
    signed = np.where(np.array(larger, dtype=np.bool_), values, -values)
    known = np.array([not np.isnan(row).any() for row in signed], dtype=np.bool_)
    on = known.copy()
    for i in np.flatnonzero(known):
        others = signed[known]
        on[i] = not ((others >= signed[i]).all(axis=1) & (others > signed[i]).any(axis=1)).any()
    return on
