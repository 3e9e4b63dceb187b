"""Explain differences with known causes: `python -m benchmarks.simulations.explanation [DRAWS] [CAUSES]`.

Each draw makes a small collection and changes one part of it, or the settings. The first table shows whether the terms
add up, how often the interval of a part that did not change contains 0, and how often planted documents are named. Like
queries are drawn from the population of the others, so that their true effect is 0 while their estimated effect is not.

The second table is about effects that are not 0. A change is made to a collection with a population of queries, whose
effects are the truth. Each draw explains the change with a sample of these queries; the table shows how often the
interval of a term contains the effect in the population.
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
from numpy.typing import NDArray

from runner.comparison.compare import TableStatistics
from runner.config.consent import Consent
from runner.config.values import Settled
from runner.datasets.chunking import Whole
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.evaluation.result import Result
from runner.features.explain.explanation import ExplanationSettings, explain_difference
from runner.features.explain.terms import Explanation
from runner.results.lookup import Named
from runner.store.opening import open_store
from runner.store.settings import StoreSettings

DOCUMENTS, QUERIES, WORDS, VOCABULARY = 120, 40, 30, 400
REPLACED, CHANGED, ADDED = 6, 4, 10
"""How many documents are replaced (5 %), judgments changed (10 %) and queries added."""

POPULATION, SAMPLES = 1000, 10
"""How many queries a population has, and how many samples are drawn from it."""

TESTS = ("permutation", "t", "bootstrap")

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


def rewrite_documents(rng: Generator, version: Version, share: float) -> Version:
    """Return a version in which a share of the documents has the texts of documents drawn anew."""
    documents, others = dict(version.documents), draw_version(rng, 0).documents
    for name in rng.choice(list(documents), round(share * len(documents)), replace=False).tolist():
        documents[name] = others[name]
    return replace(version, documents=documents)


def change_judgments(rng: Generator, version: Version, count: int = CHANGED) -> Version:
    """Return a version in which some queries have another gold document."""
    qrels, names = dict(version.qrels), list(version.documents)
    for query in rng.choice(list(qrels), count, replace=False).tolist():
        others = [name for name in names if name not in qrels[query]]
        qrels[query] = {others[rng.integers(len(others))]: 1}
    return replace(version, qrels=qrels)


def add_hard_queries(rng: Generator, version: Version, count: int = ADDED) -> Version:
    """Return a version with further queries that share no rare word with their gold."""
    texts, qrels, names = dict(version.queries), dict(version.qrels), list(version.documents)
    for i in range(count):
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


def change_population(rng: Generator, version: Version) -> Version:
    """Return a version with other settings, documents, judgments and harder queries."""
    changed = change_judgments(rng, rewrite_documents(rng, change_settings(rng, version), 0.25), POPULATION // 4)
    return add_hard_queries(rng, changed, POPULATION // 4)


POPULATION_CAUSES = {
    "settings": change_settings,
    "5 % of documents rewritten": lambda rng, version: rewrite_documents(rng, version, 0.05),
    "25 % of documents rewritten": lambda rng, version: rewrite_documents(rng, version, 0.25),
    "10 % of judgments changed": lambda rng, version: change_judgments(rng, version, POPULATION // 10),
    "25 % of judgments changed": lambda rng, version: change_judgments(rng, version, POPULATION // 4),
    "20 % hard queries": lambda rng, version: add_hard_queries(rng, version, POPULATION // 4),
    "settings, 25 % of documents and of judgments, 20 % hard queries": change_population,
}
"""How a version with a population of queries changes."""


def evaluate(name: str, version: Version, bench: Bench) -> Result:
    """Return the result of BM25 on a version."""
    data = version.dataset
    config: dict[str, Any] = {
        "retriever": {
            "_target_": "retrievers.lexical.bm25.BM25",
            "analyzer": {"_target_": "retrievers.lexical.analyzer.Analyzer", "stemmer": None, "stopwords": None},
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
    return explain_difference(first, second, statistics, ExplanationSettings(), lambda: bench, Consent())


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
    return Draw(
        error, [t.effect for t in terms], [not (t.difference.low > 0 or t.difference.high < 0) for t in terms], named
    )


def sample_queries(rng: Generator, versions: tuple[Version, Version]) -> tuple[Version, Version]:
    """Return versions with samples of their queries: the same ones where both have them, and of the added ones."""
    before, after = versions
    some = rng.choice(list(before.queries), QUERIES, replace=False).tolist()
    added = list(after.queries.keys() - before.queries.keys())
    more = rng.choice(sorted(added), ADDED, replace=False).tolist() if added else []
    return select_queries(before, some), select_queries(after, [*some, *more])


def select_queries(version: Version, names: Sequence[str]) -> Version:
    """Return a version with some of its queries."""
    texts, qrels = ({name: own[name] for name in names} for own in (version.queries, version.qrels))
    return replace(version, queries=texts, qrels=qrels)


def cover_effects(cause: str, seed: int, store: Path, samples: int = SAMPLES) -> Mapping[str, NDArray[np.bool_]]:
    """Draw a population and samples of it: whether the interval of each term contains the effect in the population.

    Returns an array (samples x 4) for each test. Where too few queries differ for an interval, none is missed.
    """
    rng = np.random.default_rng([seed, *map(ord, cause)])
    baseline = draw_version(rng, POPULATION)
    versions = baseline, POPULATION_CAUSES[cause](rng, baseline)
    whole = explain_versions(*versions, store, "t")
    truths = [term.effect for term in whole.list_terms(whole.primary)]
    covers: dict[str, list[list[bool]]] = {test: [] for test in TESTS}
    for _ in range(samples):
        explanation = explain_versions(*sample_queries(rng, versions), store)
        for test, rows in covers.items():
            again = replace(explanation, statistics=replace(explanation.statistics, test=test), _terms={})
            terms = again.list_terms(again.primary)
            missed = [
                t.difference.low - 1e-12 > truth or t.difference.high + 1e-12 < truth
                for t, truth in zip(terms, truths, strict=True)
            ]
            rows.append([not each for each in missed])
    return {test: np.array(rows) for test, rows in covers.items()}


def main(draws: int = 200, *causes: str) -> None:
    """Print both tables."""
    print_unchanged(draws, causes)
    print_coverage(draws, causes)


def print_coverage(draws: int, causes: Sequence[str]) -> None:
    """Print a row for each change of a population, with the share of intervals that contain the true effect."""
    print("\n| cause | test | " + " | ".join(TERMS) + " |\n|---|---|" + "--:|" * len(TERMS))
    for cause in POPULATION_CAUSES:
        if causes and cause not in causes:
            continue
        parts = []
        for seed in range(draws // SAMPLES):
            with tempfile.TemporaryDirectory() as folder:
                parts.append(cover_effects(cause, seed, Path(folder)))
        for test in TESTS:
            shares = np.concatenate([part[test] for part in parts]).mean(axis=0).tolist()
            print(f"| {cause} | {test} | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)


def print_unchanged(draws: int, causes: Sequence[str]) -> None:
    """Print a row for each cause, with the share of intervals that contain 0."""
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
