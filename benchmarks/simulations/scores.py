"""Per-query scores that simulations draw from: those of real systems on a collection, and synthetic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from retrievers.base import NoStore
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from runner.datasets.beir import Beir
from runner.metrics.measures import parse
from runner.metrics.scores import score

Floats = NDArray[np.float64]

COLLECTIONS = ("cranfield", "scifact")
"""Collections whose scores are used, each a folder in BEIR's layout."""

DEPTH = 10


def populations(measure: str = "nDCG@10") -> dict[str, Floats]:
    """Return the scores of 100 systems for each query of each available collection, and synthetic ones."""
    found = {name: real(name, measure) for name in COLLECTIONS if (DATA / name).is_dir()}
    return {**found, "synthetic": synthetic()}


def real(collection: str, measure: str) -> Floats:
    """Return a measure (100 x queries) of BM25 with ten k1 by five b, with and without stemming and stop words."""
    dataset = Beir(path=str(DATA / collection)).load()
    rows = []
    for analyzer in (Analyzer(), Analyzer(stemmer=None, stopwords=None)):
        searcher = BM25(analyzer=analyzer).index(dataset.corpus, NoStore())
        for k1, b in product(np.linspace(0.3, 3, 10).tolist(), (0.0, 0.25, 0.5, 0.75, 1.0)):
            rankings = replace(searcher, settings=BM25(analyzer=analyzer, k1=k1, b=b)).search(
                dataset.queries.texts, DEPTH
            )
            values = score(rankings, dataset.judgments, len(dataset.queries), len(dataset.corpus), [parse(measure)])
            rows.append(values.values[0])
    scores = np.stack(rows)
    return scores[:, ~np.isnan(scores[0])]


def one_system(collection: str, measures: Sequence[str]) -> Floats:
    """Return some measures of BM25 with its default settings (measures x queries)."""
    dataset = Beir(path=str(DATA / collection)).load()
    rankings = BM25().index(dataset.corpus, NoStore()).search(dataset.queries.texts, DEPTH)
    parsed = [parse(measure) for measure in measures]
    values = score(rankings, dataset.judgments, len(dataset.queries), len(dataset.corpus), parsed).values
    return values[:, ~np.isnan(values[0])]


def synthetic(systems: int = 100, queries: int = 300, seed: int = 0) -> Floats:
    """Return skewed scores from 0 to 1, many of them 0, of systems in four families that resemble each other."""
    rng = np.random.default_rng(seed)
    easy = rng.normal(-0.3, 1, queries)
    family = rng.normal(0, 0.5, (4, queries))[np.arange(systems) % 4]
    own = rng.normal(0, 0.3, (systems, queries)) + rng.normal(0, 0.05, (systems, 1))
    return np.round(np.clip(0.4 * (easy + family + own) + 0.3, 0, 1), 3)
