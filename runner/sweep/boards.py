"""The leaderboards of a sweep, one for each dataset, and its best result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from retrievers.base import Corpus
from runner.comparison.datasets import rank_systems
from runner.comparison.insights import Insights, add_reached, find_failures
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard, find_mean
from runner.comparison.notes import explain_foreign_ids
from runner.comparison.race import RaceRecord
from runner.comparison.search import Search
from runner.comparison.selection import WinnerSelection
from runner.evaluation.failures import FailureSettings, Lexicon
from runner.evaluation.result import Result
from runner.statistics.settings import Statistics

BEST = 5
"""The number of results whose rankings the report of a sweep shows."""


class BestRankings(NamedTuple):
    """The best results with their rankings, by rank, the documents that these name, and the misses of the first.

    `corpus` is None if the documents are unknown, and `insight` is empty if the rankings of the first are.
    """

    results: Mapping[int, Result] = MappingProxyType({})
    corpus: Corpus | None = None
    insight: Insights = Insights()

    @staticmethod
    def of(
        results: Mapping[int, Result], corpus: Corpus, read_words: Callable[[Corpus], Lexicon | None]
    ) -> BestRankings:
        """Return the best results with the misses of the first, explained by the words of a corpus that is small."""
        lexicon = read_words(corpus) if len(corpus) <= FailureSettings().semantic_documents else None
        misses = find_failures(results[1], lexicon, by_meaning=False) if 1 in results else Insights()
        return BestRankings(results, corpus, misses)


def load_nothing(best: Mapping[int, str]) -> BestRankings:
    """Return no rankings."""
    return BestRankings()


@dataclass(frozen=True, eq=False)
class SweepCourse:
    """How a sweep went, besides its results.

    `runs` are the ids of the runs of combinations, and `sweep` that of the sweep, "" if unknown; `selections` are by
    the fingerprint of the dataset.
    """

    runs: Mapping[str, str] = field(default_factory=dict)
    selections: Mapping[str, WinnerSelection] = field(default_factory=dict)
    search: Search | None = None
    race: RaceRecord | None = None
    sweep: str = ""


@dataclass(frozen=True, eq=False)
class Board:
    """A leaderboard and its results, by combination; `load` reads the rankings of the best ones, given by rank."""

    leaderboard: Leaderboard
    results: Mapping[str, Result]
    load: Callable[[Mapping[int, str]], BestRankings] = load_nothing

    @property
    def best(self) -> dict[int, str]:
        """Return the best combinations by their rank."""
        names = list(self.results)
        return {row.rank: names[row.position] for row in self.leaderboard.rows[:BEST]}

    @cached_property
    def best_rankings(self) -> BestRankings:
        """Return the rankings of the best combinations, for the report."""
        loaded, results = self.load(self.best), list(self.results.values())
        others = dict(
            zip(self.leaderboard.labels, (results[row.position] for row in self.leaderboard.rows), strict=True)
        )
        return loaded._replace(insight=add_reached(loaded.insight, others))


def build_boards(
    results: Mapping[str, Result],
    failures: Sequence[FailedCombination],
    primary: str,
    statistics: Statistics,
    course: SweepCourse,
    load: Callable[[Mapping[int, str]], BestRankings] = load_nothing,
) -> list[Board]:
    """Return a leaderboard by the primary measure for each dataset; the first one lists all failures.

    A result whose hits have foreign ids is a failure: its scores are not those of the system.
    """
    foreign = [result for result in results.values() if result.has_foreign_ids]
    failures = [*failures, *(FailedCombination(result.name, explain_foreign_ids(result)) for result in foreign)]
    groups: dict[str, dict[str, Result]] = {}
    for combination, result in results.items():
        if result.has_foreign_ids:
            continue
        groups.setdefault(result.dataset.fingerprint, {})[combination] = result
    systems = rank_systems([list(group.values()) for group in groups.values()], primary)
    return [
        Board(
            build_leaderboard(
                list(group.values()),
                primary,
                () if position else failures,
                statistics,
                runs=[course.runs.get(combination, "") for combination in group],
                selection=course.selections.get(fingerprint),
                search=course.search,
                systems=systems,
                race=course.race,
                sweep=course.sweep,
            ),
            group,
            load,
        )
        for position, (fingerprint, group) in enumerate(groups.items() or [("", {})])
    ]


def find_best(results: Sequence[Result]) -> Result | None:
    """Return the best result by its primary measure; None without results or with several datasets."""
    if len({(result.dataset.fingerprint, result.dataset.split) for result in results}) > 1:
        return None
    return max(results, key=lambda result: np.nan_to_num(find_mean(result, result.primary)), default=None)


def find_run(best: Result, results: Mapping[str, Result], runs: Mapping[str, str]) -> str:
    """Return the run id of the best result, "" if unknown.

    A cross-validated result has no run; it has the name of its combination, whose run is returned.
    """
    return next(
        (
            runs.get(combination, "")
            for combination, result in results.items()
            if (result.name, result.dataset) == (best.name, best.dataset)
        ),
        "",
    )
