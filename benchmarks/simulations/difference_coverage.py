"""Measure how often nominal 95 % intervals of a difference contain the difference of the population.

For pairs of systems of different kinds on each collection, queries are drawn with replacement from those of the
collection. The interval is that of the default test. A pair that differs on few of the queries drawn has no interval
(`runner.statistics.inversion.FEWEST_DIFFERENT`), so coverage is also shown for the smallest limits around that one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from benchmarks.simulations.systems import ANALYZERS
from retrievers.base import Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.metrics.measures import parse
from runner.metrics.scores import score
from runner.statistics.inversion import FEWEST_DIFFERENT, invert_permutation_test
from runner.statistics.significance import compute_differences

Floats = NDArray[np.float64]

COLLECTIONS = ("cranfield", "scifact", "xquad-en")
MEASURES = ("nDCG@10", "RR", "Success@1", "Success@5")
QUERIES = (10, 30, 100, 300)
LIMITS = (0, FEWEST_DIFFERENT - 1, FEWEST_DIFFERENT, FEWEST_DIFFERENT + 1)
PERMUTATIONS = 999


def score_systems(collection: str, names: Sequence[str] = MEASURES) -> Floats:
    """Return measures of 17 systems (measures x 17 x queries): twelve BM25 settings, two of LSA, three hybrids.

    Collections that are too small for LSA have the BM25 settings only.
    """
    dataset = Beir(path=str(DATA / collection)).load()
    latent = [Dense(encoder=LSAEncoder(dimensions=dimensions)) for dimensions in (64, 256)]
    systems: list[Retriever] = [
        BM25(analyzer=analyzer, k1=k1, b=b)
        for analyzer in ANALYZERS
        for k1, b in product((0.5, 1.2, 2.5), (0.25, 0.75))
    ]
    if len(dataset.corpus) > 256:
        hybrids = [Hybrid({"lexical": BM25(), "latent": latent[1]}, alpha=alpha) for alpha in (0.3, 0.7, 0.9)]
        systems += [*latent, *hybrids]
    store, measures = MemoryStore(), [parse(measure) for measure in names]
    rows = []
    for system in systems:
        rankings = search_cached(system, dataset.corpus, dataset.queries.inputs, 10, store)
        rows.append(score(rankings, dataset.judgments, len(dataset.queries), len(dataset.corpus), measures).values)
    scores = np.stack(rows, axis=1)
    return scores[:, :, ~np.isnan(scores[0, 0])]


def measure_coverage(scores: Floats, n: int, pairs: int, trials: int) -> list[tuple[float, float]]:
    """Return, for each of the limits, the share of samples that have an interval, and how many of these cover."""
    first, second = np.triu_indices(len(scores), 1)
    rng = np.random.default_rng(n)
    some = rng.permutation(len(first))[:pairs]
    differences = compute_differences(scores[first[some]], scores[second[some]])
    truth = np.repeat(differences.mean(axis=1), trials)
    samples = differences[:, rng.integers(0, differences.shape[1], (trials, n))].reshape(-1, n)
    low, high = invert_permutation_test(samples, 0.05, PERMUTATIONS).T
    covers = (low <= truth + 1e-12) & (truth - 1e-12 <= high)
    given = [np.count_nonzero(samples, axis=1) >= least for least in LIMITS]
    return [(float(some.mean()), float(covers[some].mean()) if some.any() else np.nan) for some in given]


def main() -> None:
    """Print a row for each collection, measure and number of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="for each pair")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    titles = [f"at least {least} differ" if least else "all samples" for least in LIMITS]
    print("| scores | measure | queries | " + " | ".join(titles) + " |")
    print("|---|---|" + "--:|" * (1 + len(LIMITS)))
    for collection in options.collections:
        for measure, scores in zip(MEASURES, score_systems(collection), strict=True):
            for n in QUERIES:
                cells = [
                    f"{covered:.3f} ({share:.1%})" if share else "-"
                    for share, covered in measure_coverage(scores, n, options.pairs, options.trials)
                ]
                print(f"| {collection} | {measure} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
