"""Measure how often the interval of a nested cross-validation covers the winner's true score on new queries.

The true score is the mean, over all queries of a population, of the winners of the folds. Systems are either "shifted"
to the same mean, so that the choice is pure luck, or left unchanged.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.simulations.intervals import percentile
from benchmarks.simulations.scores import populations
from runner.statistics.selection import choose_nested, estimate_nested_intervals, folds

CASES = ((10, 50), (30, 50), (100, 50), (10, 150), (30, 150), (100, 150), (10, 300), (100, 300))
"""The numbers of systems and queries of each case."""


def main(trials: int = 500) -> None:
    """Print a row for each population, kind, number of systems and of queries."""
    print("| scores | treatment | number of systems | queries | held-out values resampled | selection resampled |")
    print("|---|---|--:|--:|--:|--:|")
    for name, population in populations().items():
        for kind in ("shifted", "as they are"):
            scores = population - population.mean(axis=1, keepdims=True) if kind == "shifted" else population
            for m, n in CASES:
                rng = np.random.default_rng([m, n])
                covered = np.zeros(2)
                for _ in range(trials):
                    some = scores[rng.permutation(len(scores))[:m]]
                    drawn = some[:, rng.integers(0, some.shape[1], n)]
                    dealt = folds([""] * n, np.ones(n, dtype=np.bool_), seed=int(rng.integers(1 << 30)))
                    made = choose_nested(drawn, dealt)
                    truth = some.mean(axis=1)[made.winners[dealt]].mean()
                    intervals = (
                        percentile(made.held_out[None], 400)[0],
                        estimate_nested_intervals(drawn, drawn[None], dealt, resamples=400)[0],
                    )
                    covered += [low <= truth <= high for low, high in intervals]
                cells = " | ".join(f"{share:.3f}" for share in covered / trials)
                print(f"| {name} | {kind} | {m} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
