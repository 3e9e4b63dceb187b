"""The grades of a language model as tables, and what is missing as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.evaluation.grades import Grades
from runner.evaluation.result import Result, ResultError
from runner.pages.numbers import gist, number, score
from runner.pages.tables import Column, Table


def grade_table(result: Result) -> Table:
    """Return the figures of the grades of a result."""
    figures = grades_of(result).figures()
    means = {
        "grade (1 to 10)": "grade/mean",
        "total score": "grade/total_score",
        **{f"Hit@{name.rpartition('_')[2]}": name for name in figures if name.startswith("hit_at_")},
        "MRR of the needle": "grade/mrr",
        "spread of repeated grades": "grade/spread",
        "agreement: weighted kappa": "grade/agreement/kappa",
        "agreement: Spearman": "grade/agreement/spearman",
        "agreement: mean error": "grade/agreement/mean_error",
    }
    rows: list[list[Any]] = [[label, figures[name]] for label, name in means.items() if name in figures]
    return Table([Column("grade"), Column("mean", score, numeric=True)], rows)


def verdict_table(result: Result) -> Table:
    """Return the number of verdicts by outcome, and their tokens and cost."""
    figures = grades_of(result).figures()
    names = ["parse_failures", "errors", "unasked", "rescued", "clamped", "cut", "echoes", "cached", "calls"]
    names += ["tokens_in", "tokens_out"]
    rows: list[list[Any]] = [[name.replace("_", " "), int(figures[f"grade/{name}"] or 0)] for name in names]
    if figures["grade/cost"]:
        rows.append(["cost", figures["grade/cost"]])
    return Table([Column("verdicts"), Column("", number, numeric=True)], rows)


def lowest_table(result: Result, limit: int) -> Table:
    """Return the queries with the lowest total scores and the reasons; those without a grade are last."""
    grades, queries = grades_of(result), result.queries
    order = sorted(range(len(queries.ids)), key=lambda q: (grades.totals[q] != grades.totals[q], grades.totals[q]))
    columns = [
        Column("query", gist, least=20),
        Column("grade", score, numeric=True),
        Column("rank", number, numeric=True),
        Column("total", score, numeric=True),
        Column("judge's reason", gist, spare=1, least=20),
    ]
    rows = [[queries.texts[q], *_of(grades, q), grades.verdicts[q][0].reasoning] for q in order[:limit]]
    return Table(columns, rows)


def missing_line(result: Result) -> str:
    """Return what a result lacks that another run may add, and how; "" if nothing."""
    grades = result.grades
    if grades is None or not grades.unasked:
        return f"{result.name}: {result.unfinished}; run the same command to try again" if result.unfinished else ""
    why = next(verdict.reasoning for row in grades.verdicts for verdict in row if verdict.outcome == "unasked")
    total = sum(len(row) for row in grades.verdicts)
    return f"{grades.unasked:,} of {total:,} verdicts are missing ({why}); run the same command to request them"


def grades_of(result: Result) -> Grades:
    """Return the grades of a result; raises `ResultError` where it has none."""
    if result.grades is None:
        raise ResultError(f"{result.name} has no grades; to grade it, choose a language model, for example llm=openai")
    return result.grades


def _of(grades: Grades, query: int) -> Sequence[float | None]:
    rank = float(grades.ranks[query])
    return float(grades.values[query]), rank if rank == rank and rank <= grades.k else None, float(grades.totals[query])
