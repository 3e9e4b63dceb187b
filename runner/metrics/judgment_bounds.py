"""Bound how far judgments of the unjudged documents could move the difference between two rankings of a query.

Every unjudged document is either irrelevant or relevant with one grade. Documents that neither ranking has may be
relevant too: they only make the best possible ranking better. Within these assumptions, the bounds are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

BOUNDED = ("nDCG", "P", "R", "RR", "Success")
"""The measures that have bounds; each needs a cutoff."""

Ranking = Sequence[tuple[Hashable, int | None]]
"""The first documents of a ranking with their grades, None for an unjudged document."""


@dataclass(frozen=True)
class QueryJudgments:
    """The grades of a query's gold documents, and the grade that unjudged documents may have."""

    gold: Sequence[int]
    grade: int
    _ideal: dict[tuple[int, int], float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def compute_ideal_dcg(self, k: int, more: int) -> float:
        """Return the largest possible DCG at k if `more` further documents are relevant."""
        more = min(more, k)
        if (k, more) not in self._ideal:
            grades = sorted([*self.gold, *[self.grade] * more], reverse=True)[:k]
            self._ideal[k, more] = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
        return self._ideal[k, more]


def bound_difference(measure: str, k: int, one: Ranking, other: Ranking, query: QueryJudgments) -> tuple[float, float]:
    """Return the smallest and the largest difference of a measure at cutoff k, the first ranking minus the second."""
    compute = _BOUNDS[measure]
    return -compute(other[:k], one[:k], query, k), compute(one[:k], other[:k], query, k)


def _bound_ndcg(one: Ranking, other: Ranking, query: QueryJudgments, k: int) -> float:
    def ideal(more: int) -> float:
        return query.compute_ideal_dcg(k, more)

    return _bound_linear(one, other, query, lambda rank: 1 / math.log2(rank + 1), lambda grade: max(grade, 0), ideal, k)


def _bound_precision(one: Ranking, other: Ranking, query: QueryJudgments, k: int) -> float:
    return _bound_linear(one, other, query, lambda rank: 1.0, _is_gold, lambda more: k, 0)


def _bound_recall(one: Ranking, other: Ranking, query: QueryJudgments, k: int) -> float:
    # Any number of relevant documents may be missing, so a negative difference may come as close to 0 as wanted.
    best = _bound_linear(one, other, query, lambda rank: 1.0, _is_gold, lambda more: len(query.gold) + more, 0)
    return 0.0 if best < 0 else best


def _is_gold(grade: int) -> float:
    return float(grade > 0)


def _bound_linear(
    one: Ranking,
    other: Ranking,
    query: QueryJudgments,
    weight: Callable[[int], float],
    gain: Callable[[int], float],
    ideal: Callable[[int], float],
    unseen: int,
) -> float:
    """Return the largest difference of a sum of gains at ranks, divided by the sum of the ideal ranking.

    `ideal` takes the number of further relevant documents; up to `unseen` of them may be in neither ranking.
    """
    gained, weights = 0.0, dict[Hashable, float]()
    for sign, ranking in ((1, one), (-1, other)):
        for rank, (document, grade) in enumerate(ranking, 1):
            if grade is None:
                weights[document] = weights.get(document, 0.0) + sign * weight(rank)
            else:
                gained += sign * weight(rank) * gain(grade)
    best, total = -math.inf, gained
    for relevant, share in enumerate([0.0, *sorted(weights.values(), reverse=True)]):  # the heaviest first
        total += share * gain(query.grade)
        divisor = ideal(relevant) if total >= 0 else ideal(relevant + unseen)
        best = max(best, total / divisor if divisor else 0.0)
    return best


def _bound_reciprocal_rank(one: Ranking, other: Ranking, query: QueryJudgments, k: int) -> float:
    return _bound_first(one, other, lambda rank: 1 / rank)


def _bound_success(one: Ranking, other: Ranking, query: QueryJudgments, k: int) -> float:
    return _bound_first(one, other, lambda rank: float(rank < math.inf))


def _bound_first(one: Ranking, other: Ranking, value: Callable[[float], float]) -> float:
    """Return the largest difference of a function of the rank of the first gold document.

    A second document that becomes relevant cannot raise it further, so none or one does.
    """
    firsts = [
        next((float(rank) for rank, (_, grade) in enumerate(ranking, 1) if (grade or 0) > 0), math.inf)
        for ranking in (one, other)
    ]
    ranks: list[Mapping[Hashable, int]] = [
        {document: rank for rank, (document, grade) in enumerate(ranking, 1) if grade is None}
        for ranking in (one, other)
    ]
    best = value(firsts[0]) - value(firsts[1])
    for document, rank in ranks[0].items():
        theirs = min(firsts[1], ranks[1].get(document, math.inf))
        best = max(best, value(min(firsts[0], rank)) - value(theirs))
    return best


_BOUNDS: Mapping[str, Callable[[Ranking, Ranking, QueryJudgments, int], float]] = {
    "nDCG": _bound_ndcg,
    "P": _bound_precision,
    "R": _bound_recall,
    "RR": _bound_reciprocal_rank,
    "Success": _bound_success,
}
