"""Correct a judge by people's grades: choose the pairs for people to grade, and estimate judge and results.

The strata of `runner.analysis.prediction_powered` are those of `runner.analysis.pair_strata`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.analysis.judging import SCALE, JudgedRankings, Pair, convert_grade, rank_documents
from runner.analysis.judging_order import UNJUDGED, RankedPool
from runner.analysis.pair_strata import extract_grades, predict_spreads
from runner.analysis.prediction_powered import (
    Corrected,
    Floats,
    GradedSample,
    Ints,
    allocate_sample,
    compute_kappa,
    estimate,
    tabulate_grades,
    variance_by_people_alone,
)
from runner.analysis.verdicts import GradeVerdict

FEWEST = 10
"""The fewest grades by people from which estimates are made."""


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


def draw_pairs(strata: Ints, weights: Floats, rows: Sequence[int], size: int, seed: int) -> list[int]:
    """Return the pairs to add to a sheet so that it has `size` pairs, by position in the pool.

    `rows` are the pairs in the sheet. Strata get more pairs if people's grades are expected to vary, or if their pairs
    have large `weights` (N,). Pairs of a stratum are in random order and evenly spread over the result, so that any
    first part of it is a random sample of each stratum.
    """
    rng = np.random.default_rng(seed)
    order, sizes = rng.permutation(len(strata)), np.bincount(strata)
    taken = np.bincount(strata[np.asarray(rows, dtype=np.int64)], minlength=len(sizes))
    effects = np.sqrt(np.bincount(strata, weights**2) / np.maximum(sizes, 1))
    counts = allocate_sample(sizes, predict_spreads(strata) * effects, taken, max(size - len(rows), 0))
    there = np.zeros(len(strata), dtype=np.bool_)
    there[np.asarray(rows, dtype=np.int64)] = True
    free = order[~there[order]]
    new = [free[strata[free] == stratum][:count] for stratum, count in enumerate(counts.tolist())]
    turns = np.concatenate([(np.arange(len(pairs)) + rng.random()) / max(len(pairs), 1) for pairs in new])
    return [int(pair) for pair in np.concatenate(new)[np.argsort(turns)]]


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


def people_grades(size: int, places: Sequence[int], grades: Sequence[int | None]) -> Ints:
    """Return people's grade of each pair of a pool of a `size`, `UNJUDGED` for none (N,)."""
    people = np.full(size, UNJUDGED, dtype=np.int64)
    for place, grade in zip(places, grades, strict=True):
        people[place] = UNJUDGED if grade is None else grade
    return people


def replace_grades(verdicts: Sequence[GradeVerdict], people: Ints) -> list[GradeVerdict]:
    """Return the verdicts with people's grades in place of the model's."""
    return [
        verdict if grade == UNJUDGED else GradeVerdict(float(grade), "graded", "graded by a person")
        for verdict, grade in zip(verdicts, people.tolist(), strict=True)
    ]


def collect_sample(strata: Ints, rows: Sequence[int], grades: Sequence[int | None]) -> GradedSample:
    """Return the pairs in a sheet that have a grade."""
    graded = [(row, grade) for row, grade in zip(rows, grades, strict=True) if grade is not None]
    columns = np.array(graded, dtype=np.int64).reshape(-1, 2).T
    return GradedSample(strata, columns[0], columns[1], SCALE.greatest)


def report_judge(
    sample: GradedSample, runs: Mapping[str, JudgedRankings], pairs: Sequence[Pair], k: int
) -> JudgeReport:
    """Return the quality of the judge, and corrected measures of the pool and of each result."""
    merged = merge_ungraded(sample)
    judged = extract_grades(sample.strata)
    size, scale = len(pairs), np.arange(SCALE.greatest + 1, dtype=np.float64)
    bias = estimate(merged, (judged[:, None] - scale) / size)
    table = tabulate_grades(sample, extract_grades(np.arange(len(sample.sizes))).tolist())
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
    judged = zip(judgments.queries.tolist(), judgments.documents.tolist(), strict=True)
    grades = dict(zip(judged, judgments.grades.tolist(), strict=True))
    counted = {query for (query, _), grade in grades.items() if grade > 0} - set(run.rankings.errors or ())
    ranked = enumerate(rank_documents(run, k).tolist())
    hits = {(query, document) for query, row in ranked if query in counted for document in row}
    weight, greatest = 1 / (k * max(len(counted), 1)), int(judgments.grades.max(initial=1))
    weights = np.array([weight if pair in hits and pair not in grades else 0.0 for pair in pairs])
    relevant = np.array([convert_grade(grade, greatest) > 0 for grade in range(SCALE.greatest + 1)])
    return weights[:, None] * relevant, weight * sum(grades.get(pair, 0) > 0 for pair in hits)


def _figure(
    name: str, measure: str, sample: GradedSample, judged: Ints, parts: Floats, constant: float = 0.0
) -> CorrectedFigure:
    corrected, alone, n = (
        estimate(sample, parts, constant),
        variance_by_people_alone(sample, parts),
        len(sample.sampled),
    )
    saved = int(n * (alone / corrected.variance - 1)) if corrected.variance else 0
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
