"""Scores rankings from any origin: retrievers, imported reports, agent traces. Only arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.evaluation.result import ChunkPlaces, Hits, Holes, JudgedQueries, Measurements, QueryTable
from runner.metrics.abstention import list_statuses, measure_abstention
from runner.metrics.foreign_ids import GOLD_IN_NO_HIT, list_gold_in_no_hit, list_id_warnings
from runner.metrics.formulas import find_missed_cutoff
from runner.metrics.reach import list_depth_warnings, list_token_warnings
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.statistics.clusters import number_clusters
from runner.statistics.settings import Statistics
from runner.statistics.significance import mean_interval


@dataclass(frozen=True, eq=False)
class RankedDocuments:
    """The documents that rankings refer to by position: ids, metadata to show, parents and chunks, as in `Hits`."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, Any]] = ()
    parents: Sequence[str] = ()
    chunks: ChunkPlaces | None = None


def measure(
    rankings: Rankings,
    grader: Grader,
    settings: MetricSettings,
    statistics: Statistics,
    queries: JudgedQueries,
    documents: RankedDocuments,
    own_gold: Sequence[str] = (),
) -> Measurements:
    """Measure rankings by the judgments of a grader.

    `queries` are the queries of both, in the same order; `own_gold` is as in `Measurements`. Abstention is measured at
    the thresholds of the settings, with recall at the largest cutoff; of the statistics, only the confidence of
    intervals is used. Raises `ValueError` if the rankings are of other queries.
    """
    scores = grader.score(rankings, settings.expanded)
    names = [str(measure) for measure in scores.measures]
    counted, clusters = scores.values[:, scores.counted], number_clusters(queries.clusters)
    units = None if clusters is None else clusters[scores.counted]
    intervals = mean_interval(counted, statistics.confidence, units).tolist()
    places, errors = range(len(queries.ids)), rankings.errors or {}
    hits = _resolve_hits(rankings, documents, grader.grades(rankings))
    deepest, absent = max(settings.k_values, default=settings.depth), list_gold_in_no_hit(grader, rankings)
    return Measurements(
        primary=str(settings.primary_measure),
        queries=QueryTable(
            **vars(queries),
            statuses=list_statuses(grader, rankings, find_missed_cutoff(str(settings.primary_measure))),
            errors=[errors.get(place, "") for place in places],
            notes=[rankings.notes[place].to_json() if place in rankings.notes else "" for place in places],
        ),
        measures=names,
        scores=scores.values,
        means=scores.means(),
        intervals={measure: (low, high) for measure, (low, high) in zip(names, intervals, strict=True)},
        by_type=scores.by_type(queries.types),
        abstention=measure_abstention(grader, rankings, settings.thresholds, deepest),
        hits=hits,
        holes=None
        if grader.tokens is not None  # spans do not tell which other passages were judged
        else _count_holes(
            hits,
            grader.grade(rankings).first_chunks,
            scores.counted,
            settings.primary_measure.cutoff or 10,
            settings.k_values,
        ),
        diagnostics={**rankings.diagnostics, **({GOLD_IN_NO_HIT: float(len(absent))} if absent else {})},
        settled=rankings.settled,
        addresses=dict(rankings.addresses),
        own_gold=own_gold,
        warnings=[
            *list_id_warnings(grader, rankings),
            *list_depth_warnings(grader.judgments, grader.n_queries, settings.depth, scores.measures),
            *list_token_warnings(grader, rankings, settings.depth, scores.measures),
        ],
    )


def _resolve_hits(rankings: Rankings, documents: RankedDocuments, grades: NDArray[np.int32]) -> Hits:
    """Return rankings by id; unknown hits become documents without metadata that are their own parents."""
    outside = rankings.unknown_ids
    if not outside:
        return Hits(rankings, documents.ids, grades, documents.metadata, documents.parents, chunks=documents.chunks)
    is_unknown = np.ones(len(outside), dtype=np.bool_)
    if parents := set(documents.parents):
        is_unknown[:] = [name not in parents for name in outside]
    return Hits(
        replace(rankings, unknown_ids=()),
        [*documents.ids, *outside] if len(documents.ids) else outside,
        grades,
        [*documents.metadata, *({} for _ in outside)] if documents.metadata else (),
        [*documents.parents, *outside] if documents.parents else (),
        np.concatenate((np.zeros(len(documents.ids), dtype=np.bool_), is_unknown)) if is_unknown.any() else None,
        documents.chunks and documents.chunks.extend(len(outside)),
    )


def _count_holes(
    hits: Hits,
    first_chunks: NDArray[np.bool_] | None,
    counted: NDArray[np.bool_],
    cutoff: int,
    cutoffs: Sequence[int],
) -> Holes:
    """Count the unjudged and unknown hits among the first hits of the counted queries, each document once."""
    there = (hits.rankings.documents != NOTHING if first_chunks is None else first_chunks)[counted]
    unjudged = there & (hits.grades[counted] < 0)

    def count(mask: NDArray[np.bool_], k: int) -> int:
        return int(np.count_nonzero(mask[:, :k]))

    rates = {str(k): count(unjudged, k) / n for k in sorted({*cutoffs, cutoff}) if (n := count(there, k))}
    counts = count(there, cutoff), count(unjudged, cutoff)
    if hits.unknown is None:
        return Holes(cutoff, *counts, 0, 0, rates)
    outside = hits.is_unknown
    return Holes(cutoff, *counts, count(outside[counted], cutoff), int(np.count_nonzero(outside)), rates)
