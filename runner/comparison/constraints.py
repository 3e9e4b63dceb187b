"""Conditions on figures of results, such as `p99_ms_at_50 <= 100`, that the winner of a sweep must meet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from runner.comparison.criteria import find_objective
from runner.evaluation.result import Result

_FORM = re.compile(r"\s*([\w.@=<>-]+?)\s*(<=|>=)\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Constraint:
    """A limit of a figure: the mean of a measure, a cost, or a figure that the search or a feature adds."""

    figure: str
    is_upper: bool
    bound: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the constraint of a text; raises `ValueError`."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text}: should be a figure, <= or >=, and a number, such as p95_ms <= 100")
        return cls(match[1], match[2] == "<=", float(match[3]))

    def __str__(self) -> str:
        return f"{self.figure} {'<=' if self.is_upper else '>='} {self.bound:g}"

    def read(self, result: Result) -> float:
        """Return the figure of a result, NaN if it has none."""
        if self.figure in result.diagnostics:
            return float(result.diagnostics[self.figure])
        return find_objective(self.figure).value(result)

    def is_met(self, value: float) -> bool:
        """Return whether a value of the figure is within the limit; an unknown one is not."""
        return not math.isnan(value) and (value <= self.bound if self.is_upper else value >= self.bound)


@dataclass(frozen=True)
class ConstrainedFigure:
    """The figure of a constraint for the winner, where it was `selected` and where it is `reported`."""

    selected: float
    reported: float
    is_met: bool


def meets_all(result: Result, constraints: Sequence[Constraint]) -> bool:
    """Return whether a result is within all limits."""
    return all(constraint.is_met(constraint.read(result)) for constraint in constraints)


def compare_figures(
    constraints: Sequence[Constraint], selected: Result, reported: Result | None
) -> Mapping[str, ConstrainedFigure]:
    """Return the figures of the winner by constraint, and whether the reported ones meet it, too."""
    figures = {}
    for constraint in constraints:
        value = math.nan if reported is None else constraint.read(reported)
        figures[str(constraint)] = ConstrainedFigure(constraint.read(selected), value, constraint.is_met(value))
    return figures
