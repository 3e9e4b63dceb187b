"""The results of a sweep in order of merit, and which of them really differ from the best.

Made from results alone. Knows nothing of how a leaderboard is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runner.analysis.comparison import compare_pairs, compare_to
from runner.analysis.effects import detectable_difference, queries_needed
from runner.analysis.significance import mean_interval
from runner.metrics.abstention import AtThreshold
from runner.metrics.statistics import Correction, Statistics, Test
from runner.reports.comparison.comparability import ReportError, other_gold, some
from runner.reports.comparison.labels import labels, swept_apart
from runner.reports.evaluation.tables import recall_at_most, unknown_warning
from runner.reports.rendering.tables import Table
from runner.reports.sweep.selection import Search, WinnerSelection
from runner.result import DatasetSummary, Result

if TYPE_CHECKING:
    from pandas import DataFrame


FINALISTS = 8
"""How many combinations are shown in detail."""


@dataclass(frozen=True)
class FailedCombination:
    """A combination that came to nothing: its name, what went wrong in one line, and where."""

    name: str
    error: str
    traceback: str = ""


@dataclass(frozen=True, eq=False)
class LeaderboardRow:
    """One combination. `position` is its result's place among those that the leaderboard was made from.

    `label` tells it from the others and leaves out what all share. `low` and `high` are the interval of the mean.
    `difference` (with its own interval, `difference_low` and `difference_high`, corrected as `p` is), `effect`
    (the difference in its own standard deviations, Hedges' g), `p` (corrected), `differs` (significantly), `needed`
    (how many queries, or clusters, it takes to see such a difference in 4 of 5 tries), `wins`, `ties` and `losses`
    (queries) are all against the best, whose own figures are NaN. `means` are other figures, by the name of
    their column. `run` is the id of its run, "" for none. `search_type` is what is asked of an API that has several.
    """

    rank: int
    position: int
    name: str
    label: str
    retriever: str
    swept: Mapping[str, Any]
    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    effect: float
    p: float
    differs: bool
    needed: float
    wins: int
    ties: int
    losses: int
    means: Mapping[str, float]
    run: str = ""
    search_type: str = ""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Combinations, best first (ties by name), and those that failed.

    `queries` is how many enter the mean of the primary measure, `clusters` how many clusters of variants they form
    (None where every query is its own), `confidence` that of the intervals, `test` and `correction` how all pairs
    are tested as one family, so that a row may be compared to the best by the same scores. `detectable` is the
    difference to the best that one test with these queries sees in 4 of 5 tries, for the median of the others.
    `shared` is what of the swept settings is the same everywhere, `others` the columns of `LeaderboardRow.means`.
    `dataset` is None where everything failed. `selection` is the choice that was made among them, `search` how they
    were found, if either was. `letters` are those of the finalists, by rank: two that differ significantly have
    none in common; empty where there is nothing to tell apart. `notes` are what a reader should know besides.
    `systems` are those of a sweep on several datasets, with their score on each.
    """

    primary: str
    dataset: DatasetSummary | None
    queries: int
    confidence: float
    alpha: float
    test: Test
    correction: Correction
    detectable: float
    shared: Mapping[str, Any]
    others: Sequence[str]
    rows: Sequence[LeaderboardRow]
    failures: Sequence[FailedCombination]
    selection: WinnerSelection | None = None
    search: Search | None = None
    letters: Mapping[int, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    systems: Table = field(default_factory=lambda: Table([], []))
    clusters: int | None = None

    def logged_as(self, runs: Sequence[str]) -> Leaderboard:
        """Return the leaderboard with the ids of the runs of the results that it was made from, in their order."""
        return replace(self, rows=[replace(row, run=runs[row.position]) for row in self.rows])

    @property
    def units(self) -> int:
        """Return how many clusters, or queries without clusters, are behind the mean of the primary measure."""
        return self.queries if self.clusters is None else self.clusters

    @property
    def logged(self) -> bool:
        """Tell whether the run of any combination is known."""
        return any(row.run for row in self.rows)

    def failures_by_error(self) -> dict[str, list[FailedCombination]]:
        """Return the failures that say the same together, the most frequent first."""
        groups: dict[str, list[FailedCombination]] = {}
        for failure in self.failures:
            groups.setdefault(failure.error, []).append(failure)
        return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))

    def to_frame(self) -> DataFrame:
        """Return a data frame of one row a combination, with a column for each swept setting."""
        import pandas as pd

        run = ["run"] if self.logged else []
        columns = ["rank", "name", "retriever", *run, *dict.fromkeys(key for row in self.rows for key in row.swept)]
        figures = ["low", "high", "difference", "difference_low", "difference_high", "effect", "p", "differs"]
        figures += ["needed", "wins", "ties", "losses"]
        measured = [self.primary, *figures, *self.others]
        rows = [
            {"rank": row.rank, "name": row.name, "retriever": row.retriever, "run": row.run}
            | dict(row.swept)
            | {self.primary: row.mean}
            | {name: getattr(row, name) for name in figures}
            | dict(row.means)
            for row in self.rows
        ]
        return pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *measured])))

    def to_csv(self) -> str:
        """Return the data frame as comma-separated values."""
        return str(self.to_frame().to_csv(index=False))


