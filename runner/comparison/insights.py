"""The insights of a result: missed queries and their causes, performance prediction, and score thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from runner.comparison.comparability import compute_depth
from runner.evaluation.failures import FailureSettings, JudgedRun, Lexicon, QueryFailure, explain_failures
from runner.evaluation.losses import Losses
from runner.evaluation.result import Result
from runner.metrics.formulas import find_missed_cutoff
from runner.statistics.prediction import Correlation, correlations, predict
from runner.statistics.thresholds import ThresholdSettings, Tuning, Untunable, tune

_RR = "RR"
"""The measure whose value is one over the rank of the first gold."""


@dataclass(frozen=True)
class Insights:
    """The insights of a result; all are empty if its rankings were not kept.

    `failures` are the queries without gold in the first `cutoff` ranks of a search of `depth` hits, classified with the
    texts if `by_text`, and then also by their meaning if `by_meaning`. `predictors` are the correlations of query
    performance predictors with the primary measure. `tunings` are the thresholds selected for each target; `untunable`
    is the reason why there are none, with no-result queries.
    """

    cutoff: int = 0
    depth: int = 0
    by_text: bool = False
    failures: Sequence[QueryFailure] = ()
    predictors: Mapping[str, Correlation] = field(default_factory=dict)
    tunings: Sequence[Tuning] = ()
    untunable: str = ""
    by_meaning: bool = True


def find_insights(result: Result, lexicon: Lexicon | None = None) -> Insights:
    """Compute the insights of a result; `lexicon` is that of its corpus, if the texts are available."""
    if result.hits is None:
        return Insights()
    queries, lengths = result.queries, [len(text.split()) for text in result.queries.texts]
    tunings, untunable = _tunings(result)
    return replace(
        find_failures(result, lexicon),
        predictors=correlations(
            predict(result.hits.rankings, lengths), result.of(result.primary), queries.cluster_numbers
        ),
        tunings=tunings,
        untunable=untunable,
    )


def find_failures(result: Result, lexicon: Lexicon | None = None, by_meaning: bool = True) -> Insights:
    """Compute only the missed queries of a result and their causes, as `find_insights` does.

    Comparing the meaning of documents, besides their words, can take longer than a whole sweep.
    """
    if result.hits is None:
        return Insights()
    hits, queries, truth = result.hits, result.queries, result.of(result.primary)
    cutoff = find_missed_cutoff(result.primary)
    searched = result.dataset.chunks or result.dataset.documents
    unknown = hits.unknown_ids
    complete = 0 < searched == len(hits.documents) - len(unknown)  # a live index has documents that nobody lists
    known = set(hits.judged) - unknown if complete else None
    run = JudgedRun(
        *(queries.texts, hits.rankings, hits.grades, hits.judged, queries.expected, ~np.isnan(truth)),
        *(known, compute_depth(result)),
    )
    settings = FailureSettings(cutoff=cutoff)
    failures = explain_failures(
        run, lexicon, settings=settings if by_meaning else replace(settings, semantic_documents=0)
    )
    depths = {} if result.losses is None else _find_depths(result.losses, queries.expected)
    failures = [replace(own, needed_depth=depths.get(own.query)) for own in failures]
    return Insights(cutoff, run.depth, lexicon is not None, failures, by_meaning=by_meaning)


def add_reached(insight: Insights, others: Mapping[str, Result]) -> Insights:
    """Return insights whose failures name the other results, by label, that have gold within the cutoff.

    The rank of the first gold is read from the reciprocal rank; results without it are left out.
    """
    reciprocal = {label: result.of(_RR) for label, result in others.items() if _RR in result.measures}
    failures = []
    for failure in insight.failures:
        values = {label: float(of_queries[failure.query]) for label, of_queries in reciprocal.items()}
        near = sorted((round(1 / value), label) for label, value in values.items() if value >= 1 / insight.cutoff)
        failures.append(replace(failure, reached={label: rank for rank, label in near}))
    return replace(insight, failures=failures)


def _find_depths(losses: Losses, expected: Sequence[Sequence[str]]) -> dict[int, int]:
    """Return the queries with gold that the last step would read at a greater depth, and that depth."""
    queries = np.repeat(np.arange(len(expected)), [len(gold) for gold in expected]).tolist()
    return {queries[gold]: depth for gold, depth in losses.find_beyond().items()}


def _tunings(result: Result) -> tuple[Sequence[Tuning], str]:
    q, hits = result.queries, result.hits
    golds = np.array([len(expected) for expected in q.expected], dtype=np.int64)
    ran = np.array([status not in ("unjudged", "error") for status in q.statuses], dtype=np.bool_)
    if hits is None or not (ran & (golds == 0)).any():
        return (), ""
    k = result.abstention.k
    targets = (ThresholdSettings(k=k), ThresholdSettings(target="recall", k=k))
    try:
        return [tune(hits.rankings, hits.grades, golds, ran, aim, q.cluster_numbers) for aim in targets], ""
    except Untunable as why:
        return (), f"No threshold was selected, because {why}."
