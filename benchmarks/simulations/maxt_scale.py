"""How often tests of all pairs report a difference between any two equal systems, and how many true ones they find.

`max-T` divides the sum of a pair's differences by the root of the sum of their squares plus that of the median pair;
`studentised` leaves the median pair out. `Holm` corrects t-tests of the pairs. Systems and their scores are
those of `family_wise_error`; power is the share of all pairs that are reported to differ, with the scores as they are.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.family_wise_error import ALPHA, AS_THEY_ARE, KINDS, PERMUTATIONS, TIES_KEPT, sample
from benchmarks.simulations.scores import populations
from runner.statistics.corrections import holm
from runner.statistics.maxt import run_max_t
from runner.statistics.significance import compute_differences, t_test

Floats = NDArray[np.float64]

SYSTEMS, QUERIES = (10, 30), (50, 300)


def correct_studentised(differences: Floats) -> Floats:
    """Return the p-values of a step-down max-T test of pairs (pairs x queries) whose statistics are studentised."""
    norms = np.sqrt((differences**2).sum(axis=1, keepdims=True))
    scaled = np.divide(differences, norms, out=np.zeros_like(differences), where=norms > 0)
    observed = np.abs(scaled.sum(axis=1))
    order = np.argsort(observed)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (differences.shape[1], PERMUTATIONS))
    peaks = np.maximum.accumulate(np.abs(scaled[order] @ signs), axis=0)
    shares = (np.count_nonzero(peaks >= observed[order, None] - 1e-9, axis=1) + 1) / (PERMUTATIONS + 1)
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate(shares[::-1])[::-1]
    return np.where(observed > 1e-9, p_values, 1)


def count_reported(scores: Floats) -> list[int]:
    """Return how many pairs each procedure reports to differ: Holm, max-T, studentised."""
    first, second = np.triu_indices(len(scores), 1)
    differences = compute_differences(scores[first], scores[second])
    p_values = (
        holm(t_test(differences)),
        run_max_t(scores, PERMUTATIONS).p_values[first, second],
        correct_studentised(differences),
    )
    return [int(np.count_nonzero(row < ALPHA)) for row in p_values]


def main() -> None:
    """Print a row for each population, kind, number of systems and of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--scores", nargs="*", help="populations; all by default")
    parser.add_argument("--kinds", nargs="*", default=["shuffled", TIES_KEPT, AS_THEY_ARE], choices=KINDS)
    options = parser.parse_args()
    print("| scores | treatment | number of systems | queries | Holm | max-T | studentised |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, population in populations().items():
        for kind, m, n in product(options.kinds, SYSTEMS, QUERIES):
            if not options.scores or name in options.scores:
                rng = np.random.default_rng([m, n])
                trials = options.trials if kind != AS_THEY_ARE else max(options.trials // 10, 1)
                counts = np.array([count_reported(sample(population, m, n, kind, rng)) for _ in range(trials)])
                shares = (counts / (m * (m - 1) / 2) if kind == AS_THEY_ARE else counts > 0).mean(axis=0)
                print(f"| {name} | {kind} | {m} | {n} | {' | '.join(f'{x:.3f}' for x in shares)} |", flush=True)


if __name__ == "__main__":
    main()
