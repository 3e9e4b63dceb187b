"""Measure how often a race keeps the winner of the full sweep, and how many evaluations it saves.

Scores are those of 50 real hybrids (five k1 by five b by two weights of an LSA part) on each collection with at least
1,000 judged queries, and a null: every configuration has the values of the best one, in another order of the queries,
so that all means are equal; the first configuration counts as the winner. Each repetition draws 1,000 queries and their
order.

    python -m benchmarks.simulations.racing FOLDER [REPETITIONS [COLLECTION ...]]

FOLDER keeps the scores of each collection between commands.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from retrievers.bm25 import BM25
from retrievers.dense import Dense
from retrievers.encoders.lsa import LSAEncoder
from retrievers.fusion import Hybrid
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.analysis.racing import run_race
from runner.datasets.beir import Beir
from runner.metrics.measures import parse
from runner.metrics.scores import score

Floats = NDArray[np.float64]

SPLITS = {"scifact": ("train", "test"), "cosqa": ("dev", "test"), "xquad-en": ("test",)}
"""The splits of each collection that together have at least 1,000 judged queries."""

QUERIES, ALPHA = 1000, 0.05
"""The number of queries of a race, and the error rate."""

CASES = (
    (5, 0.0, False), (20, 0.0, False), (50, 0.0, False), (20, 0.01, False), (20, 0.02, False), (20, 0.0, True),
)  # fmt: skip
"""The size of a block, the margin, and whether the means are made equal."""


def load_scores(collection: str, folder: Path) -> Floats:
    """Return nDCG@10 of the 50 hybrids on all judged queries (50 x queries), computed once and kept in a folder."""
    file = folder / f"{collection}.npy"
    if file.is_file():
        kept: Floats = np.load(file)
        return kept
    parts: list[Floats] = []
    for split in SPLITS[collection]:
        dataset, store = Beir(path=str(DATA / collection), split=split).load(), MemoryStore()
        rows: list[Floats] = []
        for k1, b, alpha in product((0.5, 1.0, 1.5, 2.0, 2.5), (0.0, 0.25, 0.5, 0.75, 1.0), (0.3, 0.7)):
            hybrid = Hybrid({"lexical": BM25(k1=k1, b=b), "latent": Dense(encoder=LSAEncoder())}, alpha=alpha)
            rankings = search_cached(hybrid, dataset.corpus, dataset.queries.inputs, 100, store)
            measured = score(rankings, dataset.judgments, len(dataset.queries), len(dataset.corpus), [parse("nDCG@10")])
            rows.append(measured.values[0])
        scores = np.stack(rows)
        parts.append(scores[:, ~np.isnan(scores[0])])
    scores = np.concatenate(parts, axis=1)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(file, scores)
    return scores


@dataclass(frozen=True)
class Outcome:
    """What simulated races did: shares of races, of evaluations saved, the mean number of survivors, the largest loss.

    `same` is the share in which the winner of the full sweep survived, `errors` that in which all survivors were worse
    by more than the margin.
    """

    same: float
    errors: float
    saved: float
    survivors: float
    loss: float


def simulate(scores: Floats, block: int, margin: float, repetitions: int, null: bool) -> Outcome:
    """Race the configurations, or with `null` reordered values of the best of them, and return the outcome."""
    same, errors, saved, survivors, losses = 0, 0, 0.0, 0.0, [0.0]
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, block])
        drawn = scores[:, rng.permutation(scores.shape[1])[:QUERIES]]
        if null:
            drawn = rng.permuted(np.tile(drawn[np.argmax(drawn.mean(axis=1))], (len(drawn), 1)), axis=1)
        means = np.round(drawn.mean(axis=1), 12)
        race = run_race(drawn, rng.permutation(drawn.shape[1]), block, ALPHA, margin)
        is_same = bool(np.argmax(means) in race.survivors)
        losses.append(float(means.max() - means[race.survivors].max()))
        same += is_same
        errors += not is_same if margin == 0 else losses[-1] > margin
        saved += 1 - race.evaluations / drawn.size
        survivors += len(race.survivors)
    n = repetitions
    return Outcome(same / n, errors / n, saved / n, survivors / n, max(losses))


def main(folder: str, repetitions: str = "500", *collections: str) -> None:
    """Print a row for each collection and case."""
    print("| scores | queries per block | margin | same winner | errors | saved | survivors | largest loss |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for collection in collections or SPLITS:
        scores = load_scores(collection, Path(folder))
        for block, margin, null in CASES:
            made = simulate(scores, block, margin, int(repetitions), null)
            name = f"{collection}, equal means" if null else collection
            figures = f"{made.same:.3f} | {made.errors:.3f} | {made.saved:.1%} | {made.survivors:.1f} | {made.loss:.4f}"
            print(f"| {name} | {block} | {margin:g} | {figures} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
