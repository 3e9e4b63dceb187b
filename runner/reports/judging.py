"""Judged pools as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from runner.analysis.judging import Standing
from runner.analysis.verdicts import GradeVerdict
from runner.reports.rendering.numbers import number, percent, score4
from runner.reports.rendering.tables import Column, Table

WORDS = {"clamped": "grades outside the scale", "cut": "texts cut"}
"""What figures of a pool are called, where their name does not say it."""


def standings_table(standings: Sequence[Standing], measure: str, depth: int) -> Table:
    """Return how results stand before and after, the best after first.

    Each time: with what is unjudged irrelevant, with it relevant, and how much of the first documents is judged.
    """
    columns = [Column("result")]
    for when, spare in (("before", 1), ("after", 0)):
        columns += [
            Column(f"{measure} {when}", score4, numeric=True, spare=0),
            Column("if unjudged are relevant", score4, numeric=True, spare=1 + spare),
            Column(f"judged@{depth}", percent, numeric=True, spare=spare),
        ]
    rows: list[list[Any]] = [
        [s.name, *(figure for b in (s.before, s.after) for figure in (b.irrelevant, b.relevant, b.judged))]
        for s in sorted(standings, key=lambda standing: -standing.after.irrelevant)
    ]
    return Table(columns, rows)


def pool_figures(verdicts: Sequence[GradeVerdict]) -> dict[str, float]:
    """Return how many pairs of a pool ended how, how many grades were clamped or of a cut text, and what they took."""
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    figures: dict[str, float] = {"pairs": len(verdicts), **{str(name): n for name, n in sorted(outcomes.items())}}
    names = ("clamped", "cut", "calls", "tokens_in", "tokens_out", "cost")
    return figures | {name: sum(getattr(verdict, name) for verdict in verdicts) for name in names}


def pool_table(verdicts: Sequence[GradeVerdict]) -> Table:
    """Return how many pairs of a pool ended how, and what they took."""
    rows = [[WORDS.get(name, name.replace("_", " ")), value] for name, value in pool_figures(verdicts).items()]
    return Table([Column("pool of unjudged pairs"), Column("", number, numeric=True)], rows)
