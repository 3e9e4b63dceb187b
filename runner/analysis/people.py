"""Correct a judge by people's grades: choose the pairs for people to grade, and estimate judge and results.

The strata of `runner.analysis.prediction_powered` are those of `runner.analysis.pair_strata`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from runner.analysis.expansion import (
    IdealDraws,
    convert_grades,
    draw_ideals,
    expand_ndcg,
    expand_precision,
    list_pooled,
)
from runner.analysis.judging import SCALE, JudgedRankings, Pair, rank_documents
from runner.analysis.judging_order import UNJUDGED, RankedPool
from runner.analysis.pair_strata import extract_grades, predict_spreads
from runner.analysis.prediction_powered import (
    Corrected,
    Expansion,
    Floats,
    GradedSample,
    Ints,
    allocate_sample,
    compute_kappa,
    estimate,
    expand_linear,
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
    people it would then need to be as short. A measure that was expanded to first order has no interval, as the error
    of the expansion is unknown: the ends and `alone` are NaN, and `saved` is None.
    """

    name: str
    measure: str
    judge: float
    corrected: Corrected
    alone: float
    saved: int | None


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
    sample: GradedSample, runs: Mapping[str, JudgedRankings], pairs: Sequence[Pair], k: int, seed: int
) -> JudgeReport:
    """Return the quality of the judge, and corrected measures of the pool and of each result."""
    merged = merge_ungraded(sample)
    judged = extract_grades(sample.strata)
    size, scale = len(pairs), np.arange(SCALE.greatest + 1, dtype=np.float64)
    chances = merged.chances()[merged.strata]
    bias = estimate(merged, expand_linear(0.0, (judged[:, None] - scale) / size, chances))
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
            *_pool_figures(merged, judged, chances),
            *_result_figures(merged, judged, chances, runs, pairs, k, seed),
        ],
    )


def _pool_figures(sample: GradedSample, judged: Ints, chances: Floats) -> Iterator[CorrectedFigure]:
    size, scale = len(judged), np.arange(SCALE.greatest + 1, dtype=np.float64)
    for measure, values in (("mean grade", scale), ("share of grades above 0", (scale > 0).astype(np.float64))):
        parts = np.tile(values / size, (size, 1))
        expansion = expand_linear(0.0, parts, chances)
        yield _figure("pool", measure, sample, expansion, float(values[judged].mean()))


def _result_figures(
    sample: GradedSample,
    judged: Ints,
    chances: Floats,
    runs: Mapping[str, JudgedRankings],
    pairs: Sequence[Pair],
    k: int,
    seed: int,
) -> Iterator[CorrectedFigure]:
    certain = np.eye(SCALE.greatest + 1)[judged]
    shared: dict[int, tuple[IdealDraws, IdealDraws]] = {}
    for name, run in runs.items():
        gains = convert_grades(int(run.judgments.grades.max(initial=1)))
        pooled = list_pooled(run, pairs, k)
        by_judge = expand_precision(pooled, k, gains, certain).base
        yield _figure(name, f"P@{k}", sample, expand_precision(pooled, k, gains, chances), by_judge)
        key = id(run.judgments)
        if key not in shared or shared[key][0].queries != list(pooled.known):
            rng = np.random.default_rng(seed)
            shared[key] = (draw_ideals(pooled, k, gains, chances, rng), draw_ideals(pooled, k, gains, certain, rng))
        drawn, exact = shared[key]
        by_judge = expand_ndcg(pooled, k, gains, certain, exact).base
        yield _figure(name, f"nDCG@{k}", sample, expand_ndcg(pooled, k, gains, chances, drawn), by_judge, linear=False)


def _figure(
    name: str, measure: str, sample: GradedSample, expansion: Expansion, judge: float, linear: bool = True
) -> CorrectedFigure:
    corrected = estimate(sample, expansion)
    if not linear:
        return CorrectedFigure(name, measure, judge, replace(corrected, low=nan, high=nan), nan, None)
    alone = variance_by_people_alone(sample, expansion.effects)
    n = len(sample.sampled)
    saved = int(n * (alone / corrected.variance - 1)) if corrected.variance else 0
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
