"""Measure the coverage and width of intervals from a biased judge and some human grades, by judge and design.

The pool is the top ten of 20 BM25 settings on each collection; an unjudged pair counts as irrelevant. A judge is wrong
on a quarter of the pairs: `symmetric` in either direction, `lenient` only upwards and mostly by one grade, `trusts
rank` by giving the highest grade to a pair that a system has in its first three ranks, and the lowest to others. People
grade 400 pairs in each design, or as many as the second argument says: a simple random sample without the judge; the
same sample with the judge (PPI++); and one stratified by the judge's grade, as `judge sample=` draws it. The bias is
the mean error of the estimate, and the width is relative to people alone. P@10 is that of every fifth system; coverage
and width are means over these.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from benchmarks.simulations.systems import load_settings_pool
from runner.features.judge.order import RankedPool
from runner.features.judge.people import draw_pairs, merge_ungraded
from runner.features.judge.prediction_powered import GradedSample, estimate

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WRONG = 0.25
SAMPLE = 400
ALONE = "people alone"
BY_GRADE = "by grade"
DESIGNS = (ALONE, "PPI++", BY_GRADE)


def draw_judge(truth: Ints, ranked: RankedPool, kind: str, rng: np.random.Generator) -> Ints:
    """Return a judge's grades from 0 to 3, wrong on a quarter of the pairs."""
    if kind == "trusts rank":
        is_high = ((ranked.ranks > 0) & (ranked.ranks <= 3)).any(axis=0)
        return np.where(rng.random(len(truth)) < WRONG, np.where(is_high, 3, 0), truth)
    if kind == "symmetric":
        others = (truth + rng.integers(1, 4, len(truth))) % 4
        wrong = rng.random(len(truth)) < WRONG
    else:
        others = np.minimum(truth + 1 + (rng.random(len(truth)) < 0.2), 3)
        able = truth < 3
        wrong = able & (rng.random(len(truth)) < WRONG * len(truth) / able.sum())
    return np.where(wrong, others, truth)


def draw_sample(truth: Ints, judged: Ints, design: str, size: int, seed: int) -> GradedSample:
    """Return the sample of a design, graded without error."""
    strata = np.zeros_like(judged) if design == ALONE else judged
    if design == BY_GRADE:
        sampled = np.array(draw_pairs(strata, [], size, seed))
    else:
        sampled = np.random.default_rng(seed).choice(len(truth), size, replace=False)
    return merge_ungraded(GradedSample(strata, sampled, truth[sampled], 3))


def main(draws: int = 1000, size: int = SAMPLE, *names: str) -> None:
    """Print a row for each collection, judge, measure and design."""
    print("| collection | judge | measure | correlation | design | bias | coverage | width |")
    print("|---|---|---|--:|---|--:|--:|--:|")
    for name in names or [name for name in ("cranfield", "medquad") if (DATA / name).is_dir()]:
        pool = load_settings_pool(name)
        truth, ranked = np.minimum(pool.grades, 3), RankedPool(pool.queries, pool.ranks)
        relevant = np.arange(4) >= min(2, truth.max())
        parts = {
            "mean grade": [np.tile(np.arange(4.0), (len(truth), 1)) / len(truth)],
            "P@10": [weights[:, None] * relevant for weights in pool.weights[::5]],
        }
        for kind in ("symmetric", "lenient", "trusts rank"):
            for measure, rows in parts.items():
                print_rows(f"{name} | {kind} | {measure}", truth, ranked, kind, rows, size, draws)


def print_rows(
    title: str,
    truth: Ints,
    ranked: RankedPool,
    kind: str,
    parts: Sequence[Floats],
    size: int,
    draws: int,
) -> None:
    """Print a row for each design; `parts` are those of each pair's grade in measures (N x grades)."""
    trues = [float(part[np.arange(len(truth)), truth].sum()) for part in parts]
    results: dict[str, list[tuple[bool, float, float]]] = {design: [] for design in DESIGNS}
    correlations = []
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        judged = draw_judge(truth, ranked, kind, rng)
        correlations.append(np.corrcoef(truth, judged)[0, 1])
        for design, rows in results.items():
            sample = draw_sample(truth, judged, design, size, draws + draw)
            for true, part in zip(trues, parts, strict=True):
                done = estimate(sample, part)
                rows.append((done.low <= true <= done.high, done.high - done.low, done.value - true))
    alone = np.mean([width for _, width, _ in results[ALONE]])
    for design, rows in results.items():
        covered, width, bias = np.mean(rows, axis=0)
        cells = f"{bias:+.4f} | {covered:.3f} | {width / alone:.2f}"
        print(f"| {title} | {np.mean(correlations):.2f} | {design} | {cells} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
