"""Compare the gain that a leaderboard expects of a search of equal systems with the one on fresh queries.

Queries are drawn with replacement from those of a collection. The truth is the mean of many such draws: the largest of
the means of the systems, each less its mean on the whole collection, minus the mean of all. An estimate has only the
scores on one draw. Besides the flips of signs that leaderboards use, scores of each query are dealt to the systems at
random, as they are and centred by system. "off by" is the root mean square of the difference of one estimate, by flips,
from the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.difference_coverage import MEASURES, score_systems
from benchmarks.simulations.scores import real
from runner.statistics.search_gain import measure_search_gain

Floats = NDArray[np.float64]

COLLECTIONS = ("adi", "cranfield", "xquad-en", "scifact", "cosqa")
TESTED = ("nDCG@10", "RR", "Success@5")
QUERIES = (30, 100, 300)
DRAWS, DRAWS_DEALT, DEALT = 400, 20, 100


def deal_scores(scores: Floats, rng: np.random.Generator) -> float:
    """Return the mean gain when the scores of each query are dealt to the systems at random."""
    means = np.stack([rng.permuted(scores, axis=0).mean(axis=1) for _ in range(DEALT)])
    return float((means.max(axis=1) - means.mean(axis=1)).mean())


def list_pools(collection: str) -> Iterator[tuple[str, str, Floats, int]]:
    """Yield measures of systems of different kinds, and of 100 BM25 settings, with the number of systems to draw."""
    for measure, scores in zip(MEASURES, score_systems(collection), strict=True):
        if measure in TESTED:
            yield measure, "mixed", scores, 5
            yield measure, "mixed", scores, 12
    settings = real(collection, "nDCG@10")
    yield "nDCG@10", "BM25", settings, 30
    yield "nDCG@10", "BM25", settings, 100


def simulate_gains(pool: Floats, m: int, n: int, trials: int) -> tuple[float, Floats, Floats]:
    """Return the true gain, its estimates by flips of signs (draws,), and the mean of those by dealing in two ways."""
    rng = np.random.default_rng([m, n])
    gains, flips, dealt = [], [], []
    for trial in range(trials):
        systems = pool[rng.permutation(len(pool))[:m]]
        drawn = systems[:, rng.integers(0, systems.shape[1], n)]
        luck = drawn.mean(axis=1) - systems.mean(axis=1)
        gains.append(luck.max() - luck.mean())
        if trial < DRAWS:
            flips.append(measure_search_gain(drawn).expected)
        if trial < DRAWS_DEALT:
            centred = drawn - drawn.mean(axis=1, keepdims=True)
            dealt.append([deal_scores(centred, rng), deal_scores(drawn, rng)])
    return float(np.mean(gains)), np.array(flips), np.mean(dealt, axis=0)


def main() -> None:
    """Print a row for each collection, measure, number of systems and of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    print("| scores | measure | systems | queries | fresh queries | flips | off by | dealt, centred | dealt |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for collection in options.collections:
        for measure, kind, pool, m in list_pools(collection):
            for n in QUERIES:
                truth, flips, dealt = simulate_gains(pool, m, n, options.trials)
                cells = [truth, flips.mean(), np.sqrt(np.mean((flips - truth) ** 2)), *dealt.tolist()]
                shown = " | ".join(f"{cell:.4f}" for cell in cells)
                print(f"| {collection} | {measure} | {m} {kind} | {n} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
