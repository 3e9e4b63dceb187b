"""How the losses by step of two results differ, as a table and as a sentence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runner.comparison.compare import Comparison
from runner.comparison.step_losses import StepChange, compare_steps
from runner.pages.numbers import number, p_value
from runner.pages.tables import Column, Table

NOTE = (
    "The gold documents that each step loses. A step is better for a query if it loses fewer of its gold documents; "
    "p is that of a sign test on these queries, corrected for all steps by Holm. Exploratory: no step was chosen "
    "beforehand."
)


def list_changes(comparison: Comparison, i: int) -> list[StepChange]:
    """Return the changes of the steps of a system from the first; empty if the losses of one are not known."""
    return compare_steps(comparison.results[0], comparison.results[i], comparison.cluster_numbers)


def steps_table(comparison: Comparison, i: int) -> Table:
    """Return the gold documents that each step loses before and after."""
    columns = [
        Column("step"),
        Column("lost before", number, numeric=True),
        Column("lost after", number, numeric=True),
        Column("better queries", number, numeric=True),
        Column("worse queries", number, numeric=True),
        Column("p (Holm)", p_value, numeric=True),
    ]
    rows = [[c.step, c.before, c.after, c.better, c.worse, c.p] for c in list_changes(comparison, i)]
    return Table(columns, rows if any(row[3] or row[4] for row in rows) else [])


def convert_steps(comparison: Comparison, i: int) -> list[dict[str, Any]]:
    """Return the changes for JSON."""
    return [asdict(change) for change in list_changes(comparison, i)]
