"""The insights of an evaluation as tables and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runner.comparison.insights import Insights
from runner.evaluation.failure_summary import summarize_failures
from runner.evaluation.failures import QueryFailure
from runner.evaluation.result import Result
from runner.pages.numbers import gist, number, p_value, percent, score
from runner.pages.tables import Column, Table
from runner.statistics.prediction import PREDICTORS
from runner.statistics.thresholds import ThresholdOutcome, ThresholdSettings


def classes_table(insight: Insights) -> Table:
    """Return the missed queries in each class, what it means, what to try first, and what the rankings show of that."""
    columns = [
        Column("class", least=12),
        Column("queries", number, numeric=True),
        Column("share of missed", percent, numeric=True, spare=3),
        Column("meaning", least=24, spare=2),
        Column("try first", least=32),
        Column("in these rankings", least=24, spare=1),
    ]
    n = len(insight.failures)
    rows = [
        [of.name, of.failures, of.failures / n, of.advice.meaning, of.first_step, of.proof]
        for of in summarize_failures(insight.failures, insight.cutoff, insight.depth)
    ]
    return Table(columns, rows)


def failures_note(insight: Insights) -> str:
    """Return how many queries are missed, and what their classes are based on."""
    n = len(insight.failures)
    queries = f"{n:,} queries have" if n != 1 else "One query has"
    text = f"{queries} no gold in the first {insight.cutoff}; a query may belong to several classes."
    if insight.by_text and not insight.by_meaning:
        return f"{text} Words are compared, not meaning: the evaluation of a single combination compares both."
    if insight.by_text:
        return f"{text} Meaning is compared by latent semantic analysis, unless the corpus is too large."
    return (
        f"{text} The texts were not available, so a vocabulary mismatch cannot be detected, a specificity gap is "
        "detected only from scores, and a distractor is a document judged irrelevant."
    )


def failures_table(result: Result, insight: Insights, limit: int) -> Table:
    """Return the missed queries with the evidence of their classes, those without retrieved gold first.

    Empty columns are left out.
    """
    q = result.queries
    columns = [
        Column("query", least=12),
        Column("text", gist, least=36),
        Column("classes", ", ".join, least=24),
        Column("gold", _format_gold, least=12),
        Column("LSA rank", number, numeric=True),
        Column("document above", least=12),
        Column("lead", number, numeric=True),
        Column("overlap", percent, numeric=True),
        Column("overlap above", percent, numeric=True),
        Column("IDF", score, numeric=True),
        Column("spread", score, numeric=True),
        Column("unjudged", number, numeric=True),
        Column("similar to gold", least=12),
    ]
    ordered = sorted(insight.failures, key=lambda f: (-(f.gold_rank or np.inf), q.ids[f.query]))
    rows = [
        [
            q.ids[f.query],
            q.texts[f.query],
            f.labels,
            (f.gold, f.gold_rank, f.absent),
            f.semantic_rank,
            _beaten_by(f),
            f.lead,
            f.overlap,
            f.rival_overlap,
            f.idf,
            f.spread,
            f.unjudged,
            f"{f.lookalike} ({score(f.likeness, 2)})" if f.lookalike else "",
        ]
        for f in ordered[:limit]
    ]
    table = Table(columns, rows)
    for column, values in zip(columns, zip(*rows, strict=True), strict=False):
        if all(value in (None, "") for value in values):
            table = table.without(column)
    return table


EVIDENCE = {
    "LSA rank": "the rank of the first gold by latent semantic analysis",
    "lead": "the score difference to the document above the gold",
    "overlap": "the share of the query's words, weighted by IDF, in the gold",
    "overlap above": "the same for the document above the gold",
    "IDF": "the mean over the query's words, 1 if each occurs in one document",
    "spread": "the fall of the scores to the cutoff, relative to the median query",
    "unjudged": "the number of unjudged documents above the gold",
    "similar to gold": "the unjudged document most similar to the gold, with the LSA cosine",
}
"""The columns of evidence and their meaning."""


def evidence_note(table: Table) -> str:
    """Return the meaning of the evidence columns in a table of missed queries."""
    notes = [f"{name}: {what}" for name, what in EVIDENCE.items() if name in {column.title for column in table.columns}]
    return f"{'; '.join(notes)}." if notes else ""


def predictors_table(insight: Insights) -> Table:
    """Return the correlation of each predictor with the primary measure, the largest first; empty without any."""
    columns = [
        Column("predictor"),
        Column("Kendall", score, numeric=True),
        Column("p", p_value, numeric=True),
        Column("Spearman", score, numeric=True),
        Column("Pearson", score, numeric=True),
        Column("queries", number, numeric=True),
        Column("description", least=36),
    ]
    defined = {name: c for name, c in insight.predictors.items() if c.kendall == c.kendall}
    ordered = sorted(defined, key=lambda name: -defined[name].kendall)
    rows = [
        [name, c.kendall, c.p_value, c.spearman, c.pearson, c.queries, PREDICTORS[name].description]
        for name in ordered
        for c in [defined[name]]
    ]
    return Table(columns, rows)


def predictors_note(result: Result) -> str:
    """Return what the table of predictors shows."""
    return (
        f"Correlation of each predictor with {result.primary}; predictors are computed from the scores of a "
        "ranking. p is that of Kendall's tau, corrected for the number of predictors (Holm)."
    )


def thresholds_table(insight: Insights) -> Table:
    """Return the effect of the threshold selected for each target, in fold and out of fold, and of none."""
    if not insight.tunings:
        return Table([], [])
    columns = [
        Column("selected for", least=12),
        Column("measured", least=12),
        Column("threshold", _thresholds, numeric=True),
        Column("F1", score, numeric=True),
        Column("TN rate", percent, numeric=True),
        Column(f"R@{insight.tunings[0].settings.k}", score, numeric=True),
        Column("recall lost", score, numeric=True),
        Column("answerable rejected", percent, numeric=True),
    ]
    rows: list[list[Any]] = [["", "unthresholded", [], *_figures(insight.tunings[0].untouched)]]
    for tuning in insight.tunings:
        rows += [
            [target(tuning.settings), "in fold", [tuning.threshold], *_figures(tuning.in_fold)],
            ["", "out of fold", tuning.fold_thresholds, *_figures(tuning.out_of_fold)],
            ["", "difference", [], *_figures(tuning.difference)],
        ]
    return Table(columns, rows)


def target(settings: ThresholdSettings) -> str:
    """Return the target of a threshold in words."""
    return (
        "largest F1"
        if settings.target == "f1"
        else f"recall cost \N{LESS-THAN OR EQUAL TO} {settings.max_recall_lost:g}"
    )


def thresholds_note(insight: Insights) -> str:
    """Return what the table of thresholds shows, or why there is none; "" without no-result queries."""
    if not insight.tunings:
        return insight.untunable
    folds = len(insight.tunings[0].fold_thresholds)
    return (
        "F1 measures whether exactly the queries with an answer are answered. In fold: measured on the queries "
        f"that the threshold was selected on. Out of fold: measured on each of {folds} folds with a threshold "
        "selected on the others. Expect the out-of-fold figures for new queries."
    )


def _figures(outcome: ThresholdOutcome) -> list[float]:
    return [outcome.f1, outcome.tn_rate, outcome.recall, outcome.recall_lost, outcome.rejected]


def _thresholds(values: Sequence[float | None]) -> str:
    """Return a threshold, or the lowest and the highest of several, as text."""
    known = sorted(-np.inf if value is None else value for value in values)
    shown = ["none" if value == -np.inf else f"{value:.4g}" for value in known]
    return " to ".join(dict.fromkeys([*shown[:1], *shown[-1:]]))


def _beaten_by(failure: QueryFailure) -> str:
    """Return the document ranked above the gold, and whether it was judged."""
    return f"{failure.rival or ''}{'' if failure.rival_grade is None else ' (judged irrelevant)'}"


def _format_gold(gold: tuple[str, int | None, Sequence[str]]) -> str:
    """Return a gold document with its rank."""
    name, rank, absent = gold
    return f"{name} at {rank}" if rank else f"{name} (not in the corpus)" if name in absent else f"{name} (not found)"
