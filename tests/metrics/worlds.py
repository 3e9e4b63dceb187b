"""Queries, judgments and rankings for the tests of measures: made up or real, and as ir_measures sees them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ir_measures
import numpy as np

from retrievers.base import NOTHING, Corpus, Rankings, rank
from runner.datasets.base import Judgments
from runner.metrics.delegated import parse_delegated
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader

Qrels = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class World:
    """Qrels by position, rankings of `n_documents` documents, and the id of every document, known or not."""

    qrels: Qrels
    rankings: Rankings
    n_documents: int
    ids: Sequence[str]

    @property
    def grader(self) -> Grader:
        return Grader(judgments_of(self.qrels), len(self.rankings), self.n_documents)

    def without_ties(self) -> World:
        """Return the same with scores that only say the rank."""
        scores = -np.arange(self.rankings.depth, dtype=np.float32) * np.ones((len(self.rankings), 1), dtype=np.float32)
        return replace(self, rankings=Rankings(self.rankings.documents, scores))


def judgments_of(qrels: Qrels) -> Judgments:
    return Judgments.of((query, document, grade) for query, row in qrels.items() for document, grade in row.items())


def rankings_of(rows: Sequence[Sequence[tuple[int, float]]], ids: Sequence[str], k: int) -> Rankings:
    """Rank lists of (document, score), one a query, by the one tie rule."""
    width = max((len(row) for row in rows), default=0)
    documents = np.full((len(rows), width), NOTHING, dtype=np.int32)
    scores = np.full((len(rows), width), -np.inf, dtype=np.float32)
    for query, row in enumerate(rows):
        for place, (document, score) in enumerate(row):
            documents[query, place], scores[query, place] = document, score
    return rank(documents, scores, Corpus(ids, ids).tie_order, k)


def by_ir_measures(world: World, measures: Sequence[Measure]) -> np.ndarray:
    """Return what ir_measures says of each measure and query (measures x queries), ids and scores as they are."""
    qrels = {
        str(query): {world.ids[document]: grade for document, grade in row.items()}
        for query, row in world.qrels.items()
        if any(grade > 0 for grade in row.values())  # pytrec_eval aborts the process where all grades are negative
    }
    run = {}
    for query, (documents, scores) in enumerate(zip(world.rankings.documents, world.rankings.scores, strict=True)):
        row = {world.ids[d]: float(s) for d, s in zip(documents, scores, strict=True) if d != NOTHING}
        if row:
            run[str(query)] = row
    theirs = {parse_delegated(str(measure)): row for row, measure in enumerate(measures)}
    values = np.zeros((len(measures), len(world.rankings)))
    for metric in ir_measures.iter_calc(list(theirs), qrels, run):
        values[theirs[metric.measure], int(metric.query_id)] = metric.value
    return values


@dataclass(frozen=True)
class Collection:
    """A real collection, by position, with the texts."""

    ids: Sequence[str]
    texts: Sequence[str]
    queries: Sequence[str]
    qrels: Qrels


def read_collection(folder: Path) -> Collection:
    """Read a collection in BEIR's layout, with its judged queries only."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        texts = {row["_id"]: row["text"] for row in map(json.loads, lines)}
    position = {document["_id"]: place for place, document in enumerate(documents)}
    qrels: dict[str, dict[int, int]] = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            qrels.setdefault(row["query-id"], {})[position[row["corpus-id"]]] = int(row["score"])
    return Collection(
        [document["_id"] for document in documents],
        [f"{document['title']} {document['text']}" for document in documents],
        [texts[query] for query in qrels],
        dict(enumerate(qrels.values())),
    )
