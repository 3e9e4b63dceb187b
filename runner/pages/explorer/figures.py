"""Plots of a page: a specification under a title, with a sentence on what it shows, and maybe its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.pages.tables import Table


@dataclass(frozen=True)
class Plot:
    """A plot; `choices` are the ids of the columns that a reader can choose for each `$` name of the specification."""

    id: str
    title: str
    text: str
    spec: Mapping[str, Any]
    table: Table | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wide: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the plot for JSON, without its table, which stands in the page."""
        return {name: value for name, value in vars(self).items() if name not in ("table", "wide")}
