"""Explain differences with known causes: `python -m benchmarks.simulations.explanation`.

Each draw makes a small collection and changes one part of it, or the settings. The table shows whether the terms add
up, how often the interval of a part that did not change contains 0, and how often planted documents are named. Like
queries are drawn from the population of the others, so that their true effect is 0 while their estimated effect is not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from runner.comparison.compare import TableStatistics
from runner.comparison.explanation import Explanation
from runner.config.values import Settled
from runner.datasets.base import Dataset
from runner.datasets.chunking import Whole
from runner.evaluation import Bench
from runner.experiment import build_experiment
from runner.explanation import ExplanationSettings, explain_difference
from runner.lookup import Named
from runner.result import Result
from runner.store.opening import open_store
from runner.store.settings import StoreSettings

DOCUMENTS, QUERIES, WORDS, VOCABULARY = 120, 40, 30, 400
REPLACED, CHANGED, ADDED = 6, 4, 10
"""How many documents are replaced (5 %), judgments changed (10 %) and queries added."""

TERMS = ("code", "documents", "judgments", "queries")


@dataclass(frozen=True)
class Version:
    """A version of a collection and of the settings; `planted` are documents made to outrank gold."""

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    k1: float = 0.9
    b: float = 0.4
    planted: Sequence[str] = field(default=())

    @property
    def dataset(self) -> Dataset:
        """Return the collection as a dataset."""
        return Dataset.of(self.documents, self.queries, self.qrels, name="simulated")


def draw_version(rng: Generator, queries: int = QUERIES) -> Version:
    """Draw documents of words by Zipf's law, and queries of words from their gold document and from others."""
    weights = 1 / np.arange(1, VOCABULARY + 1)
    words = rng.choice(VOCABULARY, (DOCUMENTS, WORDS), p=weights / weights.sum())
    documents = {f"d{i:03d}": " ".join(f"w{word}" for word in row) for i, row in enumerate(words.tolist())}
    version = Version(documents, {}, {})
    return add_queries(rng, version, queries)


def add_queries(rng: Generator, version: Version, count: int) -> Version:
    """Return a version with further queries, each with one gold document."""
    texts, qrels, names = dict(version.queries), dict(version.qrels), list(version.documents)
    for _ in range(count):
        gold = names[rng.integers(len(names))]
        own = rng.choice(version.documents[gold].split(), 2).tolist()
        noise = [f"w{word}" for word in rng.integers(0, VOCABULARY, 2).tolist()]
        query = f"q{len(texts):03d}"
        texts[query], qrels[query] = " ".join([*own, *noise]), {gold: 1}
    return replace(version, queries=texts, qrels=qrels)


def change_settings(rng: Generator, version: Version) -> Version:
    """Return a version with another k1."""
    return replace(version, k1=float(rng.choice([0.0, 8.0])))


def replace_documents(rng: Generator, version: Version) -> Version:
    """Return a version in which documents without judgments are replaced by copies of queries, which outrank gold."""
    judged = {document for grades in version.qrels.values() for document in grades}
    free = [name for name in version.documents if name not in judged]
    removed = set(rng.choice(free, REPLACED, replace=False).tolist())
    kept = {name: text for name, text in version.documents.items() if name not in removed}
    victims = rng.choice(list(version.queries), REPLACED, replace=False).tolist()
    planted = {f"new{i}": f"{version.queries[query]} " * 3 for i, query in enumerate(victims)}
    return replace(version, documents={**kept, **planted}, planted=list(planted))


def change_judgments(rng: Generator, version: Version) -> Version:
    """Return a version in which some queries have another gold document."""
    qrels, names = dict(version.qrels), list(version.documents)
    for query in rng.choice(list(qrels), CHANGED, replace=False).tolist():
        others = [name for name in names if name not in qrels[query]]
        qrels[query] = {others[rng.integers(len(others))]: 1}
    return replace(version, qrels=qrels)


def add_hard_queries(rng: Generator, version: Version) -> Version:
    """Return a version with further queries that share no rare word with their gold."""
    texts, qrels, names = dict(version.queries), dict(version.qrels), list(version.documents)
    for i in range(ADDED):
        texts[f"hard{i}"] = " ".join(f"w{word}" for word in rng.integers(0, VOCABULARY, 4).tolist())
        qrels[f"hard{i}"] = {names[rng.integers(len(names))]: 1}
    return replace(version, queries=texts, qrels=qrels)


