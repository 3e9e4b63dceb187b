"""Measure how much scores vary over queries, for systems of different kinds on each collection.

For each measure: the median standard deviation of the differences between two systems, over all pairs, and the median
standard deviation of the scores of a system as a share of the largest that scores from 0 to 1 with its mean can have.
`runner.statistics.typical_spread` has the largest values over the collections.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.difference_coverage import score_systems

Floats = NDArray[np.float64]

COLLECTIONS = ("adi", "cranfield", "xquad-en", "scifact", "cosqa")
TESTED = ("nDCG@10", "RR", "AP", "R@10", "P@10", "Success@1", "Success@5", "Success@10")


def measure_spread(scores: Floats) -> tuple[float, float]:
    """Return the median deviation of the differences of pairs, and that of scores as a share of the largest."""
    first, second = np.triu_indices(len(scores), 1)
    of_pairs = (scores[first] - scores[second]).std(axis=1, ddof=1)
    means = scores.mean(axis=1)
    return float(np.median(of_pairs)), float(np.median(scores.std(axis=1) / np.sqrt(means * (1 - means))))


def main() -> None:
    """Print a row for each measure, with a column for each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    rows: dict[str, list[tuple[float, float]]] = {measure: [] for measure in TESTED}
    for collection in options.collections:
        for measure, scores in zip(TESTED, score_systems(collection, TESTED), strict=True):
            rows[measure].append(measure_spread(scores))
    print("| measure | " + " | ".join(options.collections) + " |\n|---|" + "--:|" * len(options.collections))
    for measure, spreads in rows.items():
        print(f"| {measure} | " + " | ".join(f"{pairs:.2f} ({share:.2f})" for pairs, share in spreads) + " |")


if __name__ == "__main__":
    main()
