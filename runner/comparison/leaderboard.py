"""Build the leaderboard of a sweep: its results by the primary measure, each tested against the best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runner.comparison.comma_separated import format_csv
from runner.comparison.comparability import ReportError, find_gold_differences
from runner.comparison.criteria import Criterion, select_criteria
from runner.comparison.labels import abbreviate_labels, label_results, split_swept
from runner.comparison.notes import describe_dataset, describe_unknown_hits, list_some, warn_holes, warn_unequal_holes
from runner.comparison.race import RaceRecord
from runner.comparison.search import Search
from runner.comparison.selection import WinnerSelection
from runner.comparison.systems import SystemsByDataset
from runner.evaluation.result import DatasetSummary, Result
from runner.statistics.comparison import Difference, compare_pairs, compare_to, resolve_correction
from runner.statistics.search_gain import SearchGain, measure_search_gain
from runner.statistics.selection import find_front
from runner.statistics.settings import Statistics
from runner.statistics.significance import mean_interval

if TYPE_CHECKING:
    from pandas import DataFrame

FINALISTS = 8
"""The largest number of combinations that reports describe in detail."""

FIGURES = (
    *("low", "high", "difference", "difference_low", "difference_high", "effect", "p", "differs"),
    *("needed", "wins", "ties", "losses"),
)
"""The columns of a table of the leaderboard that follow the mean, in order."""


@dataclass(frozen=True)
class FailedCombination:
    """A combination that failed: its name, the error in one line, and the traceback."""

    name: str
    error: str
    traceback: str = ""


@dataclass(frozen=True, eq=False)
class LeaderboardRow:
    """One combination; `position` is that of its result among those that the leaderboard was built from.

    `label` holds only settings that differ between combinations. `low` and `high` are the confidence interval of the
    mean. `difference` is that from the best, corrected for all pairs; its numbers are NaN for the best itself. `means`
    are the values of the other criteria, by name. `run` is the id of the tracked run, "" without one; `search_type` is
    that of an API with several.
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
    difference: Difference
    means: Mapping[str, float]
    run: str = ""
    search_type: str = ""

    def list_figures(self) -> dict[str, float]:
        """Return the interval of the mean and the difference by the names of their columns, `FIGURES`."""
        own = self.difference
        values = (
            *(self.low, self.high, own.mean, own.low, own.high, own.effect, own.corrected, own.significant),
            *(own.needed, own.wins, own.ties, own.losses),
        )
        return dict(zip(FIGURES, values, strict=True))


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Combinations, best first (ties by name), and those that failed.

    `dataset` is None if all failed. `queries` is the number of queries behind the primary mean, and `clusters` that of
    their clusters of variants (None without clusters). All pairs are tested as one family, with `statistics`, so the
    best may be compared with any row. `detectable` is the difference from the best that these tests detect with a power
    of 0.8, for the median row that differs from it. `search_gain` is what choosing the best gained. `shared` are the
    swept settings with one value, `criteria` the other columns. `letters`, by rank, are those of the finalists: two
    that differ significantly share none. `notes` are further remarks, `holes` says how many of the first hits of the
    best are unjudged ("" if few). `sweep` is the run of the sweep, "" if unknown; `selection`, `search`, `systems` (on
    several datasets) and `race` describe the sweep behind the leaderboard; combinations that a race dropped have no row
    and no rank, and follow the rows in `to_csv`.
    """

    primary: str
    dataset: DatasetSummary | None
    queries: int
    statistics: Statistics
    detectable: float
    search_gain: SearchGain
    shared: Mapping[str, Any]
    criteria: Sequence[Criterion]
    rows: Sequence[LeaderboardRow]
    failures: Sequence[FailedCombination]
    selection: WinnerSelection | None = None
    search: Search | None = None
    letters: Mapping[int, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    holes: str = ""
    systems: SystemsByDataset | None = None
    clusters: int | None = None
    race: RaceRecord | None = None
    sweep: str = ""

    @property
    def units(self) -> int:
        """Return the number of clusters (or queries, without clusters) behind the primary mean."""
        return self.queries if self.clusters is None else self.clusters

    @property
    def labels(self) -> list[str]:
        """Return the labels of the rows for narrow tables and sentences."""
        return abbreviate_labels([row.label for row in self.rows], [row.swept for row in self.rows])

    @property
    def logged(self) -> bool:
        """Return whether any row has a run."""
        return any(row.run for row in self.rows)

    @property
    def is_best_of_several(self) -> bool:
        """Return whether the leader was selected by the scores that are reported."""
        return self.selection is None and self.queries > 0 and len(self.rows) > 1

    @property
    def finalists(self) -> list[LeaderboardRow]:
        """Return the best few rows and the best of each retriever and search type, at most `FINALISTS`."""
        return [self.rows[i] for i in select_finalists([(row.retriever, row.search_type) for row in self.rows])]

    @property
    def rival(self) -> LeaderboardRow | None:
        """Return the best row of a retriever other than the leader's, or else the second row; None without a mean."""
        with_mean = [row for row in self.rows[1:] if not math.isnan(row.mean)]
        others = [row for row in with_mean if row.retriever != self.rows[0].retriever]
        return next(iter([*others, *with_mean]), None)

    def find_front(self, cost: str, ignored: float = 0.0) -> list[LeaderboardRow]:
        """Return the Pareto front of a cost, by its name, and the primary mean, cheapest first.

        A mean that is larger by at most `ignored` than that of a cheaper row on the front counts as equal to it. Values
        are rounded to nine decimals, as on a page.
        """
        points = [(round(row.means.get(cost, math.nan), 9), round(row.mean, 9)) for row in self.rows]
        front = np.flatnonzero(find_front(np.array(points).reshape(-1, 2), [False, True], ignored)).tolist()
        return [self.rows[i] for i in sorted(front, key=lambda i: (points[i][0], i))]

    def group_failures(self) -> dict[str, list[FailedCombination]]:
        """Return the failures by error, most frequent first."""
        groups: dict[str, list[FailedCombination]] = {}
        for failure in self.failures:
            groups.setdefault(failure.error, []).append(failure)
        return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))

    def to_frame(self) -> DataFrame:
        """Return a data frame with one row per combination and one column per swept setting."""
        import pandas as pd

        columns, rows = self._list_rows()
        return pd.DataFrame(rows, columns=columns)

    def to_csv(self) -> str:
        """Return the data frame as comma-separated values, with the combinations that a race dropped below it."""
        columns, rows = self._list_rows()
        dropped = self.race.list_rows() if self.race else []
        return format_csv(list(dict.fromkeys([*columns, *(key for row in dropped for key in row)])), [*rows, *dropped])

    def _list_rows(self) -> tuple[list[str], list[dict[str, object]]]:
        """Return the columns of the data frame and its rows, without settings that a combination does not have."""
        run = ["run"] if self.logged else []
        columns = ["rank", "name", "retriever", *run, *dict.fromkeys(key for row in self.rows for key in row.swept)]
        measured = [self.primary, *FIGURES, *(criterion.name for criterion in self.criteria)]
        rows = [
            {"rank": row.rank, "name": row.name, "retriever": row.retriever, "run": row.run}
            | dict(row.swept)
            | {self.primary: row.mean}
            | row.list_figures()
            | dict(row.means)
            for row in self.rows
        ]
        return list(dict.fromkeys([*columns, *measured])), rows

    def to_dict(self) -> dict[str, Any]:
        """Return the leaderboard for JSON."""
        left_out = ("criteria", "letters", "failures", "search", "systems", "dataset", "sweep")
        return {name: value for name, value in vars(self).items() if name not in left_out} | {
            "dataset": None if self.dataset is None else vars(self.dataset),
            "statistics": asdict(self.statistics),
            "rows": [
                {**vars(row), **row.list_figures(), "letters": self.letters.get(row.rank, "")} for row in self.rows
            ],
            "failures": [{"name": failure.name, "error": failure.error} for failure in self.failures],
        }


