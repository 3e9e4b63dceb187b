"""Failure classes against the judgment of a person, on real failures: see `hand_labels/README.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
import pytest

from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.datasets.needle import Needle
from runner.datasets.source import DatasetSource
from runner.evaluation.failure_classes import FailureClass
from runner.evaluation.failures import FailureSettings, JudgedRun, Lexicon, explain_failures
from runner.metrics.scores import Grader

LABELS: Mapping[str, Mapping[str, list[FailureClass]]] = orjson.loads(
    (Path(__file__).parent / "hand_labels" / "bm25_failures.json").read_bytes()
)
DEPTH = 100
FLOORS: Mapping[FailureClass, float] = {
    "vocabulary mismatch": 0.8,
    "specificity gap": 0.8,
    "distractor overlap": 0.8,
    "unjudged above gold": 0.8,
}
"""What share of the queries that are told to be of a class are of it, at least."""

Told = tuple[str, set[FailureClass], set[FailureClass]]
"""A query, its classes as they are told, and by hand."""


@pytest.fixture(scope="module")
def judged(collections: Path, needle: Path) -> dict[str, tuple[JudgedRun, Lexicon, Sequence[str]]]:
    """Return what BM25 found of each dataset, its lexicon, and the ids of its queries."""
    pages = str(needle / "corpus_kubernetes")
    sources: dict[str, DatasetSource] = {"scifact": Beir(path=str(collections / "scifact"))}
    for name in ("informed_questions", "needle_questions"):
        sources[name] = Needle(questions=str(needle / "questions" / f"{name}.json"), documents=pages)
    store = MemoryStore()
    return {name: found_in(source.load(), store) for name, source in sources.items()}


def found_in(dataset: Dataset, store: MemoryStore) -> tuple[JudgedRun, Lexicon, Sequence[str]]:
    rankings = search_cached(BM25(), dataset.corpus, dataset.queries.texts, DEPTH, store)
    judgments, n = dataset.judgments, len(dataset.queries)
    grades = Grader(judgments, n, len(dataset.corpus), None).grades(rankings)
    expected: list[list[str]] = [[] for _ in range(n)]
    for query, document, grade in zip(judgments.queries, judgments.documents, judgments.grades, strict=True):
        if grade > 0:
            expected[query].append(dataset.corpus.ids[document])
    run = JudgedRun(dataset.queries.texts, rankings, grades, dataset.corpus.ids, expected, judgments.golds(n) > 0)
    return run, Lexicon(dataset.corpus, Analyzer(), store), dataset.queries.ids


def classify_labelled(
    judged: Mapping[str, tuple[JudgedRun, Lexicon, Sequence[str]]],
    half: int | None = None,
    settings: FailureSettings = FailureSettings(),  # noqa: B008 (immutable)
) -> list[Told]:
    """Return the classes of the labelled queries: all, or the even (0) or the odd ones (1)."""
    of_all: list[Told] = []
    for name, labels in LABELS.items():
        run, lexicon, ids = judged[name]
        classes = {
            ids[failure.query]: set(failure.classes) for failure in explain_failures(run, lexicon, settings=settings)
        }
        assert labels.keys() <= classes.keys()
        wanted = [query for i, query in enumerate(labels) if half is None or i % 2 == half]
        of_all += [(query, classes[query], set(labels[query])) for query in wanted]
    return of_all


def precision(queries: Sequence[Told], name: FailureClass) -> tuple[int, int, int]:
    """Return how many are told to be of a class and are, are told, and are."""
    right = sum(name in told and name in by_hand for _, told, by_hand in queries)
    return right, sum(name in told for _, told, _ in queries), sum(name in by_hand for *_, by_hand in queries)


def test_there_are_fifty_and_each_has_a_class() -> None:
    labels = [classes for of in LABELS.values() for classes in of.values()]
    assert len(labels) == 50
    assert all(labels)


@pytest.fixture(scope="module")
def queries(judged: Mapping[str, tuple[JudgedRun, Lexicon, Sequence[str]]]) -> list[Told]:
    """Return the classes of all labelled queries."""
    return classify_labelled(judged)


@pytest.mark.parametrize("name", FLOORS)
def test_the_precision_of_each_failure_class_reaches_its_floor(name: FailureClass, queries: list[Told]) -> None:
    right, all_told, _ = precision(queries, name)
    assert all_told >= 5
    assert right / all_told >= FLOORS[name]
