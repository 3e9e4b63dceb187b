"""What is said of a choice between combinations, and of a search for the best, as records, tables and plain sentences.

Made from figures alone. Knows nothing of how a table is drawn, nor how a search goes about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from runner.analysis.paired_tests import PAIRED_TESTS
from runner.metrics.statistics import Test
from runner.reports.rendering.numbers import format_signed, interval, milliseconds, number, p_value, percent, score4
from runner.reports.rendering.tables import Column, Table

KFOLD = "kfold"
"""What stands for a split where the choice is cross-validated."""

ON_REPORTED_DATA = "selected_on_reported_data"
"""The tag of a sweep's run that says whether its best was selected on the data that it is reported on."""


@dataclass(frozen=True)
class Figures:
    """A measure of the winner: where it was `selected` and where it is `reported`, with the interval of that."""

    selected: float
    reported: float
    interval: tuple[float, float]

    @property
    def difference(self) -> float:
        """Return the figure that it was selected by, less the one that is reported."""
        return self.selected - self.reported


@dataclass(frozen=True)
class DefaultComparison:
    """The winner against the default settings, where it is reported, by the primary measure.

    `difference` is the winner's mean less that of the default settings, with its interval; `p` is that of the paired
    `test` over the queries that count for both.
    """

    default: float
    difference: float
    interval: tuple[float, float]
    p: float
    queries: int
    test: Test

    def sentence(self) -> str:
        """Return in words by how much the winner differs from the default settings."""
        p = p_value(self.p) if self.p < 0.001 else f"= {p_value(self.p)}"
        gap = f"{format_signed(self.difference)} {interval(self.interval)}, p {p.replace('<', '< ')}"
        return f"Against the default settings ({score4(self.default)}): {gap} ({PAIRED_TESTS[self.test].label} test)."


@dataclass(frozen=True)
class FoldWinner:
    """What was chosen without a fold: its name, its mean where it was chosen, and on the queries of the fold."""

    name: str
    queries: int
    selected: float
    held_out: float


@dataclass(frozen=True)
class WinnerSelection:
    """The winner of a sweep: chosen by `primary` on a split (or by cross-validation), reported on another.

    `queries` enter the mean that is reported. `figures` are by measure, the primary one first; without any, the winner
    failed where it was to be reported. `folds` are those of a cross-validation. `default` compares the winner with the
    default settings, None where there are none or the winner was chosen on the data that it is reported on.
    """

    dataset: str
    on: str
    reported_on: str
    winner: str
    swept: Mapping[str, Any]
    primary: str
    queries: int
    figures: Mapping[str, Figures]
    folds: Sequence[FoldWinner] = ()
    default: DefaultComparison | None = None

    @property
    def is_on_reported_data(self) -> bool:
        """Tell whether the winner was chosen on the very data that it is reported on."""
        return self.on == self.reported_on

    @property
    def selected_title(self) -> str:
        """Return where the winner's score was the highest, as the title of a figure."""
        return "in-sample" if self.on == KFOLD else f"on {self.on}"

    @property
    def reported_title(self) -> str:
        """Return where the winner is reported, as the title of a figure."""
        return "held out" if self.on == KFOLD else f"on {self.reported_on}"

    def sentence(self) -> str:
        """Return in words what was chosen where, and what it is worth."""
        if self.primary not in self.figures:
            return f"Chosen on {self.on}: {self.winner}, which failed on {self.reported_on}."
        figures = self.figures[self.primary]
        reported = f"{self.primary} {score4(figures.reported)} {interval(figures.interval)}"
        if self.is_on_reported_data:
            return f"{self.winner} has {reported}. {on_reported_data(self.on)}"
        selected, difference = score4(figures.selected), format_signed(figures.difference)
        sentences = [
            f"Chosen on {self.on}: {self.winner}. It has {reported} on {self.reported_on} and {selected} on {self.on} "
            f"({difference})."
        ]
        if self.on == KFOLD:
            sentences = [
                f"Nested cross-validation over {self.queries:,} queries of {self.reported_on} "
                f"({len(self.folds)} folds): {reported} on held-out queries, {selected} in-sample "
                f"(selection bias {difference}).",
                f"The choice on all queries is {self.winner}.",
            ]
        return " ".join([*sentences, *([self.default.sentence()] if self.default else [])])

    def tags(self) -> dict[str, str]:
        """Return what the sweep's run is found by."""
        tags = {"selected_on": self.on, "reported_on": self.reported_on, "selected_by": self.primary}
        tags[ON_REPORTED_DATA] = str(self.is_on_reported_data).lower()
        if self.primary in self.figures:
            figures = self.figures[self.primary]
            tags |= {"selected": score4(figures.selected), "reported": score4(figures.reported)}
            if not self.is_on_reported_data:
                tags["selection_bias" if self.on == KFOLD else "split_difference"] = format_signed(figures.difference)
        if self.default is not None:
            tags |= {
                "default": score4(self.default.default),
                "default_difference": format_signed(self.default.difference),
            }
            tags["default_p"] = f"{self.default.p:.4f}"
        return tags

    def to_json(self) -> str:
        """Return the whole record."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str).decode() + "\n"


@dataclass(frozen=True)
class Objective:
    """What a search is after: a measure, or a cost; whether more of it is better."""

    name: str
    larger: bool


@dataclass(frozen=True)
class SearchTrial:
    """A trial that is over: the combination that it asked for, its label, and its values, none if it failed."""

    number: int
    label: str
    values: Sequence[float]


@dataclass(frozen=True)
class FrontPoint:
    """A combination on the Pareto front: its values where it was selected, and where it is reported (none: it failed).

    `rank` is that on the leaderboard.
    """

    rank: int
    label: str
    selected: Sequence[float]
    reported: Sequence[float]


@dataclass(frozen=True)
class Search:
    """How a search went: its trials in order, how much each setting mattered, and the front of several objectives.

    `importances` are, for each objective and each group of trials ("" for all), the share of its variance that each
    setting explains.
    """

    study: str
    sampler: str
    objectives: Sequence[Objective]
    trials: Sequence[SearchTrial]
    importances: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    front: Sequence[FrontPoint] = ()
    selected_on: str = ""
    reported_on: str = ""

    @property
    def done(self) -> list[SearchTrial]:
        """Return the trials that did not fail."""
        return [trial for trial in self.trials if trial.values]

    def sentence(self) -> str:
        """Return in words how it went."""
        failed, when = len(self.trials) - len(self.done), self.best_so_far()
        trials, combinations = len(self.trials), len({trial.label for trial in self.trials})
        told = f"{trials:,} trial{'s' if trials != 1 else ''} ({self.sampler}) asked for {combinations:,} combination"
        found = f"; the best {self.objectives[0].name} came with trial {when[-1][0] + 1:,}" if when else ""
        told += "s" if combinations != 1 else ""
        return f"{told}{f', {failed:,} failed' if failed else ''}{found}."

    def best_so_far(self) -> list[tuple[int, float]]:
        """Return the trials that were better in the first objective than all before, by number, and its value."""
        found: list[tuple[int, float]] = []
        for trial in self.done:
            value = trial.values[0]
            if not found or (value > found[-1][1] if self.objectives[0].larger else value < found[-1][1]):
                found.append((trial.number, value))
        return found


def on_reported_data(split: str) -> str:
    """Return the warning that the best of several was chosen on the data that it is reported on."""
    return (
        f"The best was selected on the data it is reported on ({split}), so its score is too high on average; "
        f"sweep.select_on={KFOLD}, or another split, reports it on queries that had no say in the choice."
    )


def selection_table(selection: WinnerSelection) -> Table:
    """Return the winner's figures where it is reported and where it was chosen."""
    columns = [
        Column("measure"),
        Column(selection.reported_title, score4, numeric=True),
        Column("its interval", interval, numeric=True),
    ]
    if not selection.is_on_reported_data:
        difference = "selection bias" if selection.on == KFOLD else "difference"
        columns += [
            Column(selection.selected_title, score4, numeric=True),
            Column(difference, format_signed, numeric=True),
        ]
    rows = [[m, f.reported, f.interval, f.selected, f.difference][: len(columns)] for m, f in selection.figures.items()]
    return Table(columns, rows)