def build_leaderboard(
    results: Sequence[Result],
    primary: str,
    failures: Sequence[FailedCombination] = (),
    statistics: Statistics = Statistics(),
    *,
    runs: Sequence[str] = (),
    selection: WinnerSelection | None = None,
    search: Search | None = None,
    systems: SystemsByDataset | None = None,
    race: RaceRecord | None = None,
    sweep: str = "",
) -> Leaderboard:
    """Order results by the mean of a measure, with intervals, and test each against the best.

    `runs` are the ids of the results' runs, and `sweep` that of the sweep; without any, nothing was logged. More
    permutations are drawn than requested if several tests need them for any to be significant. Raises `ReportError` for
    results on different datasets, `ResultError` if the measure is missing.
    """
    for result in results:
        if result.dataset.fingerprint != results[0].dataset.fingerprint:
            raise ReportError(
                f"{results[0].name} was measured on {describe_dataset(results[0])}, but {result.name} on "
                f"{describe_dataset(result)}; only results on the same dataset can be ranked together"
            )
    statistics = resolve_correction(statistics)
    order = order_results(results, primary)
    ranked = [results[i] for i in order]
    criteria = select_criteria(ranked, primary)
    tests = _test_rows(ranked, primary, statistics) if ranked else _RowTests()
    return Leaderboard(
        primary=primary,
        dataset=ranked[0].dataset if ranked else None,
        queries=tests.queries,
        clusters=tests.clusters,
        statistics=statistics,
        detectable=tests.detectable,
        search_gain=tests.search_gain,
        shared=split_swept([result.swept for result in ranked])[1],
        criteria=criteria,
        rows=_build_rows(ranked, order, primary, criteria, tests, runs),
        failures=list(failures),
        selection=selection,
        search=search,
        letters=tests.letters,
        notes=[
            *_describe_addresses(ranked),
            *_describe_extra_qrels(ranked),
            *_describe_gold(ranked),
            *_list_warnings(ranked),
        ],
        holes=warn_holes(ranked[0], label_results(ranked)[0]) if ranked else "",
        systems=systems,
        race=race,
        sweep=sweep,
    )


