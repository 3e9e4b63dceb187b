"""What is said of results whose unjudged documents a language model graded, as tables of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from runner.analysis.judging import Standing
from runner.analysis.verdicts import Verdict
from runner.reports.rendering.numbers import number, percent, score4
from runner.reports.rendering.tables import Column, Table


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


def pool_table(said: Sequence[Verdict]) -> Table:
    """Return how many pairs of a pool ended how, and what they took."""
    outcomes = Counter(verdict.outcome for verdict in said)
    rows: list[list[Any]] = [["pairs", len(said)], *([name, count] for name, count in sorted(outcomes.items()))]
    rows += [[name.replace("_", " "), sum(getattr(v, name) for v in said)] for name in ("calls", "tokens_in")]
    rows += [["tokens out", sum(v.tokens_out for v in said)], ["cost", sum(v.cost for v in said)]]
    return Table([Column("unjudged pairs in the pool"), Column("", number, numeric=True)], rows)
