"""The pool that people judge: its pairs with their texts, how results rank them, and what was judged before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retrievers.base import NOTHING
from runner.datasets.duplicates import Shingled
from runner.features.judge.judging import JudgedRankings, Pair, PairIds, Place, list_pair_ids, rank_documents
from runner.features.judge.order import UNJUDGED, RankedPool
from runner.features.judge.people import rank_pool
from runner.features.judge.prediction_powered import Ints

NEED_FIELDS = (
    "information_need", "description", "desc", "narrative", "narr", "intent", "expected_answer",
)  # fmt: skip
"""Fields of a query's metadata that say what its user wants."""

UNNAMED_SCALE = 3
"""The highest grade if the dataset has no judgments."""


@dataclass(frozen=True)
class DeskPair:
    """A pair as an assessor sees it: without systems, ranks and scores. `needs` are names and texts."""

    ids: PairIds
    query: str
    needs: Sequence[tuple[str, str]]
    title: str
    text: str


@dataclass(frozen=True, eq=False)
class DeskPool:
    """The unjudged pairs (N), and after them those of the rankings that the dataset has judged (M).

    `known` (N + M) are the dataset's grades, `UNJUDGED` for the pool. `greatest` is the highest grade. `extra_qrels`
    are the files of judgments that the results already used beside the dataset's.
    """

    runs: Sequence[JudgedRankings]
    pairs: Mapping[Pair, Place]
    greatest: int
    known: Ints
    ranked: RankedPool
    extra_qrels: Sequence[str] = ()

    @staticmethod
    def build(
        runs: Sequence[JudgedRankings], pairs: Mapping[Pair, Place], depth: int, greatest: int | None = None
    ) -> DeskPool:
        """Return the pool of the unjudged `pairs` of the first `depth` documents; `greatest` None: the dataset's."""
        judgments = runs[0].judgments
        grades = dict(
            zip(
                zip(judgments.queries.tolist(), judgments.documents.tolist(), strict=True),
                np.maximum(judgments.grades, 0).tolist(),  # -1 is UNJUDGED
                strict=True,
            )
        )
        there = {
            (query, document)
            for run in runs
            for query, row in enumerate(rank_documents(run, depth).tolist())
            for document in row
            if document != NOTHING
        }
        before = sorted(there & grades.keys())
        known = np.array([*[UNJUDGED] * len(pairs), *(grades[pair] for pair in before)], dtype=np.int64)
        highest = greatest or int(judgments.grades.max(initial=0)) or UNNAMED_SCALE
        return DeskPool(runs, pairs, highest, known, rank_pool(runs, [*pairs, *before], depth))

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def ids(self) -> Sequence[PairIds]:
        """Return the ids of the pairs of the pool (N)."""
        return list_pair_ids(self.runs[0].dataset, self.pairs)

    @property
    def query_texts(self) -> Mapping[str, str]:
        """Return the texts of the queries by id."""
        queries = self.runs[0].dataset.queries
        return dict(zip(queries.ids, queries.texts, strict=True))

    @cached_property
    def places(self) -> Mapping[PairIds, int]:
        """Return the position of each pair in the pool, by ids."""
        return {ids: place for place, ids in enumerate(self.ids)}

    @cached_property
    def _rows(self) -> Sequence[tuple[Pair, Place]]:
        return list(self.pairs.items())

    def read_pair(self, place: int) -> DeskPair:
        """Return a pair of the pool with its texts."""
        (query, _), (run, position) = self._rows[place]
        dataset = self.runs[run].dataset
        corpus, queries = dataset.corpus, dataset.queries
        about = queries.metadata[query] if queries.metadata else {}
        needs = [(name.replace("_", " "), str(about[name]).strip()) for name in NEED_FIELDS if about.get(name)]
        title = corpus.titles[position] if corpus.titles else ""
        return DeskPair(self.ids[place], queries.texts[query], needs, title, corpus.texts[position])

    def group_duplicates(self, query: int) -> list[tuple[int, ...]]:
        """Return the groups of near-duplicates among the pairs of a query, by position in the pool."""
        places = np.flatnonzero(self.ranked.queries[: len(self)] == query).tolist()
        pairs = [self.read_pair(place) for place in places]
        groups = Shingled.of(pair.text or pair.title for pair in pairs).groups()
        return [tuple(places[member] for member in group) for group in groups]