def leaderboard(
    results: Sequence[Result],
    primary: str,
    failures: Sequence[FailedCombination] = (),
    statistics: Statistics = Statistics(),
) -> Leaderboard:
    """Order results by the mean of a measure, say how sure it is, and test each against the best.

    More permutations are drawn than the statistics state if several tests need them for any to be significant. Raises
    `ReportError` for results on different datasets, `ResultError` where the measure is missing.
    """
    for result in results:
        if result.dataset.fingerprint != results[0].dataset.fingerprint:
            raise ReportError(
                f"{results[0].name} was measured on {_dataset(results[0])}, {result.name} on {_dataset(result)}: "
                "only results on the same dataset can be ranked together"
            )
    statistics = replace(statistics, correction=effective(statistics.test, statistics.correction))
    order = sorted(range(len(results)), key=lambda i: (*_merit(results[i], primary), results[i].name))
    ranked = [results[i] for i in order]
    others = _others(ranked, primary)
    rows, queries, detectable = [], 0, math.nan
    clusters: int | None = None
    letters: dict[int, str] = {}
    if ranked:
        scores = np.stack([result.of(primary) for result in ranked])
        queries = int(np.count_nonzero(~np.isnan(scores[0])))
        counted, cluster_of = ~np.isnan(scores).all(axis=0), ranked[0].queries.cluster_numbers
        units = None if cluster_of is None else cluster_of[counted]
        clusters = None if cluster_of is None else len(np.unique(cluster_of[~np.isnan(scores[0])]))
        intervals = mean_interval(scores[:, counted], statistics.confidence, units).tolist()
        few = finalists([(result.retriever, result.search_type) for result in ranked])
        wanted = np.zeros((len(ranked), len(ranked)), dtype=np.bool_)
        wanted[0] = wanted[:, 0] = wanted[np.ix_(few, few)] = True
        pairs = compare_pairs(scores, statistics, cluster_of, wanted)
        found = compare_to(0, scores, pairs, cluster_of)
        if queries and len(few) > 1:
            letters = {i + 1: letter for i, letter in zip(few, pairs.letters(few), strict=True)}
        needed = queries_needed(found.differences, found.deviations, statistics.alpha)
        detectable = _median(detectable_difference(found.units, found.deviations, statistics.alpha)[1:])
        for i, label in enumerate(labels(ranked)):
            result = ranked[i]
            low, high = intervals[i]
            rows.append(
                LeaderboardRow(
                    rank=i + 1,
                    position=order[i],
                    name=result.name,
                    label=label,
                    retriever=result.retriever,
                    search_type=result.search_type,
                    swept=result.swept,
                    mean=_number(result.means[primary]),
                    low=low,
                    high=high,
                    difference=float(found.differences[i]) if i else math.nan,
                    difference_low=float(found.intervals[i, 0]) if i else math.nan,
                    difference_high=float(found.intervals[i, 1]) if i else math.nan,
                    effect=float(found.effects[i]) if i else math.nan,
                    p=float(found.p_values[i]) if i else math.nan,
                    differs=bool(found.significant[i]),
                    needed=float(needed[i]) if i else math.nan,
                    wins=int(found.wins[i]),
                    ties=int(found.ties[i]),
                    losses=int(found.losses[i]),
                    means={name: other(result) for name, other in others.items()},
                )
            )
    return Leaderboard(
        primary=primary,
        dataset=ranked[0].dataset if ranked else None,
        queries=queries,
        clusters=clusters,
        confidence=statistics.confidence,
        alpha=statistics.alpha,
        test=statistics.test,
        correction=statistics.correction,
        detectable=detectable,
        shared=swept_apart(ranked)[1],
        others=list(others),
        rows=rows,
        failures=list(failures),
        letters=letters,
        notes=[*_answered_by(ranked), *_other_gold(ranked), *_warnings(ranked)],
    )


