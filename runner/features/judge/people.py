"""Correct a judge by people's grades: choose the pairs for people to grade, and estimate judge and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.judging import SCALE, JudgedRankings, Pair, convert_grade, rank_documents
from runner.features.judge.order import UNJUDGED, RankedPool
from runner.features.judge.prediction_powered import (
    Corrected,
    Floats,
    GradedSample,
    Ints,
    compute_kappa,
    estimate,
    tabulate_grades,
    variance_by_people_alone,
)

FEWEST = 10
"""The fewest grades by people from which estimates are made."""

_NO_GRADE = SCALE.greatest + 1

_WRONG = 0.1
"""The share of wrong grades that is assumed of a judge to divide a sample; no estimate depends on it."""
_LEAST = 0.05
"""The least share of a sample that a stratum gets, so that a stratum without surprises is checked too."""


@dataclass(frozen=True)
class CorrectedFigure:
    """A measure of the pool or of a result: by the judge's grades alone, and corrected by people's grades.

    `alone` is half the width that the interval would have without the judge, and `saved` is how many more grades by
    people it would then need to be as short.
    """

    name: str
    measure: str
    judge: float
    corrected: Corrected
    alone: float
    saved: int


@dataclass(frozen=True)
class JudgeReport:
    """How a judge's grades compare with people's, estimated for the whole pool.

    `bias` is the mean of the judge's grade minus people's; `confusion` is the share of pairs with each grade of the
    judge (rows) and of people (columns).
    """

    pairs: int
    graded: int
    bias: Corrected
    agreement: float
    kappa: float | None
    weighted_kappa: float | None
    confusion: Sequence[Sequence[float]]
    figures: Sequence[CorrectedFigure]


def draw_pairs(strata: Ints, rows: Sequence[int], size: int, seed: int) -> list[int]:
    """Return the pairs to add to a sheet so that it has `size` pairs, by position in the pool.

    `strata` (N,) are those of `list_strata`, `rows` the pairs in the sheet. The pool is put in one order, in which the
    pairs of a stratum are shuffled and evenly spread: any first part of a sheet is a random sample of each stratum, and
    a larger sheet continues a smaller one.
    """
    rng = np.random.default_rng(seed)
    shuffled, turns = rng.permutation(len(strata)), np.empty(len(strata))
    for stratum, share in enumerate(share_sample(np.bincount(strata, minlength=_NO_GRADE + 1)).tolist()):
        own = shuffled[strata[shuffled] == stratum]
        turns[own] = (np.arange(len(own)) + rng.random()) / share
    order = np.argsort(turns)
    new: list[int] = order[~np.isin(order, rows)][: max(size - len(rows), 0)].tolist()
    return new


def share_sample(sizes: Ints) -> Floats:
    """Return the relative share of a sample that each stratum gets (H,), given the number of pairs of each.

    Neyman's allocation: the number of pairs times the standard deviation of people's grades that is expected by Bayes'
    rule, if the judge is wrong on a tenth of the pairs, in any direction. People's grades must not change the shares: a
    stratum whose first grades happen to be equal would get few more, and estimates would be biased.
    """
    grades = np.arange(SCALE.greatest + 1)
    likelihood = np.where(np.arange(len(sizes))[:, None] == grades, 1 - _WRONG, _WRONG / SCALE.greatest)
    likelihood[_NO_GRADE] = 1.0
    chances = likelihood * (sizes[:_NO_GRADE] + 1)
    chances = chances / chances.sum(axis=1, keepdims=True)
    shares = sizes * np.sqrt(chances @ grades**2 - (chances @ grades) ** 2)
    least: Floats = np.maximum(shares / shares.sum(), _LEAST)
    return least


def rank_pool(runs: Iterable[JudgedRankings], pairs: Sequence[Pair], k: int) -> RankedPool:
    """Return the ranks of the pairs of a pool in each result, to depth k."""
    at = {pair: place for place, pair in enumerate(pairs)}
    rows = []
    for run in runs:
        ranks = np.zeros(len(pairs), dtype=np.int64)
        for query, documents in enumerate(rank_documents(run, k)):
            for rank, document in reversed([*enumerate(documents.tolist(), start=1)]):
                if (place := at.get((query, document))) is not None:
                    ranks[place] = rank
        rows.append(ranks)
    return RankedPool(np.array([query for query, _ in pairs], dtype=np.int64), np.stack(rows))


def replace_grades(verdicts: Sequence[GradeVerdict], people: Ints) -> list[GradeVerdict]:
    """Return the verdicts with people's grades in place of the model's."""
    return [
        verdict if grade == UNJUDGED else GradeVerdict(float(grade), "graded", "graded by a person")
        for verdict, grade in zip(verdicts, people.tolist(), strict=True)
    ]


def list_strata(verdicts: Sequence[GradeVerdict]) -> Ints:
    """Return the stratum of each pair (N,): the judge's grade, rounded, or one more than the highest if it has none."""
    grades = [_NO_GRADE if verdict.grade is None else int(verdict.grade + 0.5) for verdict in verdicts]
    return np.array(grades, dtype=np.int64)


