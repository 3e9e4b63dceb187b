"""The effect of changed data on a baseline as sentences, a table and JSON."""

from __future__ import annotations

from typing import Any

from runner.comparison.data_effect import DataEffect
from runner.comparison.report import tables
from runner.pages import numbers
from runner.pages.numbers import format_signed, p_value, score4
from runner.pages.tables import Column, Table

TITLE = "Effect of the data, and of code and settings"


def describe(effect: DataEffect) -> list[str]:
    """Return what changed in the data, what was done about it, and what that did to the baseline."""
    return [
        f"The data changed since the baseline was recorded: {'; '.join(effect.changes)}. The configuration of the "
        "baseline was evaluated again on the candidate's data, and the candidate is compared with that.",
        f"Effect of the data: {tables.verdicts(effect.comparison)[0]}",
    ]


def effect_table(effect: DataEffect) -> Table:
    """Return the means of the recorded and the re-evaluated baseline and of each candidate, and what lies between."""
    columns = [Column("measure")]
    columns += [Column("candidate")] if len(effect.labels) > 1 else []
    columns += [
        Column("recorded", score4, numeric=True),
        Column("data", format_signed, numeric=True),
        Column(
            numbers.interval_title(effect.comparison.statistics.confidence),
            numbers.difference_interval,
            numeric=True,
            spare=2,
        ),
        Column("p", p_value, numeric=True, spare=3),
        Column("re-evaluated", score4, numeric=True),
        Column("code and settings", format_signed, numeric=True),
        Column("candidate" if len(effect.labels) == 1 else "value", score4, numeric=True),
    ]
    rows: list[list[Any]] = []
    for measure in effect.measures:
        shares, own = effect.split(measure), effect.comparison.table[measure][1].difference
        before = [shares.recorded, shares.data, tables.interval_cell(own), own.p, shares.re_evaluated]
        for label, code, mean in zip(effect.labels, shares.code, shares.candidates, strict=True):
            rows.append([measure, *([label] if len(effect.labels) > 1 else []), *before, code, mean])
    return Table(columns, rows)


def convert_effect(effect: DataEffect | None) -> dict[str, Any] | None:
    """Return the effect of the data for JSON."""
    if effect is None:
        return None
    measures = {}
    for measure in effect.measures:
        shares = effect.split(measure)
        measures[measure] = {
            "recorded": shares.recorded,
            "re_evaluated": shares.re_evaluated,
            "data": shares.data,
            "test_of_data": effect.comparison.table[measure][1].to_dict(),
            "candidates": {
                label: {"mean": mean, "code_and_settings": code}
                for label, mean, code in zip(effect.labels, shares.candidates, shares.code, strict=True)
            },
        }
    return {
        "changes": list(effect.changes),
        "queries": len(effect.comparison.queries.ids),
        "notes": list(effect.comparison.notes),
        "measures": measures,
    }
