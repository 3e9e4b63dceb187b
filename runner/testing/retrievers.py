"""What a retriever owes the program, to be checked by its own tests."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import is_dataclass

import numpy as np

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, Retriever
from retrievers.capabilities import derive_capabilities
from retrievers.filters import parse_filter
from retrievers.store import NoStore
from runner.testing.requirements import require

CORPUS = Corpus(
    ids=[f"d{i}" for i in range(8)],
    texts=[
        "The lighthouse shines for ships at night.", "Ferries leave for the islands every hour.",
        "A museum of ships and ferries.", "A museum of ships and ferries.", "", "Fähren, Schiffe und Inseln",
        "ships ships ships", "The harbour master counts the ferries.",
    ],
    titles=["Lighthouse", "Ferry", "Museum", "Museum", "", "Inseln", "", "Harbour"],
    metadata=[{"place": "north" if i % 2 else "south"} for i in range(8)],
    filter_fields=["place"],
)  # fmt: skip
"""Documents that are equal, empty, in another language, and without a title."""

QUERIES = ("ships", "ferries to the islands", "Schiffe", "zzzz", "")
"""Queries with an answer, without one, and without a word."""


def check_retriever(retriever: Retriever) -> None:
    """Raise `AssertionError` with what a retriever owes the program.

    It is indexed on a corpus of eight documents and asked five queries. A retriever of an existing index or of a run
    has documents of its own, and cannot be checked like this.
    """
    name = type(retriever).__name__
    require(is_dataclass(retriever), f"{name} should be a dataclass, whose fields are its settings")
    require(repr(copy.deepcopy(retriever)) == repr(retriever), f"{name} changes when it is copied for a worker")
    queries = [QueryText(text, f"q{i}") for i, text in enumerate(QUERIES)]
    searcher = retriever.index(CORPUS, NoStore())
    for k in (1, 3, 1000):
        first = searcher.search(queries, k)
        _check_rankings(first, len(queries), k, name)
        again = searcher.search(queries[::-1], k)
        require(
            _list_scores(again)[::-1] == _list_scores(first),
            f"{name}: other rankings when the same queries are asked in another order",
        )
    require(len(searcher.search([], 3)) == 0, f"{name}: no queries should have no rankings")
    if derive_capabilities(retriever).filters:
        _check_filters(retriever, name)


def _check_rankings(rankings: Rankings, n: int, k: int, name: str) -> None:
    documents, scores = rankings.documents, rankings.scores
    require(documents.shape == scores.shape, f"{name}: documents {documents.shape} and scores {scores.shape}")
    require(len(documents) == n, f"{name}: {n} queries, but {len(documents)} rankings")
    require(documents.shape[1] <= k, f"{name}: {documents.shape[1]} places for k={k}")
    require(not rankings.errors, f"{name}: a query failed: {rankings.errors}")
    known = len(CORPUS) + len(rankings.unknown_ids)
    for row, values in zip(documents, scores, strict=True):
        hits = row[row != NOTHING]
        require((row[: len(hits)] != NOTHING).all(), f"{name}: an empty place before a hit: {row}")
        require(len(set(hits.tolist())) == len(hits), f"{name}: a document twice in a ranking: {row}")
        require((hits < known).all(), f"{name}: a position that no document has: {row}")
        own = values[: len(hits)]
        require(np.isfinite(own).all(), f"{name}: scores should be finite: {own}")
        require((np.diff(own) <= 0).all(), f"{name}: scores should not increase within a ranking: {own}")


def _check_filters(retriever: Retriever, name: str) -> None:
    """Check that a retriever that declares filters returns only documents that pass."""
    queries = [QueryText(text, f"q{i}", own=parse_filter({"place": "north"})) for i, text in enumerate(QUERIES)]
    documents = retriever.index(CORPUS, NoStore()).search(queries, 8).documents
    places = {CORPUS.metadata[document]["place"] for document in documents[documents != NOTHING]}
    require(places <= {"north"}, f"{name} declares that it filters, and returned documents that do not pass")
    require(places, f"{name} declares that it filters, and found none of the documents that pass")


def _list_scores(rankings: Rankings) -> Sequence[Sequence[float]]:
    """Return the scores of hits by query; equal documents may change places in an approximate index."""
    return [np.round(row[np.isfinite(row)], 4).tolist() for row in rankings.scores]
