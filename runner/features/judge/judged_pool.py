"""A pool of results with its verdicts: what the results score with them, and which pairs people should grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from runner.evaluation.verdicts import GradeVerdict, shorten
from runner.features.judge.judging import (
    JudgedRankings,
    Pair,
    PairIds,
    Place,
    Standing,
    bounds,
    fill_judgments,
    read_content,
)
from runner.features.judge.order import UNJUDGED, Ints, PairOrder, RankedPool, order_pairs
from runner.features.judge.people import draw_pairs, list_strata, rank_pool, replace_grades
from runner.features.judge.sheet import SheetRow, load_sheet, match_sheet, save_sheet
from runner.metrics.measures import Measure


@dataclass(frozen=True, eq=False)
class JudgedPool:
    """The pairs among the first `depth` documents of results, with the ids and the verdict of each (N,)."""

    ranked: Sequence[JudgedRankings]
    depth: int
    pairs: Mapping[Pair, Place]
    ids: Sequence[PairIds]
    verdicts: Sequence[GradeVerdict]

    @cached_property
    def ranks(self) -> RankedPool:
        """Return the ranks of the pairs in each result."""
        return rank_pool(self.ranked, list(self.pairs), self.depth)

    def read_pair(self, place: int, longest: int) -> tuple[str, str]:
        """Return the query and the document of a pair, each shortened to the `longest` number of characters."""
        (query, _), (run, position) = list(self.pairs.items())[place]
        text = self.ranked[0].dataset.queries.texts[query]
        return shorten(text, longest), shorten(read_content(self.ranked[run].dataset.corpus, position), longest)

    def compare_standings(self, names: Sequence[str], people: Ints, measure: Measure) -> list[Standing]:
        """Return the bounds of each result before and after judgments, in which people's grades take precedence."""
        final = replace_grades(self.verdicts, people)
        after = {id(one.judgments): fill_judgments(one.judgments, self.pairs, final) for one in self.ranked}
        return [
            Standing(
                name,
                bounds(own, measure, self.depth),
                bounds(own._replace(judgments=after[id(own.judgments)]), measure, self.depth),
            )
            for name, own in zip(names, self.ranked, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class GradedSheet:
    """The rows of a sheet that people grade, and the position of each in the pool."""

    path: Path
    order: PairOrder
    rows: Sequence[SheetRow]
    places: Sequence[int]

    @classmethod
    def load(cls, path: Path, order: PairOrder, ids: Sequence[PairIds]) -> Self:
        """Read a sheet, empty if there is no file; raises `DatasetError` if it is invalid or of another pool."""
        rows = load_sheet(path)
        return cls(path, order, rows, match_sheet(path, rows, {pair: place for place, pair in enumerate(ids)}, order))

    def grades(self, size: int) -> Ints:
        """Return people's grade of each pair of a pool of a `size`, `UNJUDGED` for none (N,)."""
        people = np.full(size, UNJUDGED, dtype=np.int64)
        for place, row in zip(self.places, self.rows, strict=True):
            people[place] = UNJUDGED if row.grade is None else row.grade
        return people

    def extend(self, pool: JudgedPool, size: int, longest: int, seed: int) -> int:
        """Add pairs to the file until it has a `size`, and return how many of its pairs wait for a grade."""
        new = self._choose(pool, min(size, len(pool.pairs)), seed)
        if new:
            added = [SheetRow(pool.ids[place], *pool.read_pair(place, longest), order=self.order) for place in new]
            save_sheet(self.path, [*self.rows, *added])
        return len(new) + sum(row.grade is None for row in self.rows)

    def _choose(self, pool: JudgedPool, size: int, seed: int) -> list[int]:
        if self.order == "random":
            return draw_pairs(list_strata(pool.verdicts), self.places, size, seed)
        free, people = max(size - len(self.rows), 0), self.grades(len(pool.pairs))
        waiting = {place for place in self.places if people[place] == UNJUDGED}
        ordered = order_pairs(self.order, pool.ranks, people, free + len(waiting))
        return [place for place in ordered if place not in waiting][:free]
