"""What rankings are worth by judgments, as a result: measures, their means and intervals, how each query went.

Whoever has rankings comes here: the evaluation of a retriever, the reader of a report, the one of what an agent saw. It
is arithmetic, and knows neither where rankings are from nor where a result goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.analysis.clusters import numbered
from runner.analysis.significance import mean_interval
from runner.metrics.abstention import list_statuses, measure_abstention
from runner.metrics.reach import list_depth_warnings
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.result import DatasetSummary, Hits, Holes, QueryTable, Result, Timings

UNTIMED = Timings(0.0, 0.0, 0.0, 0.0, None, None)
"""The timings of what nobody timed."""


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """The judged queries in columns, with the ids of each one's gold, the highest grade first, and their grades.

    `clusters` are labels that variants of a query share, or empty. `own_gold` are those, by id, of which the dataset
    expects other items of this search type than in general.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    gold: Sequence[Sequence[str]]
    grades: Sequence[Sequence[int]]
    own_gold: Sequence[str] = ()
    clusters: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Searched:
    """What the positions in rankings stand for: as `Hits` has it."""

    documents: Sequence[str]
    metadata: Sequence[Mapping[str, Any]] = ()
    parents: Sequence[str] = ()


def measured(
    rankings: Rankings,
    grader: Grader,
    settings: MetricSettings,
    *,
    queries: JudgedQueries,
    searched: Searched,
    name: str,
    retriever: str,
    config: Mapping[str, Any],
    config_hash: str,
    dataset: DatasetSummary,
) -> Result:
    """Return the result of rankings by the judgments of a grader, untimed.

    `queries` are the queries of both in their order. No-result queries are said to be answered or not by the thresholds
    of the settings, at the recall of their largest cutoff. Raises `ValueError` where rankings are of other queries.
    """
    scores = grader.score(rankings, settings.expanded)
    names = [str(measure) for measure in scores.measures]
    counted, clusters = scores.values[:, scores.counted], numbered(queries.clusters)
    units = None if clusters is None else clusters[scores.counted]
    intervals = mean_interval(counted, settings.confidence, units).tolist()
    places, errors = range(len(queries.ids)), rankings.errors or {}
    found = _found(rankings, searched, grader.grades(rankings))
    deepest = max(settings.k_values, default=settings.depth)
    return Result(
        name=name,
        retriever=retriever,
        config=config,
        config_hash=config_hash,
        swept={},
        dataset=dataset,
        primary=str(settings.primary_measure),
        queries=QueryTable(
            ids=queries.ids,
            texts=queries.texts,
            types=queries.types,
            expected=queries.gold,
            statuses=list_statuses(grader, rankings),
            errors=[errors.get(place, "") for place in places],
            notes=[rankings.notes.get(place, "") for place in places],
            expected_grades=queries.grades,
            clusters=queries.clusters,
        ),
        measures=names,
        scores=scores.values,
        means=scores.means(),
        intervals={measure: (low, high) for measure, (low, high) in zip(names, intervals, strict=True)},
        by_type=scores.by_type(queries.types),
        abstention=measure_abstention(grader, rankings, settings.thresholds, deepest).to_dict(),
        timings=UNTIMED,
        hits=found,
        holes=_holes(found, scores.counted, settings.primary_measure.cutoff or 10),
        diagnostics=dict(rankings.diagnostics),
        settled=rankings.settled,
        addresses=dict(rankings.addresses),
        own_gold=queries.own_gold,
        warnings=list_depth_warnings(grader.judgments, grader.n_queries, rankings.depth, scores.measures),
    )


def _found(rankings: Rankings, searched: Searched, grades: NDArray[np.int32]) -> Hits:
    """Return rankings by id; hits that the corpus lacks are documents without metadata, and their own parents."""
    documents, metadata, parents = searched.documents, searched.metadata, searched.parents
    outside = rankings.unknown_ids
    if not outside:
        return Hits(rankings, documents, grades, metadata, parents)
    return Hits(
        replace(rankings, unknown_ids=()),
        [*documents, *outside],
        grades,
        [*metadata, *({} for _ in outside)] if metadata else (),
        [*parents, *outside] if parents else (),
        frozenset(outside).difference(parents),
    )


def _holes(found: Hits, counted: NDArray[np.bool_], cutoff: int) -> Holes:
    """Count the hits without a grade among the first ones of the counted queries."""
    documents, grades = found.rankings.documents[counted, :cutoff], found.grades[counted, :cutoff]
    hits, unjudged = np.count_nonzero(documents != NOTHING), np.count_nonzero((documents != NOTHING) & (grades < 0))
    if not found.unknown:
        return Holes(cutoff, int(hits), int(unjudged), 0, 0)
    outside = found.is_unknown
    among_first = int(np.count_nonzero(outside[counted, :cutoff]))
    return Holes(cutoff, int(hits), int(unjudged), among_first, int(np.count_nonzero(outside)))
