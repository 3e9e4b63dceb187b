"""The table of a paper for the terminal."""

from __future__ import annotations

from functools import partial

from runner.features.table.paper_table import PaperCell, PaperTable
from runner.pages.numbers import DASH, format_signed, interval, p_value, score
from runner.pages.tables import Column, Table


def systems_table(table: PaperTable, digits: int = 3) -> Table:
    """Return the means with their marks, a row per system; the best of each column has an asterisk."""
    several, has_letters = len(table.measures) > 1, table.marks == "letters"
    show = partial(_format_cell, digits=digits, has_letters=has_letters)
    columns = [
        Column(
            f"{table.datasets[dataset]} {measure}" if several else table.datasets[dataset],
            show,
            numeric=not has_letters,  # means of equal length stay aligned before letters of any
            least=max(map(len, [table.datasets[dataset], measure, *(show(row[position]) for row in table.cells)])),
        )
        for position, (dataset, measure) in enumerate(table.columns)
    ]
    rows = [[system, *cells] for system, cells in zip(table.systems, table.cells, strict=True)]
    return Table([Column("system", least=12), *columns], rows)


def _format_cell(cell: PaperCell | None, digits: int, has_letters: bool) -> str:
    """Return a mean with its sign or its letters."""
    if cell is None:
        return DASH
    mean = score(cell.mean, digits)
    if has_letters:
        return f"{mean}{'*' if cell.is_best else ' '} {cell.letters}".rstrip()
    return f"{mean}{'*' if cell.is_best else ''}{cell.mark}"


def across_table(table: PaperTable) -> Table:
    """Return the comparison across datasets, a row per system and measure; empty without such a comparison."""
    columns = [
        Column("system", least=12),
        Column("measure"),
        Column("mean rank", lambda rank: f"{rank:.2f}", numeric=True),
        Column("difference", format_signed, numeric=True),
        Column("same datasets", interval, numeric=True, spare=1),
        Column("p", p_value, numeric=True),
        Column("new datasets", interval, numeric=True, spare=1),
        Column("p (new)", p_value, numeric=True),
        Column("won, tied, lost"),
        Column("sig. better", numeric=True, spare=2),
        Column("sig. worse", numeric=True, spare=2),
    ]
    rows = [
        [
            row.system, row.measure, row.mean_rank, row.same.mean, (row.same.low, row.same.high), row.same.corrected,
            (row.new.low, row.new.high), row.new.corrected,
            *(
                [DASH] * 3 if row.system == row.reference
                else [f"{row.new.wins}, {row.new.ties}, {row.new.losses}", str(row.better), str(row.worse)]
            ),
        ]
        for row in table.across
    ]  # fmt: skip
    return Table(columns, rows)