def order_results(results: Sequence[Result], primary: str) -> list[int]:
    """Return the positions of results, best first by the mean of a measure (ties by name), those without a mean last.

    Raises `ResultError` if the measure is missing.
    """
    return sorted(range(len(results)), key=lambda i: (*_merit(results[i], primary), results[i].name))


def _build_rows(
    ranked: Sequence[Result],
    order: Sequence[int],
    primary: str,
    criteria: Sequence[Criterion],
    tests: _RowTests,
    runs: Sequence[str],
) -> list[LeaderboardRow]:
    return [
        LeaderboardRow(
            rank=i + 1,
            position=position,
            name=result.name,
            label=label,
            retriever=result.retriever,
            search_type=result.search_type,
            swept=result.swept,
            mean=find_mean(result, primary),
            low=tests.intervals[i][0],
            high=tests.intervals[i][1],
            difference=tests.differences[i],
            means={criterion.name: criterion.value(result) for criterion in criteria},
            run=runs[position] if runs else "",
        )
        for i, (position, result, label) in enumerate(zip(order, ranked, label_results(ranked), strict=True))
    ]


@dataclass(frozen=True, eq=False)
class _RowTests:
    """The tests behind a leaderboard: of each row, the interval of its mean and its difference from the best."""

    queries: int = 0
    clusters: int | None = None
    detectable: float = math.nan
    search_gain: SearchGain = field(default_factory=SearchGain)
    letters: Mapping[int, str] = field(default_factory=dict)
    intervals: Sequence[Sequence[float]] = ()
    differences: Sequence[Difference] = ()