def change_everything(rng: Generator, version: Version) -> Version:
    """Return a version with other settings, documents, judgments and queries."""
    changed = change_judgments(rng, replace_documents(rng, change_settings(rng, version)))
    return replace(add_queries(rng, changed, ADDED), planted=())


CAUSES = {
    "settings": (change_settings, "code"),
    "5 % of documents replaced": (replace_documents, "documents"),
    "10 % of judgments changed": (change_judgments, "judgments"),
    "hard queries added": (add_hard_queries, "queries"),
    "like queries added": (lambda rng, version: add_queries(rng, version, ADDED), ""),
    "settings, like queries added": (
        lambda rng, version: add_queries(rng, change_settings(rng, version), ADDED),
        "code",
    ),
    "settings, documents, judgments, queries": (change_everything, "code"),
}
"""How a version changes, and the term whose true effect is not 0."""


def evaluate(name: str, version: Version, bench: Bench) -> Result:
    """Return the result of BM25 on a version."""
    data = version.dataset
    config: dict[str, Any] = {
        "retriever": {
            "_target_": "retrievers.bm25.BM25",
            "analyzer": {"_target_": "retrievers.analyzer.Analyzer", "stemmer": None, "stopwords": None},
            "k1": version.k1,
            "b": version.b,
        },
        "metrics": {"_target_": "runner.metrics.settings.MetricSettings", "measures": ["nDCG", "RR"], "k_values": [10]},
        "dataset": {
            "_target_": "runner.datasets.given.GivenDataset",
            "name": "simulated",
            "content": data.fingerprint,
        },
        "choices": {"retriever": "bm25"},
    }
    experiment = build_experiment(Settled(config, config, {}), name)
    bench.datasets.add(experiment.source, Whole(), data)
    return bench.evaluate(experiment)


def explain_versions(baseline: Version, candidate: Version, store: Path, test: str = "permutation") -> Explanation:
    """Evaluate two versions and explain their difference."""
    bench = Bench(open_store(StoreSettings(str(store))))
    first, second = (
        Named(evaluate(name, version, bench), name)
        for name, version in (("baseline", baseline), ("candidate", candidate))
    )
    statistics = TableStatistics(test=test, permutations=2000)  # type: ignore[arg-type]  # one of the tests
    return explain_difference(first, second, statistics, ExplanationSettings(), lambda: bench, [])


@dataclass(frozen=True)
class Draw:
    """What an explanation of one pair got right: `covers` says for each term whether its interval contains 0."""

    error: float
    effects: Sequence[float]
    covers: Sequence[bool]
    named: bool


def check_draw(cause: str, seed: int, store: Path) -> Draw:
    """Draw a pair with a cause, and check its explanation."""
    rng = np.random.default_rng([seed, *map(ord, cause)])
    baseline = draw_version(rng)
    candidate = CAUSES[cause][0](rng, baseline)
    explanation = explain_versions(baseline, candidate, store)
    error = 0.0
    for measure in explanation.measures:
        before, after = explanation.compute_means(measure)
        error = max(error, abs(sum(term.effect for term in explanation.list_terms(measure)) - (after - before)))
    terms = explanation.list_terms(explanation.primary)
    named = {*candidate.planted} <= {document for document, _ in explanation.causes.displacing}
    return Draw(error, [t.effect for t in terms], [t.low <= 0 <= t.high for t in terms], named)


def main(draws: int = 200, *causes: str) -> None:
    """Print a row for each cause."""
    titles = [*TERMS[1:], "code and settings"]
    print(
        "| cause | largest error of the sum | true effect not 0 | " + " | ".join(f"{t} contains 0" for t in titles),
        end="",
    )
    print(" | mean absolute effect of the cause | all planted documents named |")
    print("|---|--:|---|" + "--:|" * (len(titles) + 2))
    for cause, (_, term) in CAUSES.items():
        if causes and cause not in causes:
            continue
        with tempfile.TemporaryDirectory() as folder:
            results = [check_draw(cause, seed, Path(folder) / str(seed)) for seed in range(draws)]
        covers = np.mean([draw.covers for draw in results], axis=0)
        cells = [f"{covers[TERMS.index(name)]:.3f}" for name in (*TERMS[1:], TERMS[0])]
        size = np.mean([abs(draw.effects[TERMS.index(term)]) for draw in results]) if term else 0.0
        named = f"{np.mean([draw.named for draw in results]):.3f}" if term == "documents" else ""
        error = max(draw.error for draw in results)
        print(f"| {cause} | {error:.1e} | {term} | {' | '.join(cells)} | {size:.4f} | {named} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