def report_judge(
    sample: GradedSample, runs: Mapping[str, JudgedRankings], pairs: Sequence[Pair], k: int
) -> JudgeReport:
    """Return the quality of the judge, and corrected measures of the pool and of each result."""
    merged = merge_ungraded(sample)
    judged = _extract_grades(sample.strata)
    size, scale = len(pairs), np.arange(SCALE.greatest + 1, dtype=np.float64)
    bias = estimate(merged, (judged[:, None] - scale) / size)
    table = tabulate_grades(sample, _extract_grades(np.arange(len(sample.sizes))).tolist())
    return JudgeReport(
        pairs=size,
        graded=len(sample.sampled),
        bias=bias,
        agreement=float(np.trace(table) / table.sum()),
        kappa=compute_kappa(table),
        weighted_kappa=compute_kappa(table, quadratic=True),
        confusion=table.tolist(),
        figures=[
            _figure("pool", "mean grade", merged, judged, np.tile(scale / size, (size, 1))),
            _figure("pool", "share of grades above 0", merged, judged, np.tile((scale > 0) / size, (size, 1))),
            *(_figure(name, f"P@{k}", merged, judged, *weigh_precision(run, pairs, k)) for name, run in runs.items()),
        ],
    )


def weigh_precision(run: JudgedRankings, pairs: Sequence[Pair], k: int) -> tuple[Floats, float]:
    """Return the part of each pair's grade in P@k of a result (N x grades), and the sum of the parts of judged pairs.

    P@k is the mean over the queries that have gold and whose search did not fail.
    """
    judgments = run.judgments
    grades = {(query, document): grade for query, document, grade in judgments.list_rows()}
    counted = {query for (query, _), grade in grades.items() if grade > 0} - set(run.rankings.errors or ())
    ranked = enumerate(rank_documents(run, k).tolist())
    hits = {(query, document) for query, row in ranked if query in counted for document in row}
    weight, greatest = 1 / (k * max(len(counted), 1)), int(judgments.grades.max(initial=1))
    weights = np.array([weight if pair in hits and pair not in grades else 0.0 for pair in pairs])
    relevant = np.array([convert_grade(grade, greatest) > 0 for grade in range(SCALE.greatest + 1)])
    return weights[:, None] * relevant, weight * sum(grades.get(pair, 0) > 0 for pair in hits)


def _extract_grades(strata: Ints) -> Ints:
    """Return the judge's grade of each stratum; 0 if it has none."""
    return np.where(strata == _NO_GRADE, 0, strata)


def _figure(
    name: str, measure: str, sample: GradedSample, judged: Ints, parts: Floats, constant: float = 0.0
) -> CorrectedFigure:
    corrected, alone = estimate(sample, parts, constant), variance_by_people_alone(sample, parts)
    saved = int(len(sample.sampled) * (alone / corrected.variance - 1)) if corrected.variance else 0
    judge = constant + float(parts[np.arange(len(judged)), judged].sum())
    return CorrectedFigure(name, measure, judge, corrected, 1.96 * alone**0.5, max(saved, 0))


def merge_ungraded(sample: GradedSample) -> GradedSample:
    """Return the sample with each stratum that people did not grade merged into the nearest graded one."""
    taken = np.bincount(sample.strata[sample.sampled], minlength=len(sample.sizes))
    graded = np.flatnonzero(taken)
    nearest = np.array([graded[np.abs(graded - stratum).argmin()] for stratum in range(len(taken))])
    return GradedSample(nearest[sample.strata], sample.sampled, sample.grades, sample.greatest)


def name_runs(names: Iterable[str], runs: Iterable[JudgedRankings]) -> dict[str, JudgedRankings]:
    """Return results by name; a repeated name gets a number from its second occurrence."""
    named: dict[str, JudgedRankings] = {}
    for name, run in zip(names, runs, strict=True):
        copies = sum(other == name or other.startswith(f"{name} (") for other in named)
        named[f"{name} ({copies + 1})" if copies else name] = run
    return named