def folds_table(selection: WinnerSelection) -> Table:
    """Return what was chosen without each fold."""
    columns = [
        Column("fold", number, numeric=True),
        Column("chosen without it", least=28),
        Column("queries", number, numeric=True),
        Column("on the others", score4, numeric=True),
        Column("on the fold", score4, numeric=True),
    ]
    return Table(columns, [[i + 1, f.name, f.queries, f.selected, f.held_out] for i, f in enumerate(selection.folds)])


def importances_table(search: Search) -> Table:
    """Return how much each setting mattered, what mattered most first."""
    several = len(search.objectives) > 1
    rows = [
        [objective, group or "all", setting, share]
        for objective, groups in search.importances.items()
        for group, shares in groups.items()
        for setting, share in sorted(shares.items(), key=lambda each: (-each[1], each[0]))
    ]
    columns = [Column("objective"), Column("among", least=20), Column("setting", least=20)]
    columns.append(Column("share of the variance", percent, numeric=True))
    table = Table(columns, rows)
    if all(set(groups) == {""} for groups in search.importances.values()):
        table = table.without(columns[1])
    return table if several else table.without(columns[0])


def front_table(search: Search) -> Table:
    """Return the Pareto front; empty unless there are several objectives."""
    columns = [Column("#", number, numeric=True), Column("combination", least=28)]
    rows: list[list[Any]] = [[point.rank, point.label] for point in search.front]
    apart = search.selected_on != search.reported_on
    for i, objective in enumerate(search.objectives):
        show = score4 if objective.larger else milliseconds if objective.name.endswith("_ms") else number
        on = f" on {search.selected_on}" if apart else ""
        columns.append(Column(f"{objective.name}{on}", show, numeric=True))
        for row, point in zip(rows, search.front, strict=True):
            row.append(point.selected[i])
        if apart:
            columns.append(Column(f"{objective.name} on {search.reported_on}", show, numeric=True))
            for row, point in zip(rows, search.front, strict=True):
                row.append(point.reported[i] if point.reported else math.nan)
    return Table(columns, rows)
