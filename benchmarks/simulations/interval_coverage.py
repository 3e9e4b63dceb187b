"""Measure how often nominal 95 % intervals of a mean contain the mean of the queries that samples are drawn from.

Samples are drawn with replacement from the values of one BM25 on each collection, or from synthetic ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from benchmarks.simulations.intervals import bca, percentile
from benchmarks.simulations.scores import COLLECTIONS, one_system, synthetic
from runner.statistics.significance import mean_interval

Floats = NDArray[np.float64]

MEASURES = ("nDCG@10", "RR", "Success@1", "P@10")
QUERIES = (10, 30, 50, 300)
METHODS: dict[str, Callable[[Floats], Floats]] = {"percentile": percentile, "BCa": bca, "mean_interval": mean_interval}


def populations() -> dict[tuple[str, str], Floats]:
    """Return the values of queries by collection and measure, with synthetic scores and hits of 3 % of queries."""
    measured = {
        (name, measure): values
        for name in COLLECTIONS
        if (DATA / name).is_dir()
        for measure, values in zip(MEASURES, one_system(name, MEASURES), strict=True)
    }
    return measured | {
        ("synthetic", "skewed"): synthetic()[0],
        ("synthetic", "rare hits"): np.repeat([0.0, 1.0], [97, 3]),
    }


def main(trials: int = 2000) -> None:
    """Print a row for each population and number of queries."""
    print("| scores | measure | mean | queries | " + " | ".join(METHODS) + " |")
    print("|---|---|" + "--:|" * (2 + len(METHODS)))
    for (name, measure), population in populations().items():
        truth = float(population.mean())
        for n in QUERIES:
            rng = np.random.default_rng(n)
            samples = population[rng.integers(0, len(population), (trials, n))]
            cells = []
            for method in METHODS.values():
                low, high = method(samples).T
                covered = np.mean((low <= truth + 1e-12) & (high >= truth - 1e-12))
                cells.append(f"{covered:.3f} ({np.mean(high - low):.3f})")
            print(f"| {name} | {measure} | {truth:.3f} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
