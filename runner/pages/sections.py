"""The sections of a report: each is written once, in a list in the order of the report, for all of its formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.config.features import list_features, load_function
from runner.pages.explorer.figures import Plot
from runner.pages.tables import Table


@dataclass(frozen=True)
class ReportSection:
    """A table, tables by subtitle, or lines of text under a title and a note; a section without these is left out.

    `place` says where the page has it: `show(sections, place)` in the template; "" if the template itself shows it in
    another form. If the page draws the plot with the id `figure`, the section is shown there instead; a `plot` of its
    own is drawn above the body. The script of the page replaces a `fallback` by something interactive and hides it.
    `markdown` replaces the body in Markdown; "" leaves the section out. Markdown folds it if it is `folded`. Terminal
    and notebook show it if it is `printed`: as a "table", or as "errors", each message once with what it concerns.
    """

    title: str
    body: Table | Mapping[str, Table] | Sequence[str]
    place: str
    note: str = ""
    figure: str = ""
    fallback: bool = False
    markdown: str | None = None
    folded: bool = False
    printed: Literal["", "table", "errors"] = ""
    plot: Plot | None = None

    @property
    def tables(self) -> Mapping[str, Table]:
        """Return the tables that have rows, by subtitle: "" for the only one."""
        tables = {"": self.body} if isinstance(self.body, Table) else self.body
        return {key: table for key, table in tables.items() if table.rows} if isinstance(tables, Mapping) else {}

    @property
    def lines(self) -> Sequence[str]:
        """Return the lines of text."""
        return () if isinstance(self.body, (Table, Mapping)) else self.body

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show under the title."""
        return not (self.tables or self.lines or self.markdown)


def iter_added(report: Literal["evaluation", "sweep"], *data: object) -> Iterator[ReportSection]:
    """Yield the sections that features add to a report of `data`; one that fails says so, and the report is kept."""
    for name, feature in list_features().items():
        if report not in feature.sections:
            continue
        try:
            yield from load_function(feature.sections[report])(*data)
        except Exception as error:
            yield ReportSection(f"The section of {name} failed", [f"{type(error).__name__}: {error}"], "environment")
