"""The impact of documents as rows of a file, in the metadata of a query, and in the summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.features.mine.base import DocumentImpact, Query
from runner.features.mine.targets import Targets

GOLD, HARD, RANDOM = "gold", "hard negative", "random negative"

SURE = 2
"""An impact differs from zero if it is more than this number of standard errors from it."""


@dataclass(frozen=True)
class RoleImpact:
    """The impact of the documents with a role: their mean, and how many have a significant impact."""

    documents: int
    mean_impact: float
    helpful: int
    harmful: int


@dataclass(frozen=True)
class ImpactSummary:
    """How many queries were measured, and with what result; `subsets` counts the answers."""

    queries: int
    answered_without_documents: int
    converged: int
    subsets: int
    roles: Mapping[str, RoleImpact]


def describe_impact(query: Query) -> dict[str, Any]:
    """Return the metadata of a query about the impact of its documents."""
    impact = query.impact
    if impact is None:
        return {}
    return {
        "answered_without_documents": impact.baseline,
        "subsets": impact.subsets,
        "converged": impact.converged,
        "why_not": impact.why,
    }


def iter_impact_rows(queries: Sequence[Query], targets: Targets) -> Iterator[dict[str, Any]]:
    """Yield a row for each document of each measured query, with its impact on that query."""
    for query in queries:
        for impact in query.impact.documents if query.impact else ():
            yield {
                "query_id": query.case.id,
                "fqn": targets.all[impact.document].id,
                "role": _role(query, impact.document),
                "impact": impact.impact,
                "standard_error": impact.error,
                "answers_with": impact.with_it,
                "answers_without": impact.without_it,
            }


def count_impacts(queries: Sequence[Query]) -> ImpactSummary:
    """Return how many queries were measured and converged, and the mean and significant impacts of each role.

    A document is helpful if its impact is more than two standard errors above 0, harmful if it is as far below.
    """
    measured = [query.impact for query in queries if query.impact]
    by_role: defaultdict[str, list[DocumentImpact]] = defaultdict(list)
    for query in queries:
        for impact in query.impact.documents if query.impact else ():
            if impact.impact is not None:
                by_role[_role(query, impact.document)].append(impact)
    return ImpactSummary(
        queries=len(measured),
        answered_without_documents=sum(impact.baseline is True for impact in measured),
        converged=sum(impact.converged for impact in measured),
        subsets=sum(impact.subsets for impact in measured),
        roles={role: _count_role(by_role[role]) for role in (GOLD, HARD, RANDOM) if role in by_role},
    )


def _count_role(documents: Sequence[DocumentImpact]) -> RoleImpact:
    impacts = [(document.impact or 0.0, document.error or 0.0) for document in documents]
    return RoleImpact(
        documents=len(impacts),
        mean_impact=sum(impact for impact, _ in impacts) / len(impacts),
        helpful=sum(impact > SURE * error for impact, error in impacts),
        harmful=sum(impact < -SURE * error for impact, error in impacts),
    )


def _role(query: Query, document: int) -> str:
    return GOLD if document in query.golds else HARD if document in query.hard_negatives else RANDOM
