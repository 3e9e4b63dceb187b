"""How often cross-validated selection among equal systems reports a gain on one of them, and how often it covers.

The default settings are the first system. Systems are made equal as in `family_wise_error`. The test that repeats the
selection under flips of signs is compared with a paired t-test of the held-out values, as if one system had been given.
For systems as they are, the shares are those of intervals that do not contain the gain of the folds' winners on all
queries of the population.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.family_wise_error import ALPHA, AS_THEY_ARE, KINDS
from benchmarks.simulations.scores import populations
from runner.statistics.inversion import invert_t_test
from runner.statistics.selection import choose_nested, folds, measure_nested_gain

Floats = NDArray[np.float64]

SYSTEMS, QUERIES, FLIPS = (5, 10, 30), (50, 200), 200


def draw_systems(population: Floats, m: int, n: int, kind: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the scores of some systems on some queries, and the true means of the systems."""
    scores = population[rng.permutation(len(population))[:m]]
    if kind not in ("shuffled", AS_THEY_ARE):
        differ = (scores != scores[0]).any(axis=0) | (kind == "shifted")
        scores[:, differ] -= scores[:, differ].mean(axis=1, keepdims=True)
    means = np.zeros(m) if kind == "shuffled" else scores.mean(axis=1)
    drawn = scores[:, rng.integers(0, scores.shape[1], n)]
    return rng.permuted(drawn, axis=0) if kind == "shuffled" else drawn, means


def misses(population: Floats, m: int, n: int, kind: str, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether the t interval of held-out gains and that of the repeated selection miss the true gain."""
    scores, means = draw_systems(population, m, n, kind, rng)
    dealt = folds([""] * n, np.ones(n, dtype=np.bool_), seed=int(rng.integers(1 << 30)))
    gains = scores - scores[0]
    chosen = choose_nested(gains, dealt)
    true = float((means - means[0])[chosen.winners[dealt]].mean())
    naive = invert_t_test(chosen.held_out[None], ALPHA)[0]
    # With a shift by the true gain, the p-value tells whether the interval would cover it, also where it is withheld.
    p, _ = measure_nested_gain(gains - true, dealt, level=ALPHA, permutations=FLIPS)
    return not naive[0] - 1e-12 <= true <= naive[1] + 1e-12, p < ALPHA


def main() -> None:
    """Print a row for each population, kind, number of systems and of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--scores", nargs="*", help="populations; all by default")
    parser.add_argument("--kinds", nargs="*", default=["shuffled", "ties kept", AS_THEY_ARE], choices=KINDS)
    options = parser.parse_args()
    print("| scores | treatment | number of systems | queries | held-out values, t | selection repeated |")
    print("|---|---|--:|--:|--:|--:|")
    for name, population in populations().items():
        for kind, m, n in product(options.kinds, SYSTEMS, QUERIES):
            if not options.scores or name in options.scores:
                rng = np.random.default_rng([m, n])
                missed = np.mean([misses(population, m, n, kind, rng) for _ in range(options.trials)], axis=0)
                print(f"| {name} | {kind} | {m} | {n} | {' | '.join(f'{x:.3f}' for x in missed)} |", flush=True)


if __name__ == "__main__":
    main()
