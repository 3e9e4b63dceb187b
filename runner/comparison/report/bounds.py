"""What judgments of unjudged hits could make of a difference from what production served, by slice, as a table."""

from __future__ import annotations

from runner.comparison.compare import Comparison
from runner.comparison.unjudged import bound_slices
from runner.pages.numbers import format_signed, number, percent, score4
from runner.pages.tables import Column, Table

TITLE = "Unjudged hits, by slice"
NOTE = (
    "Lowest and highest are the mean differences if unjudged hits were all judged, with the grades that decide most "
    "against the system or for it. Where they have the same sign, no judgment can change which is better."
)


def bounds_table(comparison: Comparison, system: int) -> Table:
    """Return the bounds of the primary measure's difference by slice; without rows if there are none."""
    first, other = comparison.labels[0], comparison.labels[system]
    columns = [
        Column("slice", least=8), Column("queries", number, numeric=True, spare=1),
        Column(first, score4, numeric=True, spare=3), Column(other, score4, numeric=True, spare=3),
        Column("difference", format_signed, numeric=True), Column("lowest", format_signed, numeric=True),
        Column("highest", format_signed, numeric=True), Column("unjudged", percent, numeric=True, spare=2),
    ]  # fmt: skip
    rows = [
        [
            f"{own.field} {own.value}".strip(), own.queries, own.before, own.after, own.after - own.before, own.low,
            own.high, own.unjudged,
        ]
        for own in bound_slices(comparison, system)
    ]  # fmt: skip
    return Table(columns, rows)
