"""Tables of values, for the console, Markdown and HTML: columns with a format, and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.pages.numbers import number


@dataclass(frozen=True)
class Column:
    """A column: its title, how a value becomes text, and whether it is a number, which stands to the right.

    Where there is little room, the columns with the highest `spare` go first, those with 0 stay, and texts are wrapped
    at no less than `least` characters (None: they are not wrapped).
    """

    title: str
    show: Callable[[Any], str] = str
    numeric: bool = False
    spare: int = 0
    least: int | None = None


@dataclass(frozen=True)
class Table:
    """Rows of values under columns."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def texts(self) -> list[list[str]]:
        """Return every value as it is shown."""
        return [[c.show(value) for c, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def without(self, column: Column) -> Table:
        """Return the table without a column."""
        kept = [i for i, other in enumerate(self.columns) if other is not column]
        return Table([self.columns[i] for i in kept], [[row[i] for i in kept] for row in self.rows])


def build_error_table(what: str, groups: Mapping[str, Sequence[str]]) -> Table:
    """Return errors with those that have them, the most frequent first."""

    def some(names: Sequence[str]) -> str:
        return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")

    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    columns = [Column("error"), Column(what, number, numeric=True), Column("which", some)]
    return Table(columns, [[error, len(names), names] for error, names in ordered])