def _test_rows(ranked: Sequence[Result], primary: str, statistics: Statistics) -> _RowTests:
    """Test all pairs of results, best first, as one family."""
    scores = np.stack([result.of(primary) for result in ranked])
    is_counted, cluster_of = ~np.isnan(scores[0]), ranked[0].queries.cluster_numbers
    queries, counted = int(np.count_nonzero(is_counted)), ~np.isnan(scores).all(axis=0)
    units = None if cluster_of is None else cluster_of[counted]
    intervals = mean_interval(scores[:, counted], statistics.confidence, units).tolist()
    few = select_finalists([(result.retriever, result.search_type) for result in ranked])
    wanted = np.zeros((len(ranked), len(ranked)), dtype=np.bool_)
    wanted[0] = wanted[:, 0] = wanted[np.ix_(few, few)] = True
    pairs = compare_pairs(scores, statistics, cluster_of, wanted)
    to_best = compare_to(0, scores, pairs, cluster_of)
    letters: dict[int, str] = {}
    differences = [Difference() for _ in ranked]
    if queries:
        differences = [Difference(ties=int(to_best.ties[0])), *map(to_best.describe, range(1, len(ranked)))]
    if queries and len(few) > 1:
        letters = {i + 1: letter for i, letter in zip(few, pairs.letters(few), strict=True)}
    return _RowTests(
        queries=queries,
        clusters=None if cluster_of is None else len(np.unique(cluster_of[is_counted])),
        detectable=_median(to_best.detectable[to_best.deviations > 0]),
        search_gain=measure_search_gain(scores, cluster_of, statistics.seed),
        letters=letters,
        intervals=intervals,
        differences=differences,
    )


def _describe_gold(ranked: Sequence[Result]) -> list[str]:
    """Return a sentence for each search type whose gold differs from that of the best."""
    notes = []
    for kind, result in {result.search_type or result.retriever: result for result in reversed(ranked)}.items():
        if unlike := find_gold_differences(ranked[0], result):
            notes.append(
                f"{len(unlike):,} of {len(result.queries.ids):,} queries have different gold in {kind} and in the "
                f"best ({list_some(unlike)}), because the dataset expects different items of each. A difference "
                "may come from the expected items instead of the retrieved ones."
            )
    return sorted(notes)


def _describe_extra_qrels(ranked: Sequence[Result]) -> list[str]:
    """Return a sentence on the judgments that were added to those of the dataset, if any."""
    files = {file for result in ranked for file in result.extra_qrels}
    if not files:
        return []
    n = max(result.dataset.judgments for result in ranked)
    return [f"The {n:,} judgments include those of {', '.join(sorted(files))} (dataset.extra_qrels)."]


def _describe_addresses(ranked: Sequence[Result]) -> list[str]:
    """Return a sentence on the services that answered, and the number of combinations that queried each."""
    queried = Counter(address for result in ranked for address in set(result.addresses.values()))
    if not queried:
        return []
    return [
        "Answered by "
        + ", ".join(f"{address} ({count:,} of {len(ranked):,})" for address, count in sorted(queried.items()))
        + "."
    ]


def _list_warnings(ranked: Sequence[Result]) -> list[str]:
    """List the distinct warnings of all results, and one on unknown hits that names the worst result."""
    warnings = list(dict.fromkeys(warning for result in ranked for warning in result.warnings))
    unequal = warn_unequal_holes(ranked, label_results(ranked))
    warnings += filter(None, [unequal])
    some_unknown = [result for result in ranked if describe_unknown_hits(result)]
    if not some_unknown:
        return warnings
    worst = max(some_unknown, key=lambda result: result.holes.unknown_anywhere if result.holes else 0)
    return [
        *warnings,
        f"Warning: {len(some_unknown):,} of {len(ranked):,} combinations have hits that are missing from the "
        f"dataset. {worst.name}: {describe_unknown_hits(worst)}.",
    ]


def select_finalists(kinds: Sequence[tuple[str, str]], best: int = 3) -> list[int]:
    """Select combinations from (retriever, search type), best first: the best few, and the best of each kind."""
    first = {kind: i for i, kind in reversed(list(enumerate(kinds)))}
    return sorted({*range(min(best, len(kinds))), *first.values()})[:FINALISTS]


def _merit(result: Result, primary: str) -> tuple[bool, float]:
    result.of(primary)
    mean = find_mean(result, primary)
    return math.isnan(mean), 0.0 if math.isnan(mean) else -mean


def find_mean(result: Result, measure: str) -> float:
    """Return a mean; None, which records contain for NaN, becomes NaN."""
    mean = result.means[measure]
    return math.nan if mean is None else float(mean)


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan
