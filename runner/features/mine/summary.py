"""Count what became of cases and queries, by suite and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from runner.features.mine.base import Query, Verdict
from runner.features.mine.impacts import ImpactSummary, count_impacts
from runner.features.mine.targets import Targets, Way


@dataclass(frozen=True)
class QueryCounts:
    """The numbers of cases and of what was made of them.

    `golds` counts names in answers by how they were resolved, `negatives` the hard and the random ones of the kept
    queries, `held_by` queries by problem, and `unresolved_names` and `ambiguous_names` how often each name was not
    resolved.
    """

    cases: int
    queries_kept: int
    golds: Mapping[str, int]
    gold_documents: int
    negatives: Mapping[str, int]
    verdicts: Mapping[str, int]
    held_by: Mapping[str, int]
    difficulty: Mapping[str, int]
    unresolved_names: Mapping[str, int]
    ambiguous_names: Mapping[str, int]


@dataclass(frozen=True)
class MiningSummary:
    """The counts of each suite and of all, the impact of documents (None: not measured), and facts about targets.

    `targets` has the number of `documents`, how many are `without_docstring`, and `notes` about them.
    """

    suites: Mapping[str, QueryCounts]
    total: QueryCounts
    impact: ImpactSummary | None
    targets: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as it is saved, without an impact that was not measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_figures(self) -> dict[str, float]:
        """Return the figures for a tracker: the totals, and the kept queries by suite."""
        total = self.total
        return {
            "cases": total.cases,
            "queries_kept": total.queries_kept,
            "gold_documents": total.gold_documents,
            **{f"verdict/{verdict}": n for verdict, n in total.verdicts.items()},
            **{f"golds/{way}": n for way, n in total.golds.items()},
            **{f"negatives/{kind}": n for kind, n in total.negatives.items()},
            **{f"held_by/{check}": n for check, n in total.held_by.items()},
            **{f"queries_kept/{suite}": own.queries_kept for suite, own in self.suites.items()},
        }


def summarize(queries: Sequence[Query], kept: Sequence[Query], targets: Targets) -> MiningSummary:
    """Return the counts of cases and queries, by suite and in total, and facts about the targets."""
    suites = dict.fromkeys(query.case.suite for query in queries)
    return MiningSummary(
        suites={
            suite: _count_queries(
                [query for query in queries if query.case.suite == suite],
                [query for query in kept if query.case.suite == suite],
            )
            for suite in suites
        },
        total=_count_queries(queries, kept),
        impact=count_impacts(queries) if any(query.impact for query in queries) else None,
        targets={
            "documents": len(targets),
            "without_docstring": sum(not target.docstring for target in targets.all),
            "notes": list(targets.notes),
        },
    )


def _count_queries(queries: Sequence[Query], kept: Sequence[Query]) -> QueryCounts:
    resolutions = [resolution for query in queries for resolution in query.resolutions]
    ways = Counter(resolution.way for resolution in resolutions)
    verdicts = Counter(query.verdict for query in queries)
    return QueryCounts(
        cases=len(queries),
        queries_kept=len(kept),
        golds={way: ways[way] for way in get_args(Way)},
        gold_documents=sum(len(query.golds) for query in kept),
        negatives={
            "hard": sum(len(query.hard_negatives) for query in kept),
            "random": sum(len(query.random_negatives) for query in kept),
        },
        verdicts={verdict: verdicts[verdict] for verdict in get_args(Verdict)},
        held_by=_count(objection.check for query in queries for objection in query.objections),
        difficulty=_count(query.difficulty for query in kept),
        unresolved_names=_count(r.name for r in resolutions if r.way == "unresolved"),
        ambiguous_names=_count(r.name for r in resolutions if r.way == "ambiguous"),
    )


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
