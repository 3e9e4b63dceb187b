"""How often intervals of a mean difference across datasets contain the true difference, with few datasets.

A difference has a mean, a deviation between datasets and a deviation between the queries of a dataset. Each trial draws
datasets of different size and computes three 95 % intervals: the percentile interval of the hierarchical bootstrap (of
datasets, then of their queries), Student's t over the datasets' means, and the interval for the same datasets, which
does not claim to cover new ones. The truth is the mean over all datasets; for the last column, that of the drawn ones.

    python -m benchmarks.simulations.across_datasets [TRIALS]
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from runner.statistics.across_datasets import compute_t_intervals, weight_datasets
from runner.statistics.comparison import compare_pairs
from runner.statistics.settings import Statistics

Floats = NDArray[np.float64]

BETWEEN = {"none": 0.0, "small": 0.01, "large": 0.04}
"""The deviation of the true difference between datasets."""

WITHIN, MEAN = 0.25, 0.02
SIZES = (50, 300)
"""The fewest and the most queries of a dataset."""

RESAMPLES = 999
DATASETS = (3, 4, 6, 10)


def draw(datasets: int, between: float, rng: np.random.Generator) -> tuple[Floats, list[Floats]]:
    """Return the true difference on each dataset and the differences of its queries, which are often 0."""
    truths = rng.normal(MEAN, between, datasets)
    parts = []
    for truth in truths.tolist():
        n = int(rng.integers(*SIZES))
        differs = rng.random(n) < 0.5
        parts.append(np.where(differs, rng.laplace(0, WITHIN, n), 0) + truth)
    return truths, parts


def bootstrap_hierarchy(parts: list[Floats], rng: np.random.Generator) -> Floats:
    """Return the percentile interval of the mean over datasets; datasets are resampled, then their queries."""
    means = np.stack([part[rng.integers(len(part), size=(RESAMPLES * 2, len(part)))].mean(axis=1) for part in parts])
    chosen = rng.integers(len(parts), size=(len(parts), RESAMPLES))
    resampled = means[chosen, rng.integers(RESAMPLES * 2, size=chosen.shape)].mean(axis=0)
    bounds: Floats = np.quantile(resampled, [0.025, 0.975])
    return bounds


def simulate(datasets: int, between: float, trials: int, rng: np.random.Generator) -> Floats:
    """Return the share of intervals that contain the truth: the hierarchical bootstrap, Student's t, same datasets."""
    hits = np.zeros(3)
    for _ in range(trials):
        truths, parts = draw(datasets, between, rng)
        means = np.array([[part.mean() for part in parts]])
        scores = [np.stack([np.zeros(len(part)), part]) for part in parts]
        weighted, _ = weight_datasets(scores)
        pairs = compare_pairs(weighted, Statistics(permutations=RESAMPLES))
        intervals = [
            bootstrap_hierarchy(parts, rng),
            compute_t_intervals(means, 0.95)[0],
            pairs.intervals(weighted[1:] - weighted[:1])[0],
        ]
        for i, ((low, high), truth) in enumerate(zip(intervals, (MEAN, MEAN, truths.mean()), strict=True)):
            hits[i] += low <= truth <= high
    return hits / trials


def main(arguments: list[str]) -> None:
    """Print a row per number of datasets and deviation between them."""
    trials = int(arguments[0]) if arguments else 1000
    print("| datasets | deviation between datasets | hierarchical bootstrap | Student's t | same datasets |")
    print("|--:|---|--:|--:|--:|")
    for datasets in DATASETS:
        for name, between in BETWEEN.items():
            shares = simulate(datasets, between, trials, np.random.default_rng(datasets))
            print(f"| {datasets} | {name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
