"""Measure how often the interval of the importance of a setting, or of two by their interaction, covers the truth.

Scores are sums of the effects of two settings and of their interaction, which differ between queries. Without an
interaction, the true share of the pair is 0.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from runner.statistics.importance import estimate_importance

GRIDS = ((2, 2), (3, 4), (5, 5))
"""The numbers of values of the two settings."""

QUERIES = (50, 200)

INTERACTIONS = (0.0, 0.2, 0.5)
"""The true shares of the interaction; of the rest of the variance, the first setting has twice that of the second."""

SPREAD = 0.02
"""Standard deviation of the true means of the systems."""

NOISE = (0.05, 0.05, 0.07)
"""Standard deviations, over queries, of the effects of the first setting, of the second, and of each system."""


def main(trials: int = 1_000) -> None:
    """Print a row for each grid, number of queries and true share of the interaction."""
    print("| values | queries | true share of the pair | contains 0 | covers: pair | first setting | second setting |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for grid in GRIDS:
        for n in QUERIES:
            for share in INTERACTIONS:
                row = measure(grid, n, share, trials)
                cells = " | ".join(f"{value:.3f}" for value in row)
                print(f"| {grid[0]} x {grid[1]} | {n} | {share} | {cells} |", flush=True)


def measure(grid: tuple[int, int], n: int, share: float, trials: int) -> NDArray[np.float64]:
    """Return how often the interval of the pair contains 0, and how often each interval contains its true share."""
    rng = np.random.default_rng([*grid, n, int(share * 100)])
    one, other = (of.ravel() for of in np.indices(grid))
    settings = {"one": one.tolist(), "other": other.tolist()}
    truth = {("one",): (1 - share) * 2 / 3, ("other",): (1 - share) / 3, ("one", "other"): share}
    counts = np.zeros(4)
    for _ in range(trials):
        means = sum(np.sqrt(of) * draw_effect(rng, grid, names) for names, of in truth.items()) * SPREAD
        noise = (
            NOISE[0] * rng.normal(size=(grid[0], 1, n))
            + NOISE[1] * rng.normal(size=(1, grid[1], n))
            + NOISE[2] * rng.normal(size=(*grid, n))
        )
        scores = means.reshape(-1, 1) + noise.reshape(-1, n)
        intervals = {i.settings: i for i in estimate_importance(scores, settings, rng)}
        covered = [intervals[names].low <= truth[names] <= intervals[names].high for names in reversed(truth)]
        counts += [intervals["one", "other"].low <= 0, covered[0], covered[2], covered[1]]
    return counts / trials


def draw_effect(rng: np.random.Generator, grid: tuple[int, int], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return a random effect of a setting, or an interaction, with the variance 1 over the grid."""
    values = rng.normal(size=grid)
    rows, columns = values.mean(axis=1, keepdims=True), values.mean(axis=0, keepdims=True)
    effect = {("one",): rows, ("other",): columns}.get(names, values - rows - columns)
    effect = np.broadcast_to(effect - effect.mean(), grid)
    scaled: NDArray[np.float64] = effect / effect.std()
    return scaled


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
