"""Choose a score threshold for answers by a target, and estimate the value of the choice on new queries.

A query with gold is answerable; one without is a no-result query, whose right result is an empty one. A threshold drops
the documents that score below it; a query with no documents left gets no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Rankings
from runner.statistics.clusters import Clusters
from runner.statistics.selection import folds

Floats = NDArray[np.float64]
Scores32 = NDArray[np.float32]

Target = Literal["f1", "recall"]

NONE = float(np.finfo(np.float32).min)
"""The threshold that every score reaches."""


class Untunable(ValueError):
    """Raised if there is no threshold to choose; the message says why."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class ThresholdSettings:
    """The target of a threshold, and how the choice is tested.

    The target `f1` is the largest F1 of answering. The target `recall` is the most no-result queries with an empty
    result while the mean R@k of the answerable queries falls by at most `max_recall_lost`.
    """

    target: Target = "f1"
    max_recall_lost: float = Field(default=0.05, ge=0, le=1)
    k: int = Field(default=10, ge=1)
    folds: int = Field(default=5, ge=2)
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class ThresholdOutcome:
    """The figures of a set of queries at a threshold.

    `f1` is that of answering: the harmonic mean of the share of the answered queries that are answerable and the share
    of the answerable queries that are answered. `tn_rate` is the share of no-result queries with an empty result,
    `recall` the mean R@k of the answerable queries, `recall_lost` how much of it the threshold costs, and `rejected`
    the share of the answerable queries with an empty result.
    """

    f1: float
    tn_rate: float
    recall: float
    recall_lost: float
    rejected: float


@dataclass(frozen=True, eq=False)
class Curve:
    """The figures of a set of queries at each of several thresholds (t,), ascending.

    `sums` (6 x t) are, over queries: answerable and answered, answerable and silent, no-result and silent, no-result
    and answered, R@k kept, R@k lost. The sums of disjoint sets of queries may be added.
    """

    thresholds: Floats
    sums: Floats

    @property
    def f1(self) -> Floats:
        """Return the F1 of answering (t,); 0 if no answerable query is answered."""
        right, wrongly_silent, _, wrongly_answered, *_ = self.sums
        return _share(2 * right, 2 * right + wrongly_silent + wrongly_answered, 0)

    @property
    def tn_rate(self) -> Floats:
        """Return the share of no-result queries with an empty result (t,)."""
        return _share(self.sums[2], self.sums[2] + self.sums[3])

    @property
    def recall(self) -> Floats:
        """Return the mean R@k of the answerable queries (t,)."""
        return _share(self.sums[4], self.sums[0] + self.sums[1])

    @property
    def recall_lost(self) -> Floats:
        """Return how much the threshold costs of the mean R@k (t,)."""
        return _share(self.sums[5], self.sums[0] + self.sums[1])

    @property
    def rejected(self) -> Floats:
        """Return the share of the answerable queries with an empty result (t,)."""
        return _share(self.sums[1], self.sums[0] + self.sums[1])

    def outcome(self, place: int) -> ThresholdOutcome:
        """Return the figures at the threshold with this index."""
        figures = (self.f1, self.tn_rate, self.recall, self.recall_lost, self.rejected)
        return ThresholdOutcome(*(float(values[place]) for values in figures))


@dataclass(frozen=True, eq=False)
class Tuning:
    """A threshold chosen on all queries, and an estimate of the value of the choice.

    `in_fold` are the figures of that threshold on the queries that it was chosen on; `out_of_fold` are those of
    thresholds chosen without each fold (`fold_thresholds`), over all folds together. The first overestimates the
    figures on new queries, by about their difference. `untouched` are the figures without a threshold, and `curve`
    those of all thresholds to choose from. The threshold None drops nothing.
    """

    settings: ThresholdSettings
    threshold: float | None
    fold_thresholds: tuple[float | None, ...]
    in_fold: ThresholdOutcome
    out_of_fold: ThresholdOutcome
    untouched: ThresholdOutcome
    curve: Curve

    @property
    def difference(self) -> ThresholdOutcome:
        """Return how much larger each figure is in fold than out of fold."""
        pairs = (
            (getattr(self.in_fold, name), getattr(self.out_of_fold, name)) for name in ThresholdOutcome.__annotations__
        )
        return ThresholdOutcome(*(within - without for within, without in pairs))


