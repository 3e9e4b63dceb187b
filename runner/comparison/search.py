"""The record of a hyperparameter search: its trials, the importance of each setting, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from runner.comparison.comma_separated import format_csv
from runner.comparison.criteria import Criterion, find_objective

SEARCH = "search.json"
"""The file of a search among the artifacts of the parent run."""


@dataclass(frozen=True)
class SearchTrial:
    """A finished trial: the label of its combination, and its values (empty if it failed or a race dropped it)."""

    number: int
    label: str
    values: Sequence[float]
    dropped: bool = False


@dataclass(frozen=True)
class FrontPoint:
    """A combination on the Pareto front: its rank on the leaderboard and its values.

    The values are those on the split where it was `selected`, and those where it is `reported` (empty if it failed
    there).
    """

    rank: int
    label: str
    selected: Sequence[float]
    reported: Sequence[float]


@dataclass(frozen=True)
class Search:
    """A search: its trials in order, the importance of settings, and the Pareto front of several objectives.

    `importances` has, for each objective and each group of trials ("" for all), the share of the variance that each
    setting explains.
    """

    study: str
    sampler: str
    objectives: Sequence[Criterion]
    trials: Sequence[SearchTrial]
    importances: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    front: Sequence[FrontPoint] = ()
    selected_on: str = ""
    reported_on: str = ""

    @property
    def done(self) -> list[SearchTrial]:
        """Return the trials with values."""
        return [trial for trial in self.trials if trial.values]

    def list_improvements(self) -> list[tuple[int, float]]:
        """List the trials that beat all earlier ones in the first objective: their numbers and values."""
        better: list[tuple[int, float]] = []
        for trial in self.done:
            value = trial.values[0]
            if not better or (value > better[-1][1] if self.objectives[0].larger else value < better[-1][1]):
                better.append((trial.number, value))
        return better

    def iter_front_columns(self) -> Iterator[tuple[str, Criterion, list[float]]]:
        """Yield the title, objective and values of each column of the front, NaN for a combination that failed.

        If the front was selected on a different split from the reported one, each objective has two columns.
        """
        apart = self.selected_on != self.reported_on
        for i, objective in enumerate(self.objectives):
            on = f" on {self.selected_on}" if apart else ""
            yield f"{objective.name}{on}", objective, [point.selected[i] for point in self.front]
            if apart:
                reported = [point.reported[i] if point.reported else math.nan for point in self.front]
                yield f"{objective.name} on {self.reported_on}", objective, reported

    def front_csv(self) -> str:
        """Return the front as comma-separated values."""
        columns = {title: values for title, _, values in self.iter_front_columns()}
        rows = [
            {"#": point.rank, "combination": point.label} | {title: values[i] for title, values in columns.items()}
            for i, point in enumerate(self.front)
        ]
        return format_csv(["#", "combination", *columns], rows)

    def to_json(self) -> str:
        """Return the search as JSON, with the names of its objectives."""
        content = {**vars(self), "objectives": [objective.name for objective in self.objectives]}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def parse_search(text: str) -> Search:
    """Return the search that `to_json` wrote; raises `ValueError`."""
    content = orjson.loads(text)
    try:
        parsed = {
            "objectives": [find_objective(name) for name in content["objectives"]],
            "trials": [SearchTrial(**trial) for trial in content["trials"]],
            "front": [
                FrontPoint(**{**point, "reported": _restore_nan(point["reported"])}) for point in content["front"]
            ],
        }
        return Search(**{**content, **parsed})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a record of a search: {error}") from error


def _restore_nan(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]