def _other_gold(ranked: Sequence[Result]) -> list[str]:
    """Return, in a sentence for each search type, of how many queries it is measured by other gold than the best is."""
    told = []
    for kind, result in {result.search_type or result.retriever: result for result in reversed(ranked)}.items():
        if unlike := other_gold(ranked[0], result):
            told.append(
                f"{len(unlike):,} of {len(result.queries.ids):,} queries have other gold in {kind} than in the best "
                f"({some(unlike)}): the dataset expects other items of it, so that a difference may be in what is "
                "expected rather than in what is found."
            )
    return sorted(told)


def _answered_by(ranked: Sequence[Result]) -> list[str]:
    """Return in a sentence which services answered, and how many combinations queried each."""
    queried = Counter(address for result in ranked for address in set(result.addresses.values()))
    if not queried:
        return []
    return [
        "Answered by "
        + ", ".join(f"{address} ({count:,} of {len(ranked):,})" for address, count in sorted(queried.items()))
        + "."
    ]


def _warnings(ranked: Sequence[Result]) -> list[str]:
    """Return the warnings of all results, each once; of hits that the dataset lacks, one with the worst result."""
    warnings = list(dict.fromkeys(warning for result in ranked for warning in result.warnings))
    some_unknown = [result for result in ranked if result.holes and result.holes.unknown_anywhere]
    if not some_unknown:
        return warnings
    worst = max(some_unknown, key=lambda result: result.holes.unknown_anywhere if result.holes else 0)
    return [
        *warnings,
        f"Warning: hits of {len(some_unknown):,} of {len(ranked):,} combinations are missing from the dataset. "
        f"{worst.name}: {unknown_warning(worst)}.",
    ]


def effective(test: Test, correction: Correction) -> Correction:
    """Return the correction for a test: max-T is a permutation test of its own, and other tests have Holm's instead."""
    return "holm" if correction == "maxt" and test != "permutation" else correction


def finalists(kinds: Sequence[tuple[str, str]], best: int = 3) -> list[int]:
    """Return which of some combinations, given best first by retriever and search type, are shown in detail.

    They are the best few and the best of each retriever, and of each of its search types, as many as there is room for.
    """
    first = {kind: i for i, kind in reversed(list(enumerate(kinds)))}
    return sorted({*range(min(best, len(kinds))), *first.values()})[:FINALISTS]


def _merit(result: Result, primary: str) -> tuple[bool, float]:
    result.of(primary)
    mean = _number(result.means[primary])
    return math.isnan(mean), 0.0 if math.isnan(mean) else -mean


def _others(results: Sequence[Result], primary: str) -> dict[str, Callable[[Result], float]]:
    """Return the other columns of a leaderboard that at least one result has a value for."""

    def mean(measure: str) -> Callable[[Result], float]:
        return lambda result: _number(result.means.get(measure))

    def at_threshold(threshold: float, figure: str) -> Callable[[Result], float]:
        return lambda result: float(getattr(_by_threshold(result).get(threshold), figure, math.nan))

    measures = [m for m in (recall_at_most(m for r in results for m in r.measures), "RR") if m and m != primary]
    columns: dict[str, Callable[[Result], float]] = {measure: mean(measure) for measure in measures}
    thresholds = sorted({threshold for result in results for threshold in _by_threshold(result)})
    for threshold in thresholds:  # the rate of true negatives never stands without its cost
        columns |= {
            f"tn_rate@{threshold:g}": at_threshold(threshold, "tn_rate"),
            f"recall_lost@{threshold:g}": at_threshold(threshold, "recall_lost"),
            f"rejected@{threshold:g}": at_threshold(threshold, "left_with_nothing"),
        }
    columns |= {
        "grade": lambda result: _number(result.grades.figures()["grade/mean"]) if result.grades else math.nan,
        "auroc": lambda result: result.abstention.auroc,
        "median_ms": lambda result: _number(result.timings.median_ms),
        "mean_ms": lambda result: _number(result.timings.mean_ms),
        "p95_ms": lambda result: _number(result.timings.p95_ms),
        "index_s": lambda result: result.timings.index_s,
    }
    return {name: of for name, of in columns.items() if not all(math.isnan(of(result)) for result in results)}


def _by_threshold(result: Result) -> dict[float, AtThreshold]:
    """Return how the queries without gold went at each threshold that was set."""
    return {at.threshold: at for at in result.abstention.thresholds if at.threshold is not None}


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def _number(value: float | None) -> float:
    """Return a number, NaN for the null that a record has in its place."""
    return math.nan if value is None else float(value)


def _dataset(result: Result) -> str:
    d = result.dataset
    return f"{d.name} ({d.split}, {d.fingerprint[:8]})"
