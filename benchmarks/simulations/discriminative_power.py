"""How often the shifted bootstrap calls two systems different, equal ones and ones as they are.

Pairs of systems are drawn at random. They are made equal by shifting their difference to the mean 0 over all queries of
the population, on all queries ("shifted") or only on those on which the systems differ ("ties kept"). Queries are then
drawn with replacement, and the pair is tested alone, as for discriminative power.

    python -m benchmarks.simulations.discriminative_power [TRIALS]
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.scores import populations
from runner.statistics.significance import bootstrap_test

Floats = NDArray[np.float64]

ALPHA, RESAMPLES = 0.05, 2000
QUERIES = (25, 50, 100, 300)


def draw(scores: Floats, n: int, trials: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the differences of random pairs on n queries each (trials x n), by how the pairs were made equal."""
    first = rng.integers(0, len(scores), trials)
    second = (first + rng.integers(1, len(scores), trials)) % len(scores)
    differences = scores[first] - scores[second]
    differ = differences != 0
    means = differences.sum(axis=1, keepdims=True)
    queries = rng.integers(0, scores.shape[1], (trials, n))
    kinds = {
        "shifted": differences - means / scores.shape[1],
        "ties kept": np.where(differ, differences - means / np.maximum(differ.sum(axis=1, keepdims=True), 1), 0.0),
        "as they are": differences,
    }
    return {kind: np.take_along_axis(of, queries, axis=1) for kind, of in kinds.items()}


def main() -> None:
    """Print the share of pairs with p < 0.05, for each population and number of queries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=int, nargs="?", default=2000, help="pairs for each row")
    trials = parser.parse_args().trials
    print("| scores | queries | equal, shifted | equal, ties kept | as they are |\n|---|--:|--:|--:|--:|")
    for name, scores in populations().items():
        for n in QUERIES:
            rng = np.random.default_rng(n)
            drawn = draw(scores, n, trials, rng)
            shares = [np.mean(bootstrap_test(drawn[kind], RESAMPLES) < ALPHA) for kind in drawn]
            print(f"| {name} | {n} | " + " | ".join(f"{share:.3f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
