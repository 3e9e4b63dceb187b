"""The paired significance tests: names, labels, p-values, intervals, and how few queries they can use.

Differences are paired (m x queries), and NaN marks a query that does not count. Weights (m x queries) say as how many a
query counts, None for 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.inversion import invert_bootstrap_test, invert_permutation_test, invert_t_test
from runner.statistics.maxt import MaxT, run_max_t
from runner.statistics.significance import bootstrap_test, cluster_means, permutation_test, t_test
from runner.statistics.wilcoxon import wilcoxon_test

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTest:
    """A two-sided test of paired differences.

    `label` is shown next to a p-value; `description` completes "p by ...". `compute_p_values` takes differences, the
    number of permutations or resamples, a seed, clusters and weights, and returns p-values (m,). `compute_intervals`
    also takes a level, before the permutations, and returns the intervals of mean differences that exclude 0 where the
    p-value is below that level (m x 2), NaN for unbounded intervals. `smallest_p` returns the smallest p-value that
    n queries (or clusters) can have. `is_about_mean` is false if p-values are not about the mean; intervals always are.
    `run_max_t` tests all pairs of systems at once, with the arguments of `runner.statistics.maxt.run_max_t`; for a test
    without it, Holm's correction replaces max-T.
    """

    name: str
    label: str
    description: str
    compute_p_values: Callable[[Floats, int, int, Clusters | None, Floats | None], Floats]
    compute_intervals: Callable[[Floats, float, int, int, Clusters | None, Floats | None], Floats]
    smallest_p: Callable[[int], float]
    is_about_mean: bool = True
    run_max_t: Callable[..., MaxT] | None = None

    def count_required_queries(self, alpha: float) -> int:
        """Return how many queries it takes for any difference, however large, to be significant."""
        return next(n for n in count(1) if self.smallest_p(n) < alpha)


def _smallest_by_signs(n: int) -> float:
    """Return the smallest p-value of a sign-flip test on n units; that of signed ranks is the same.

    It is the share of the assignments of n signs that are as extreme as equal signs.
    """
    return 2.0 ** (1 - n)


def _smallest_by_spread(n: int) -> float:
    """Return the p-value of n equal differences; two or more have a spread of 0."""
    return float(n < 2)


PAIRED_TESTS: Mapping[str, PairedTest] = {
    test.name: test
    for test in (
        PairedTest(
            name="permutation",
            label="paired permutation",
            description="random flips of their signs",
            compute_p_values=permutation_test,
            compute_intervals=invert_permutation_test,
            smallest_p=_smallest_by_signs,
            run_max_t=run_max_t,
        ),
        PairedTest(
            name="t",
            label="paired t",
            description="Student's t-test",
            compute_p_values=lambda differences, permutations, seed, clusters, weights: t_test(
                differences, clusters, weights
            ),
            compute_intervals=lambda differences, level, permutations, seed, clusters, weights: invert_t_test(
                differences, level, clusters, weights
            ),
            smallest_p=_smallest_by_spread,
        ),
        PairedTest(
            name="wilcoxon",
            label="Wilcoxon",
            description="Wilcoxon's signed ranks",
            compute_p_values=lambda differences, permutations, seed, clusters, weights: wilcoxon_test(
                cluster_means(differences, clusters, weights)
            ),
            compute_intervals=invert_permutation_test,
            smallest_p=_smallest_by_signs,
            is_about_mean=False,
        ),
        PairedTest(
            name="bootstrap",
            label="paired bootstrap",
            description="the bootstrap",
            compute_p_values=bootstrap_test,
            compute_intervals=invert_bootstrap_test,
            smallest_p=_smallest_by_spread,
        ),
    )
}
