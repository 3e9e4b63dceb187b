"""Build the table of a paper: systems by datasets by measures, tested on each dataset and across datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from runner.comparison.comparability import NotComparable, ReportError, check_comparable
from runner.comparison.compare import compute_mean
from runner.comparison.datasets import title_datasets
from runner.comparison.families import find_family
from runner.comparison.labels import identify_system, label_systems
from runner.evaluation.result import Result
from runner.statistics.across_datasets import compare_across, compute_mean_ranks
from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference, Differences, Pairs, compare_pairs, compare_to, resolve_correction
from runner.statistics.settings import Statistics
from runner.statistics.significance import Floats, mean_interval

Marks = Literal["letters", "signs"]
"""How cells show which differences are significant: between all pairs of systems, or from the reference."""

RowOrder = Literal["given", "label", "score"]
"""The order of rows: that of the results, of their names, or of their mean over datasets by the primary measure."""

BETTER, WORSE = "+", "-"
"""The marks of cells that differ significantly from the reference."""

COLUMNS = (
    *("id", "system", "dataset", "measure", "mean", "low", "high", "queries", "is_best", "reference"),
    *("difference", "difference_low", "difference_high", "effect", "p", "mark", "letters", "wins", "ties", "losses"),
)
"""The columns of a table of all cells, in order."""

_EQUAL = 1e-12
"""Means this close are equal, and both are the best."""


@dataclass(frozen=True)
class PaperCell:
    """A mean with its interval, and the difference from the reference of its column, corrected for all pairs.

    The position of a cell in the table is its `id`, as in a spreadsheet: B3 is in the second column and the third row.
    Two cells of a column differ significantly if and only if they share none of their `letters`, which are "" in a
    column with a single system.
    The numbers of the difference are NaN and 0 for the reference itself.
    """

    id: str
    system: str
    dataset: str
    measure: str
    mean: float
    low: float
    high: float
    queries: int
    is_best: bool
    reference: str
    difference: Difference = field(default_factory=Difference)
    letters: str = ""

    @property
    def mark(self) -> str:
        """Return the mark of a significant difference, "" for any other."""
        return mark(self.difference)

    def to_dict(self) -> dict[str, object]:
        """Return the cell by the names of its columns, `COLUMNS`."""
        own = self.difference
        values = (
            *(self.id, self.system, self.dataset, self.measure, self.mean, self.low, self.high, self.queries),
            *(self.is_best, self.reference, own.mean, own.low, own.high, own.effect, own.corrected, self.mark),
            *(self.letters, own.wins, own.ties, own.losses),
        )
        return dict(zip(COLUMNS, values, strict=True))


@dataclass(frozen=True)
class AcrossRow:
    """A system compared with the reference by one measure, averaged over datasets that weigh the same.

    `same` is about new queries of the same datasets. `new` is about new datasets, whose wins, ties and losses count
    datasets; of these, `better` and `worse` count the significant ones.
    """

    system: str
    measure: str
    reference: str
    mean_rank: float
    same: Difference
    new: Difference
    better: int
    worse: int

    def to_dict(self) -> dict[str, object]:
        """Return the row for JSON, with the fields of its differences beside the others."""
        same, new = self.same, self.new
        return {
            "system": self.system,
            "measure": self.measure,
            "reference": self.reference,
            "mean_rank": self.mean_rank,
            "difference": same.mean,
            "low": same.low,
            "high": same.high,
            "p": same.corrected,
            "new_low": new.low,
            "new_high": new.high,
            "new_p": new.corrected,
            "wins": new.wins,
            "ties": new.ties,
            "losses": new.losses,
            "better": self.better,
            "worse": self.worse,
        }


@dataclass(frozen=True, eq=False)
class PaperTable:
    """Systems (rows) by datasets and measures (columns), as `cells` by row and column, None where a result is missing.

    `baseline` is the system that signs refer to; if it is "", they refer to the best system of each column. `marks`
    says whether cells show signs, or letters for all pairs of systems in a column. `across` is empty unless at least
    two systems have results on all of several datasets. `results` are those of a system (row) on a dataset (position),
    without those in `foreign`, whose hits have foreign ids.
    """

    systems: Sequence[str]
    datasets: Sequence[str]
    measures: Sequence[str]
    baseline: str
    statistics: Statistics
    cells: Sequence[Sequence[PaperCell | None]]
    across: Sequence[AcrossRow]
    results: Mapping[tuple[int, int], Result]
    foreign: Collection[tuple[int, int]] = ()
    marks: Marks = "signs"

    @property
    def columns(self) -> list[tuple[int, str]]:
        """Return the dataset (its position) and the measure of each column."""
        return [(dataset, measure) for dataset in range(len(self.datasets)) for measure in self.measures]

    def list_missing(self) -> dict[str, list[str]]:
        """Return the datasets on which a system has no result, by system."""
        missing = {
            system: [title for column, title in enumerate(self.datasets) if (row, column) not in self.results]
            for row, system in enumerate(self.systems)
        }
        return {system: titles for system, titles in missing.items() if titles}

    def list_cells(self) -> list[PaperCell]:
        """Return the cells row by row, without empty ones."""
        return [cell for row in self.cells for cell in row if cell is not None]


def build_paper_table(
    results: Sequence[Result],
    measures: Sequence[str] = (),
    baseline: str = "",
    statistics: Statistics = Statistics(),
    datasets: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    marks: Marks | None = None,
    order: RowOrder = "given",
) -> PaperTable:
    """Return the table of results; a system is what `identify_system` says, whatever the dataset.

    `measures` are those of the first result's primary measure by default. The first of them is primary; the others are
    exploratory, and corrected together on each dataset. `datasets` selects and orders datasets by name, `marks` are
    letters unless there is a baseline, `names` maps labels of systems to the names to show, and `order` is that of the
    rows. Raises `ReportError`.
    """
    grid, systems, titles = _arrange(results, datasets, names or {})
    first = next(iter(grid.values()))
    chosen = list(measures) or [first.primary]
    grid, systems = _order_rows(grid, systems, order, chosen[0])
    foreign = [place for place, result in grid.items() if result.has_foreign_ids]
    grid = {place: result for place, result in grid.items() if place not in foreign}
    for dataset, title in enumerate(titles):
        if all(column != dataset for _, column in grid):
            raise ReportError(f"{title}: no hit of any result has an id of the dataset; leave it out")
    if baseline and baseline not in systems:
        raise ReportError(f"baseline={baseline}: no such system; choose from {', '.join(systems)}")
    statistics = resolve_correction(statistics)
    sizes = Counter(find_family(measure, chosen[0], ()) for measure in chosen)
    in_family = {measure: sizes[find_family(measure, chosen[0], ())] for measure in chosen}
    tests = {
        (title, measure): _test_column(grid, dataset, title, measure, statistics, in_family[measure])
        for dataset, title in enumerate(titles)
        for measure in chosen
    }
    columns = [
        _build_column(column, systems, *place, baseline, statistics.confidence, name_column(position))
        for position, (place, column) in enumerate(tests.items())
    ]
    across = [
        row
        for measure in chosen
        for row in _compare_across(
            [tests[title, measure] for title in titles], systems, measure, baseline, statistics, in_family[measure]
        )
    ]
    return PaperTable(
        systems,
        titles,
        chosen,
        baseline,
        statistics,
        list(zip(*columns, strict=True)),
        across,
        grid,
        foreign,
        marks or ("signs" if baseline else "letters"),
    )


def name_column(position: int) -> str:
    """Return the letters of a column, from A, as in a spreadsheet."""
    name, left = "", position + 1
    while left:
        left, letter = divmod(left - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _arrange(
    results: Sequence[Result], datasets: Sequence[str], names: Mapping[str, str]
) -> tuple[dict[tuple[int, int], Result], list[str], list[str]]:
    """Return the results by row and dataset, the names of systems, and the titles of datasets."""
    by_fingerprint: dict[str, Result] = {}
    for result in results:
        by_fingerprint.setdefault(result.dataset.fingerprint, result)
    titles = dict(zip(by_fingerprint, title_datasets([one.dataset for one in by_fingerprint.values()]), strict=True))
    if unknown := [name for name in datasets if name not in titles.values()]:
        raise ReportError(f"datasets={unknown[0]}: no such dataset; choose from {', '.join(titles.values())}")
    selected = [f for name in datasets for f, title in titles.items() if title == name] or list(titles)
    columns = {fingerprint: position for position, fingerprint in enumerate(selected)}
    first: dict[bytes, Result] = {}
    by_system: dict[bytes, dict[int, Result]] = {}
    for result in results:
        system = identify_system(result)
        first.setdefault(system, result)
        row = by_system.setdefault(system, {})
        if (column := columns.get(result.dataset.fingerprint)) is None:
            continue
        check_comparable(by_fingerprint[result.dataset.fingerprint], result)
        earlier = row.setdefault(column, result)
        if earlier is not result and not np.array_equal(earlier.scores, result.scores, equal_nan=True):
            raise ReportError(
                f"{earlier.name} and {result.name}: two different results of the same system on "
                f"{titles[result.dataset.fingerprint]}; remove one of them from sweeps"
            )
    labels = label_systems([*first.values()])
    if unknown := [label for label in names if label not in labels]:
        raise ReportError(f"names.{unknown[0]}: no such system; choose from {', '.join(labels)}")
    systems = [names.get(label, label) for label in labels]
    if len(set(systems)) < len(systems):
        raise ReportError("names: two systems have the same name; give each system a unique name")
    grid = {(row, column): result for row, of in enumerate(by_system.values()) for column, result in of.items()}
    return grid, systems, [titles[fingerprint] for fingerprint in selected]


def _order_rows(
    grid: Mapping[tuple[int, int], Result], systems: Sequence[str], order: RowOrder, primary: str
) -> tuple[dict[tuple[int, int], Result], list[str]]:
    """Return the results and the names in the order of the rows; systems that lack a dataset have no score for it."""
    if order == "given":
        return dict(grid), list(systems)

    def key(row: int) -> tuple[float, str]:
        known = [result for (own, _), result in grid.items() if own == row and not result.has_foreign_ids]
        scores = [compute_mean(result.of(primary)) for result in known]
        return -sum(scores) / max(len(scores), 1) if order == "score" else 0, systems[row].casefold()

    rows = sorted(range(len(systems)), key=key)
    moved = {(rows.index(row), column): result for (row, column), result in grid.items()}
    return moved, [systems[row] for row in rows]


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """The scores of the systems (rows of the table) that have a result on a dataset, with the tests of all pairs."""

    rows: Sequence[int]
    scores: Floats
    clusters: Clusters | None
    pairs: Pairs

    def compare_to(self, row: int) -> Differences | None:
        """Return the differences from the system in a row of the table; None if it has no result."""
        if row not in self.rows:
            return None
        return compare_to(self.rows.index(row), self.scores, self.pairs, self.clusters)


def _test_column(
    grid: Mapping[tuple[int, int], Result],
    dataset: int,
    title: str,
    measure: str,
    statistics: Statistics,
    measures: int,
) -> ColumnTests:
    """Test all pairs of systems on a dataset by one of the `measures` of a family; raises `ReportError`."""
    rows = sorted(row for row, column in grid if column == dataset)
    some = [grid[row, dataset] for row in rows]
    if any(list(result.queries.ids) != list(some[0].queries.ids) for result in some):
        raise NotComparable(f"{title}: the results cover different queries; evaluate all systems on the same queries")
    scores = np.stack([result.of(measure) for result in some])
    if np.isnan(scores).all():
        raise ReportError(f"{title}: no query counts for {measure}, because none has gold; leave this dataset out")
    clusters = some[0].queries.cluster_numbers
    return ColumnTests(rows, scores, clusters, compare_pairs(scores, statistics, clusters, measures=measures))


def _build_column(
    tests: ColumnTests, systems: Sequence[str], title: str, measure: str, baseline: str, confidence: float, name: str
) -> list[PaperCell | None]:
    """Return the cells of the column called `name`."""
    counted = ~np.isnan(tests.scores).all(axis=0)
    own = None if tests.clusters is None else tests.clusters[counted]
    intervals = mean_interval(tests.scores[:, counted], confidence, own).tolist()
    means = np.nanmean(tests.scores[:, counted], axis=1)
    reference = systems.index(baseline) if baseline else tests.rows[int(means.argmax())]
    compared = tests.compare_to(reference)
    letters = tests.pairs.letters(range(len(tests.rows))) if len(tests.rows) > 1 else [""]
    cells: list[PaperCell | None] = [None] * len(systems)
    for place, row in enumerate(tests.rows):
        cells[row] = PaperCell(
            id=f"{name}{row + 1}",
            system=systems[row],
            dataset=title,
            measure=measure,
            mean=float(means[place]),
            low=intervals[place][0],
            high=intervals[place][1],
            queries=int(np.count_nonzero(~np.isnan(tests.scores[place]))),
            is_best=bool(means[place] >= means.max() - _EQUAL),
            reference="" if compared is None else systems[reference],
            difference=Difference() if compared is None or row == reference else compared.describe(place),
            letters=letters[place],
        )
    return cells


def mark(difference: Difference) -> str:
    """Return the mark of a significant difference, "" for any other."""
    if not difference.significant:
        return ""
    return BETTER if difference.mean > 0 else WORSE


def _compare_across(
    tests: Sequence[ColumnTests],
    systems: Sequence[str],
    measure: str,
    baseline: str,
    statistics: Statistics,
    measures: int,
) -> list[AcrossRow]:
    """Return the systems that have results on all datasets, in the order of the table; [] if there are too few."""
    rows = [row for row in range(len(systems)) if all(row in column.rows for column in tests)]
    if len(tests) < 2 or len(rows) < 2 or (baseline and systems.index(baseline) not in rows):
        return []
    scores = [column.scores[[column.rows.index(row) for row in rows]] for column in tests]
    means = np.stack([np.nanmean(part, axis=1) for part in scores], axis=1)
    ranks = compute_mean_ranks(means)
    reference = rows.index(systems.index(baseline)) if baseline else int(means.mean(axis=1).argmax())
    clusters = [column.clusters for column in tests]
    across = compare_across(reference, scores, statistics, clusters, named=bool(baseline), measures=measures)
    by_column = [(column, column.compare_to(rows[reference])) for column in tests]
    lines = []
    for i, row in enumerate(rows):
        marks = [mark(own.describe(column.rows.index(row))) for column, own in by_column if own is not None]
        is_reference = i == reference
        lines.append(
            AcrossRow(
                system=systems[row],
                measure=measure,
                reference=systems[rows[reference]],
                mean_rank=float(ranks[i]),
                same=Difference() if is_reference else across.same.describe(i),
                new=Difference(ties=len(tests)) if is_reference else across.describe_new(i),
                better=marks.count(BETTER),
                worse=marks.count(WORSE),
            )
        )
    return lines
