"""The corrections of p-values for the number of tests: names, labels, corrected p-values and levels of single tests.

They do not depend on the test, except for max-T and the randomised Tukey test, which test all pairs of systems at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters, by_cluster

if TYPE_CHECKING:
    from runner.statistics.maxt import MaxT
    from runner.statistics.paired_tests import PairedTest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tukey:
    """The p-values of all pairs of systems (m x m), and how far apart two means must be to differ at a level."""

    p_values: Floats
    least_difference: float

    def intervals(self, differences: Floats) -> Floats:
        """Return the intervals of mean differences (m x queries) that exclude 0 where the p-value is below the level.

        They are simultaneous for all pairs (m x 2), and NaN if no query counts.
        """
        means = by_cluster(differences, None).means
        return np.stack([means - self.least_difference, means + self.least_difference], axis=1)

    def levels(self, differences: Floats) -> Floats:
        """Return the level of a single test with the same critical difference, in the normal approximation (m,)."""
        from scipy.special import ndtr

        errors = by_cluster(differences, None).errors
        critical = np.divide(self.least_difference, errors, out=np.full(len(errors), np.inf), where=errors > 0)
        levels: Floats = 2 * ndtr(-np.nan_to_num(critical, nan=np.inf))
        return levels


def holm(p_values: Floats) -> Floats:
    """Return p-values corrected to control the family-wise error rate (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    corrected[order] = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    return np.minimum(corrected, 1)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return p-values corrected to control the false discovery rate (Benjamini & Hochberg 1995)."""
    n = len(p_values)
    order = np.argsort(-p_values, kind="stable")
    corrected = np.empty(n)
    corrected[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return corrected


def _find_level_of_holm(level: float, tests: int, significant: int) -> float:
    """Return the level of the last step of Holm's correction."""
    return level / max(tests - significant, 1)


@dataclass(frozen=True)
class Correction:
    """A correction of the p-values of a family of tests for their number.

    `label` is shown next to a p-value, `description` completes "with ...", and `title` heads a column of p-values.
    `correct` returns corrected p-values. `find_level` returns the level for single p-values that is equivalent to a
    level for corrected ones, given the level, the number of tests and the number of significant ones. A correction with
    `find_joint_test` tests all pairs of systems at once, from their scores: it returns the joint test that goes with a
    paired test, None if there is none. Holm's correction replaces it for other families, so these two functions are
    Holm's by default. `is_own_test` is true if the joint test is the same for all paired tests. `depends_on_family` is
    false if corrected p-values do not depend on the number of tests.
    """

    name: str
    label: str
    description: str
    title: str
    correct: Callable[[Floats], Floats] = holm
    find_level: Callable[[float, int, int], float] = _find_level_of_holm
    find_joint_test: Callable[[PairedTest], Callable[..., MaxT | Tukey] | None] | None = None
    is_own_test: bool = False
    depends_on_family: bool = True

    @property
    def needs_all_pairs(self) -> bool:
        """Return whether the correction tests all pairs of systems at once, and so needs more than p-values."""
        return self.find_joint_test is not None

    def for_family(self, pairs_by: PairedTest | None = None) -> Correction:
        """Return the correction of a family of tests: Holm's replaces one that needs all pairs of systems.

        `pairs_by` is the paired test if the family is all pairs of systems on a single measure; Holm's correction then
        only replaces a correction without a joint test for it.
        """
        if self.find_joint_test is None or (pairs_by and self.find_joint_test(pairs_by)):
            return self
        return CORRECTIONS["holm"]

    def check_p_values(self) -> None:
        """Raise `ValueError` for Tukey's correction: its p-values do not come from those of a paired test."""
        if self.is_own_test:
            *others, last = (name for name, correction in CORRECTIONS.items() if not correction.needs_all_pairs)
            raise ValueError(
                f"correction={self.name}: only corrects tests of all pairs of systems on a single measure; choose "
                f"{', '.join(others)} or {last}"
            )


def correct(p_values: Floats, correction: str) -> Floats:
    """Return the p-values of a family of tests, corrected by the named correction.

    Raises `ValueError` for Tukey's correction, which needs scores. Max-T needs them too; Holm's correction, which only
    needs p-values, replaces it.
    """
    CORRECTIONS[correction].check_p_values()
    return CORRECTIONS[correction].correct(p_values)


def level_of_each(p_values: Floats, level: float, correction: str) -> float:
    """Return the level for single p-values that is equivalent to a level for corrected p-values."""
    significant = int(np.count_nonzero(correct(p_values, correction) < level))
    return CORRECTIONS[correction].find_level(level, len(p_values), significant) if len(p_values) else level


def run_randomised_tukey(
    scores: Floats, permutations: int = 10000, seed: int = 0, *, level: float = 0.05, clusters: Clusters | None = None
) -> Tukey:
    """Return the p-values of all pairs of systems (m x queries), corrected for their number.

    This is Tukey's honestly significant difference by randomisation: the scores of each query (or the sums of each
    cluster) are dealt to the systems at random, and the difference of a pair is compared with the largest among all
    pairs (Carterette 2012). The observed scores count as one more permutation. Where a query does not count for a
    system, the mean of the other systems is used. Systems that share no query have p = 1.
    """
    counted = ~np.isnan(scores)
    known = counted.any(axis=1)
    p_values = np.ones((len(scores), len(scores)))
    if not known.any():
        return Tukey(p_values, np.nan)
    some, queries = scores[known][:, counted.any(axis=0)], None if clusters is None else clusters[counted.any(axis=0)]
    # Subtract the mean of each query, which changes no difference, and round away errors where there is no difference.
    centred = by_cluster(np.round(np.nan_to_num(some - np.nanmean(some, axis=0)), 12), queries).sums
    sums = centred.sum(axis=1)
    # The order of the systems has no influence: places that list them in different orders show the same p-values.
    rng, dealt = np.random.default_rng(seed), centred[np.lexsort(centred.T)].T.copy()
    ranges = np.empty(permutations)
    for i in range(permutations):
        rng.permuted(dealt, axis=1, out=dealt)
        ranges[i] = np.ptp(dealt.sum(axis=0))
    ranges.sort()
    slack = 1e-12 * np.abs(centred).sum()
    least = np.abs(sums[:, None] - sums) - slack
    p_values[np.ix_(known, known)] = (permutations - np.searchsorted(ranges, least) + 1) / (permutations + 1)
    p_values[counted.astype(np.float64) @ counted.T == 0] = 1
    most = math.ceil(level * (permutations + 1) - 1e-9) - 2
    return Tukey(p_values, (ranges[-most - 1] + slack) / some.shape[1] if most >= 0 else np.nan)


CORRECTIONS: Mapping[str, Correction] = {
    correction.name: correction
    for correction in (
        Correction(
            name="maxt",
            label="max-T over all pairs",
            description="the step-down max-T correction",
            title="max-T p",
            find_joint_test=lambda test: test.run_max_t,
        ),
        Correction(name="holm", label="Holm", description="Holm's correction", title="Holm p"),
        Correction(
            name="bh",
            label="Benjamini-Hochberg",
            description="Benjamini and Hochberg's correction",
            title="BH p",
            correct=benjamini_hochberg,
            # That of intervals with a controlled false coverage rate (Benjamini & Yekutieli 2005).
            find_level=lambda level, tests, significant: level * max(significant, 1) / tests,
        ),
        Correction(
            name="tukey",
            label="randomised Tukey HSD",
            description="randomised Tukey HSD",
            title="Tukey p",
            find_joint_test=lambda test: run_randomised_tukey,
            is_own_test=True,
        ),
        Correction(
            name="none",
            label="uncorrected",
            description="no correction",
            title="p",
            correct=np.copy,
            find_level=lambda level, tests, significant: level,
            depends_on_family=False,
        ),
    )
}
