"""Measure how often 95 % intervals of attractiveness, estimated from clicks, contain the true attractiveness.

Each query has 12 documents, of which a search shows ten. Rankings follow a noisy score that correlates with
attractiveness, as in a search engine, so documents change ranks from search to search. Users examine rank r with
probability r to the power of minus 0.7. The raw click rate, which assumes that every shown document was examined, is
shown for comparison.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from runner.datasets.clicks import Impressions, estimate_attractiveness, fit_examination

DOCUMENTS, SHOWN = 12, 10
EXAMINATION = np.arange(1.0, SHOWN + 1) ** -0.7


def draw_log(queries: int, searches: int, rng: np.random.Generator) -> tuple[Impressions, NDArray[np.float64]]:
    """Return a log and the attractiveness of each of its pairs."""
    attractiveness = rng.beta(0.6, 2.4, (queries, DOCUMENTS))
    noise = rng.normal(0, 0.4, (searches, queries, DOCUMENTS))
    orders = np.argsort(-(attractiveness + noise), axis=2)[:, :, :SHOWN]
    pairs = orders + np.arange(queries)[:, None] * DOCUMENTS
    clicks = rng.random(pairs.shape) < attractiveness.ravel()[pairs] * EXAMINATION
    cells = pairs * SHOWN + np.arange(SHOWN)
    places, shown = np.unique(cells, return_counts=True)
    clicked = np.bincount(cells.ravel(), clicks.ravel(), queries * DOCUMENTS * SHOWN)[places].astype(np.int64)
    return Impressions(places // SHOWN, places % SHOWN + 1, shown, clicked), attractiveness.ravel()


def main(trials: int = 50) -> None:
    """Print a row for each size of the log."""
    print("| queries | searches per query | coverage | width | error | error of click rates | error of examination |")
    print("|" + "--:|" * 7)
    for queries, searches in ((50, 20), (50, 100), (500, 20), (500, 100), (50, 1000)):
        rows = []
        for trial in range(trials):
            log, truth = draw_log(queries, searches, np.random.default_rng(trial))
            examination = fit_examination(log)
            estimate = estimate_attractiveness(log, examination)
            shown = np.bincount(log.pairs, log.shown, len(log))
            there = shown >= 10
            rate = np.bincount(log.pairs, log.clicked, len(log))[there] / shown[there]
            mean, low, high, true = (x[: len(log)][there] for x in (estimate.mean, estimate.low, estimate.high, truth))
            rows.append(
                [
                    np.mean((low <= true) & (true <= high)), np.mean(high - low), np.abs(mean - true).mean(),
                    np.abs(rate - true).mean(), np.abs(examination - EXAMINATION).mean(),
                ]
            )  # fmt: skip
        cells = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
        print(f"| {queries} | {searches} | {cells} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
