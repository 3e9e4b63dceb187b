"""Why queries fail, which ones could have been foretold, and which score is too low to be an answer.

Tables of values and plain sentences, for Markdown and HTML alike. Knows nothing of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runner.analysis.failures import REMEDIES, FailureSettings, JudgedRun, Lexicon, QueryFailure, explain_failures
from runner.analysis.prediction import PREDICTORS, Correlation, correlations, predict
from runner.analysis.thresholds import ThresholdOutcome, ThresholdSettings, Tuning, Untunable, tune
from runner.metrics.formulas import is_of_whole_ranking
from runner.reports.rendering.numbers import gist, number, p_value, percent, score
from runner.reports.rendering.tables import Column, Table
from runner.result import Result


@dataclass(frozen=True)
class Insights:
    """What the rankings of a result tell beyond its measures; all is empty for a result without them.

    `failures` are the queries without gold in the first `cutoff` places, classed with the help of the texts if
    `by_text`. `predictors` are how well each one foretells the primary measure. `tunings` are the thresholds chosen by
    each target, and `untunable` says why there are none, where there are no-result queries.
    """

    cutoff: int = 0
    by_text: bool = False
    failures: Sequence[QueryFailure] = ()
    predictors: Mapping[str, Correlation] = field(default_factory=dict)
    tunings: Sequence[Tuning] = ()
    untunable: str = ""


def insights(result: Result, lexicon: Lexicon | None = None) -> Insights:
    """Read the insights off a result; `lexicon` is that of its corpus, where the texts are at hand."""
    if result.hits is None:
        return Insights()
    hits, queries, truth = result.hits, result.queries, result.of(result.primary)
    cutoff = _cutoff(result.primary)
    searched = result.dataset.chunks or result.dataset.documents
    known = set(hits.judged) - hits.unknown if len(hits.documents) - len(hits.unknown) == searched else None
    run = JudgedRun(queries.texts, hits.rankings, hits.grades, hits.judged, queries.expected, ~np.isnan(truth), known)
    lengths = [len(text.split()) for text in queries.texts]
    tunings, untunable = _tunings(result)
    return Insights(
        cutoff=cutoff,
        by_text=lexicon is not None,
        failures=explain_failures(run, lexicon, settings=FailureSettings(cutoff=cutoff)),
        predictors=correlations(predict(hits.rankings, lengths), truth, queries.cluster_numbers),
        tunings=tunings,
        untunable=untunable,
    )


def classes_table(insight: Insights) -> Table:
    """Return how many of the missed queries are of which class, and what may help; empty if none is missed."""
    columns = [Column("why"), Column("queries", number, numeric=True), Column("of them", percent, numeric=True)]
    columns.append(Column("what may help", least=24))
    n = len(insight.failures)
    counts = {name: sum(name in failure.classes for failure in insight.failures) for name in REMEDIES}
    rows: list[list[Any]] = [[name, c, c / n, REMEDIES[name]] for name, c in counts.items() if c]
    untold = sum(not failure.classes for failure in insight.failures)
    return Table(columns, rows + ([["none of these", untold, untold / n, ""]] if untold else []))


def failures_note(insight: Insights) -> str:
    """Return in words which queries are missed, and what the classes could not go by."""
    n = len(insight.failures)
    queries = f"{n:,} queries have" if n != 1 else "One query has"
    text = f"{queries} no gold in the first {insight.cutoff}; one may be of several classes."
    if insight.by_text:
        return f"{text} What is meant is told by latent semantic analysis, in a corpus that is not too large for it."
    return (
        f"{text} The texts were not at hand: a vocabulary mismatch can't be told, a specificity gap rests on the "
        "scores alone, and a distractor is a document judged irrelevant."
    )


def failures_table(result: Result, insight: Insights, limit: int) -> Table:
    """Return the missed queries with the evidence of their classes, those without any gold found first.

    What is told of none of them has no column.
    """
    q = result.queries
    columns = [
        Column("query", least=12),
        Column("text", gist, least=36),
        Column("why", ", ".join, least=24),
        Column("gold", _format_gold, least=12),
        Column("by LSA at", number, numeric=True),
        Column("beaten by", least=12),
        Column("its lead", number, numeric=True),
        Column("overlap", percent, numeric=True),
        Column("its overlap", percent, numeric=True),
        Column("IDF", score, numeric=True),
        Column("spread", score, numeric=True),
        Column("unjudged", number, numeric=True),
        Column("like gold", least=12),
    ]
    ordered = sorted(insight.failures, key=lambda f: (-(f.gold_rank or np.inf), q.ids[f.query]))
    rows = [
        [
            q.ids[f.query],
            q.texts[f.query],
            f.classes,
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
    "by LSA at": "where latent semantic analysis has the first gold",
    "its lead": "how much more the document that beat the gold scores",
    "overlap": "the share of the query's words, each by its IDF, that the gold has",
    "its overlap": "that of the document that beat it",
    "IDF": "the mean of the query's words, 1 where each is in one document",
    "spread": "how far the scores fall to the cutoff, 1 as in the median query",
    "unjudged": "how many documents above the gold nobody judged",
    "like gold": "the one of these that is most like it, with the cosine of their LSA",
}
"""The columns of evidence, and what each is in a few words."""


def evidence_note(table: Table) -> str:
    """Return what the evidence is that a table of missed queries has."""
    notes = [f"{name}: {what}" for name, what in EVIDENCE.items() if name in {column.title for column in table.columns}]
    return f"{'; '.join(notes)}." if notes else ""


def predictors_table(insight: Insights) -> Table:
    """Return how well each predictor foretells the primary measure, the best first; empty if none can be told."""
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
        [name, c.kendall, c.p_value, c.spearman, c.pearson, c.queries, PREDICTORS[name]]
        for name in ordered
        for c in [defined[name]]
    ]
    return Table(columns, rows)


def predictors_note(result: Result) -> str:
    """Return what the table of predictors is about."""
    return (
        f"How the scores of a query's ranking go with its {result.primary}; p is that of Kendall's tau, corrected for "
        "the number of predictors (Holm)."
    )


def thresholds_table(insight: Insights) -> Table:
    """Return what the threshold chosen by each target does, in fold and out of fold, and without one."""
    if not insight.tunings:
        return Table([], [])
    columns = [
        Column("chosen for", least=12),
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
    """Return in words what a threshold is chosen for."""
    return (
        "largest F1"
        if settings.target == "f1"
        else f"recall cost \N{LESS-THAN OR EQUAL TO} {settings.max_recall_lost:g}"
    )


def thresholds_note(insight: Insights) -> str:
    """Return what the table of thresholds is about, or why there is none; "" without no-result queries."""
    if not insight.tunings:
        return insight.untunable
    folds = len(insight.tunings[0].fold_thresholds)
    return (
        "F1 is that of answering the queries that have an answer. In fold, the threshold is measured on the queries "
        f"that it was chosen by; out of fold, on each of {folds} parts by one chosen without it. New queries should "
        "fare as out of fold."
    )


def _tunings(result: Result) -> tuple[Sequence[Tuning], str]:
    q, hits = result.queries, result.hits
    golds = np.array([len(expected) for expected in q.expected], dtype=np.int64)
    ran = np.array([not error for error in q.errors], dtype=np.bool_)
    if hits is None or not (ran & (golds == 0)).any():
        return (), ""
    k = result.abstention.k
    targets = (ThresholdSettings(k=k), ThresholdSettings(target="recall", k=k))
    try:
        return [tune(hits.rankings, hits.grades, golds, ran, aim, q.cluster_numbers) for aim in targets], ""
    except Untunable as why:
        return (), f"No threshold was chosen: {why}."


def _cutoff(primary: str) -> int:
    """Return the cutoff of a measure, or that of the failure classes for one that has none."""
    name, _, cutoff = primary.rpartition("@")
    whole = is_of_whole_ranking(name)  # its cutoff is the depth of the search
    return int(cutoff) if cutoff.isdecimal() and int(cutoff) > 1 and not whole else FailureSettings().cutoff


def _figures(outcome: ThresholdOutcome) -> list[float]:
    return [outcome.f1, outcome.tn_rate, outcome.recall, outcome.recall_lost, outcome.rejected]


def _thresholds(values: Sequence[float | None]) -> str:
    """Return thresholds as text: one, or the lowest and the highest."""
    known = sorted(-np.inf if value is None else value for value in values)
    shown = ["none" if value == -np.inf else f"{value:.4g}" for value in known]
    return " to ".join(dict.fromkeys([*shown[:1], *shown[-1:]]))


def _beaten_by(failure: QueryFailure) -> str:
    """Return the document that should not be above gold, and whether it was judged."""
    return f"{failure.rival or ''}{'' if failure.rival_grade is None else ' (judged irrelevant)'}"


def _format_gold(gold: tuple[str, int | None, Sequence[str]]) -> str:
    """Return a gold document with where it stands."""
    name, rank, absent = gold
    return f"{name} at {rank}" if rank else f"{name} (not in the corpus)" if name in absent else f"{name} (not found)"
