"""The winner of a sweep: where it was selected, where it is reported, and how it compares with the default settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from runner.comparison.constraints import ConstrainedFigure
from runner.statistics.comparison import Difference
from runner.statistics.settings import Statistics

KFOLD = "kfold"
"""Stands in place of a split if the winner is selected by cross-validation."""

ON_REPORTED_DATA = "selected_on_reported_data"
"""The tag of a sweep's run that says whether its best combination was selected on the reported data."""


@dataclass(frozen=True)
class Figures:
    """A mean of the winner where it was `selected` and where it is `reported`, with the interval of the latter."""

    selected: float
    reported: float
    interval: tuple[float, float]

    @property
    def difference(self) -> float:
        """Return the selected mean minus the reported one."""
        return self.selected - self.reported


@dataclass(frozen=True)
class DefaultComparison:
    """The winner compared with the default settings, on the reported data, by the primary measure.

    `difference` is that of the winner from the `default` settings, without a correction: `p` is that of a paired test,
    or, after cross-validation, that of sign flips which repeat the selection.
    """

    default: float
    difference: Difference
    statistics: Statistics


@dataclass(frozen=True)
class FoldWinner:
    """The winner selected without a fold: its mean on the other folds, and its mean on the fold."""

    name: str
    queries: int
    selected: float
    held_out: float


@dataclass(frozen=True)
class WinnerSelection:
    """The winner of a sweep: selected by `primary` on a split (or by cross-validation), reported on another.

    `queries` is the number of queries behind the reported mean. `figures` are by measure, the primary one first; empty
    if the winner failed on the reported data. `constraints` are the figures of the winner by constraint. `folds`
    are those of a cross-validation. `default` is None without default settings, or if the winner was selected on the
    reported data.
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
    constraints: Mapping[str, ConstrainedFigure] = field(default_factory=dict)

    @property
    def is_on_reported_data(self) -> bool:
        """Return whether the winner was selected on the data that it is reported on."""
        return self.on == self.reported_on

    @property
    def is_unanimous(self) -> bool:
        """Return whether all folds of a cross-validation chose the winner, so that no selection bias can be seen."""
        return bool(self.folds) and all(fold.name == self.winner for fold in self.folds)

    @property
    def split(self) -> str:
        """Return the split that candidates were evaluated on."""
        return self.reported_on if self.on == KFOLD else self.on

    def to_json(self) -> str:
        """Return the selection as JSON."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str).decode() + "\n"


def parse_selection(text: str) -> WinnerSelection:
    """Return the selection that `to_json` wrote; raises `ValueError`."""
    content = orjson.loads(text)
    try:
        default = content["default"]
        parsed = {
            "figures": {measure: Figures(**_restore_nan(of)) for measure, of in content["figures"].items()},
            "folds": [FoldWinner(**_restore_nan(fold)) for fold in content["folds"]],
            "constraints": {
                name: ConstrainedFigure(**_restore_nan(of)) for name, of in content.get("constraints", {}).items()
            },
            "default": None if default is None else _parse_default(default),
        }
        return WinnerSelection(**{**content, **parsed})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record of a selection: {error}") from error


def _parse_default(content: Mapping[str, Any]) -> DefaultComparison:
    return DefaultComparison(
        default=_restore_nan(content)["default"],
        difference=Difference(**_restore_nan(content["difference"])),
        statistics=Statistics(**content["statistics"]),
    )


def _restore_nan(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with NaN for null, and intervals as pairs."""

    def restore(value: Any) -> Any:  # noqa: ANN401 (a field of any type)
        if isinstance(value, list):
            return tuple(map(restore, value))
        return math.nan if value is None else value

    return {name: restore(value) for name, value in fields.items()}
