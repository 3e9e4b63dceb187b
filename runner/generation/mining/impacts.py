"""The impact of documents as rows of a file, in the metadata of a query, and in the summary. It measures nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.generation.mining.base import DocumentImpact, Query
from runner.generation.mining.targets import Targets

GOLD, HARD, RANDOM = "gold", "hard negative", "random negative"

SURE = 2
"""From how many standard errors on an impact is told from none."""


def impact_of(query: Query) -> dict[str, Any]:
    """Return what is known of a query's documents together, as its metadata has it."""
    impact = query.impact
    if impact is None:
        return {}
    return {
        "answered_without_documents": impact.baseline,
        "subsets": impact.subsets,
        "converged": impact.converged,
        "why_not": impact.why,
    }


def impact_rows(queries: Sequence[Query], targets: Targets) -> Iterator[dict[str, Any]]:
    """Yield a row for each document of each query that was measured, with its impact on that query."""
    for query in queries:
        for each in query.impact.documents if query.impact else ():
            yield {
                "query_id": query.case.id,
                "fqn": targets.all[each.document].id,
                "role": _role(query, each.document),
                "impact": each.impact,
                "standard_error": each.error,
                "answers_with": each.with_it,
                "answers_without": each.without_it,
            }


def impact_counts(queries: Sequence[Query]) -> dict[str, Any]:
    """Return how many queries were measured and converged, and of each role the mean impact, helpful and harmful ones.

    A document is helpful where its impact is more than two standard errors above 0, harmful where it is as far below.
    """
    measured = [query.impact for query in queries if query.impact]
    by_role: defaultdict[str, list[DocumentImpact]] = defaultdict(list)
    for query in queries:
        for each in query.impact.documents if query.impact else ():
            if each.impact is not None:
                by_role[_role(query, each.document)].append(each)
    return {
        "queries": len(measured),
        "answered_without_documents": sum(each.baseline is True for each in measured),
        "converged": sum(each.converged for each in measured),
        "subsets": sum(each.subsets for each in measured),
        "roles": {role: _role_counts(by_role[role]) for role in (GOLD, HARD, RANDOM) if role in by_role},
    }


def _role_counts(documents: Sequence[DocumentImpact]) -> Mapping[str, float]:
    impacts = [(each.impact or 0.0, each.error or 0.0) for each in documents]
    return {
        "documents": len(impacts),
        "mean_impact": sum(impact for impact, _ in impacts) / len(impacts),
        "helpful": sum(impact > SURE * error for impact, error in impacts),
        "harmful": sum(impact < -SURE * error for impact, error in impacts),
    }


def _role(query: Query, document: int) -> str:
    return GOLD if document in query.golds else HARD if document in query.hard_negatives else RANDOM