@dataclass(frozen=True, eq=False)
class AnswerScores:
    """The scores that a threshold acts on: the best score of each query (n,), and the gold among its first k hits.

    The best score is -inf if nothing was found. The gold is in columns (m,): its query, its score, and its share of the
    query's gold.
    """

    best: Scores32
    answerable: NDArray[np.bool_]
    no_result: NDArray[np.bool_]
    queries: NDArray[np.int64]
    scores: Scores32
    shares: Floats

    @staticmethod
    def of(
        rankings: Rankings, grades: NDArray[np.int32], golds: NDArray[np.int64], ran: NDArray[np.bool_], k: int
    ) -> AnswerScores:
        """Build the scores from rankings, the grades of the hits (n x depth), and the number of gold documents (n,).

        Queries that did not run (n,) are neither answerable nor no-result queries.
        """
        queries, places = np.nonzero((grades[:, :k] > 0) & ran[:, None])
        best = rankings.scores.max(axis=1, initial=-np.inf).astype(np.float32)
        scores = rankings.scores[queries, places]
        return AnswerScores(best, ran & (golds > 0), ran & (golds == 0), queries, scores, 1 / golds[queries])

    def candidates(self, some: NDArray[np.bool_]) -> Floats:
        """Return all thresholds that treat some queries (n,) differently, ascending: none, then between best scores."""
        best = np.unique(self.best[some & np.isfinite(self.best)])
        if not len(best):
            return np.array([NONE])
        between = ((best[:-1].astype(np.float64) + best[1:]) / 2).astype(np.float32)
        between = np.where(between > best[:-1], between, best[1:])  # adjacent floats have no number between them
        return np.array([NONE, *between, np.nextafter(best[-1], np.float32(np.inf))], dtype=np.float64)

    def curve(self, thresholds: Floats, some: NDArray[np.bool_]) -> Curve:
        """Return the figures of some queries (n,) at thresholds (t,)."""
        at = thresholds.astype(np.float32)

        def sum_reached(scores: Scores32, weights: Floats) -> Floats:
            """Return, for each threshold, the sum of the weights of the scores that reach it."""
            order = np.argsort(scores, kind="stable")
            below = np.concatenate([[0.0], np.cumsum(weights[order])])
            sums: Floats = below[-1] - below[np.searchsorted(scores[order], at, side="left")]
            return sums

        right, wrong = (
            sum_reached(self.best[kind & some], np.ones(np.count_nonzero(kind & some)))
            for kind in (self.answerable, self.no_result)
        )
        of_some = some[self.queries]
        shares = self.shares[of_some]
        kept = sum_reached(self.scores[of_some], shares)
        answerable, no_result = (np.count_nonzero(kind & some) for kind in (self.answerable, self.no_result))
        sums = [right, answerable - right, no_result - wrong, wrong, kept, np.maximum(shares.sum() - kept, 0)]
        return Curve(thresholds, np.stack(sums))

    def choose(self, some: NDArray[np.bool_], wanted: ThresholdSettings) -> float:
        """Return the best threshold for some queries (n,); of equals, the lowest."""
        curve = self.curve(self.candidates(some), some)
        if wanted.target == "f1":
            values = curve.f1
        else:
            values = np.where(curve.recall_lost <= wanted.max_recall_lost + 1e-12, curve.tn_rate, -1)
        return float(curve.thresholds[np.argmax(values)])


def tune(
    rankings: Rankings,
    grades: NDArray[np.int32],
    golds: NDArray[np.int64],
    ran: NDArray[np.bool_],
    settings: ThresholdSettings = ThresholdSettings(),  # noqa: B008 (immutable)
    clusters: Clusters | None = None,
) -> Tuning:
    """Choose a threshold by a target, cross-validated in folds with equally many no-result queries, give or take one.

    Queries of a cluster are variants of each other and in one fold.

    `grades` (n x depth) are those of the hits, -1 for unjudged; `golds` and `ran` (n,) say how many gold documents each
    query has, and whether its search raised no error. There are fewer folds if there are fewer queries of a kind.
    Raises `Untunable` if there is no threshold to choose.
    """
    answers = AnswerScores.of(rankings, grades, golds, ran, settings.k)
    _check(answers)
    every = answers.answerable | answers.no_result
    units = np.arange(len(every)) if clusters is None else clusters
    fewest = min(len(np.unique(units[kind])) for kind in (answers.answerable, answers.no_result))
    if fewest < 2:
        raise Untunable(
            "all queries with an answer, or all without one, belong to one cluster; choosing and testing a threshold "
            "needs at least two clusters of each"
        )
    kinds = np.where(answers.no_result, "no result", "answerable").tolist()
    dealt = folds(kinds, every, min(settings.folds, int(fewest)), settings.seed, clusters)
    chosen, sums = [], np.zeros((6, 1))
    for fold in range(int(dealt.max()) + 1):
        chosen.append(answers.choose(every & (dealt != fold), settings))
        sums += answers.curve(np.array(chosen[-1:]), dealt == fold).sums
    threshold = answers.choose(every, settings)
    few = answers.curve(np.array([NONE, threshold]), every)
    return Tuning(
        settings=settings,
        threshold=_none_if_unset(threshold),
        fold_thresholds=tuple(map(_none_if_unset, chosen)),
        in_fold=few.outcome(1),
        out_of_fold=Curve(np.array([np.nan]), sums).outcome(0),
        untouched=few.outcome(0),
        curve=answers.curve(answers.candidates(every), every),
    )


def _check(answers: AnswerScores) -> None:
    every = answers.answerable | answers.no_result
    answerable, no_result = (int(np.count_nonzero(kind)) for kind in (answers.answerable, answers.no_result))
    if not no_result:
        raise Untunable("every query has an answer, so there is no threshold to choose")
    if not answerable:
        raise Untunable("no query has an answer, so the best threshold rejects everything")
    if min(answerable, no_result) < 2:
        kind = "no-result query" if no_result < 2 else "answerable query"
        raise Untunable(f"there is only one {kind}; choosing and testing a threshold needs at least two of each kind")
    best = np.unique(answers.best[every & np.isfinite(answers.best)])
    if not len(best):
        raise Untunable("no query returned any result, so there is nothing to reject")
    if len(best) == 1:
        raise Untunable(f"the best score of every query with results is {best[0]:g}, so no threshold can separate them")


def _none_if_unset(threshold: float) -> float | None:
    return None if threshold == NONE else threshold


def _share(parts: Floats, wholes: Floats, otherwise: float = np.nan) -> Floats:
    shares = np.full(len(parts), otherwise, dtype=np.float64)
    np.divide(parts, wholes, out=shares, where=wholes > 0)
    return shares
