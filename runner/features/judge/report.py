"""Judged pools as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.judging import Standing
from runner.features.judge.people import JudgeReport
from runner.features.judge.prediction_powered import Corrected
from runner.pages.numbers import number, percent, score4
from runner.pages.tables import Column, Table

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


def judge_table(report: JudgeReport) -> Table:
    """Return how the judge's grades compare with people's."""

    def show(kappa: float | None) -> str:
        return "not defined: all grades are equal" if kappa is None else f"{kappa:.3f}"

    rows = [
        ["pairs graded by people", f"{report.graded:,} of {report.pairs:,}"],
        ["bias (judge minus people, in grades)", _interval(report.bias, "+.2f")],
        ["same grade", percent(report.agreement)],
        ["Cohen's kappa", show(report.kappa)],
        ["kappa with quadratic weights", show(report.weighted_kappa)],
    ]
    return Table([Column("judge compared with people"), Column("")], rows)


def confusion_table(report: JudgeReport) -> Table:
    """Return the estimated share of pairs with each grade of the judge and of people."""
    people = [Column(f"people {grade}", percent, numeric=True) for grade in range(len(report.confusion))]
    rows = [[f"judge {grade}", *shares] for grade, shares in enumerate(report.confusion)]
    return Table([Column("share of pairs"), *people], rows)


def correction_table(report: JudgeReport) -> Table:
    """Return measures with the judge's grades and corrected by people's, with 95 % intervals."""
    columns = [
        Column("result"), Column("measure"), Column("judge", score4, numeric=True),
        Column("corrected", numeric=True), Column("half width without the judge", score4, numeric=True, spare=2),
        Column("grades saved", number, numeric=True, spare=1),
    ]  # fmt: skip
    rows = [[f.name, f.measure, f.judge, _interval(f.corrected, ".4f"), f.alone, f.saved] for f in report.figures]
    return Table(columns, rows)


def _interval(estimate: Corrected, form: str) -> str:
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"
