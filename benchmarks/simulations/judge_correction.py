"""Measure the coverage and width of intervals from a biased judge and a few human grades, by judge and design.

The pool is the top ten of 20 BM25 settings on each collection; an unjudged pair counts as irrelevant. A judge
is wrong on a quarter of the pairs: `symmetric` in either direction, `lenient` only upwards and mostly by one grade.
Designs: a simple random sample of 200 pairs graded by people, the same with the judge (PPI++), and a stratified sample
whose second half is allocated by the first. Widths are relative to those from people alone. For nDCG@10, expanded to
first order, one relevant document of each query is known in advance.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from benchmarks.simulations.systems import JudgedPool, load_settings_pool
from runner.analysis.expansion import PooledRanking, draw_ideals, expand_ndcg
from runner.analysis.prediction_powered import (
    Expansion,
    GradedSample,
    allocate_sample,
    estimate,
    estimate_spreads,
    expand_linear,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Expand = Callable[[GradedSample, np.random.Generator], Expansion]

WRONG = 0.25
SAMPLE = 200


def draw_judge(truth: Ints, kind: str, rng: np.random.Generator) -> Ints:
    """Return a judge's grades from 0 to 3, wrong on a quarter of the pairs."""
    if kind == "symmetric":
        others = (truth + rng.integers(1, 4, len(truth))) % 4
        wrong = rng.random(len(truth)) < WRONG
    else:
        others = np.minimum(truth + 1 + (rng.random(len(truth)) < 0.2), 3)
        able = truth < 3
        wrong = able & (rng.random(len(truth)) < WRONG * len(truth) / able.sum())
    return np.where(wrong, others, truth)


def draw_sample(truth: Ints, strata: Ints, design: str, rng: np.random.Generator) -> GradedSample:
    """Return the sample of a design, graded without error."""
    if design != "stratified":
        sampled = rng.choice(len(truth), SAMPLE, replace=False)
        return GradedSample(strata, sampled, truth[sampled], 3)
    order = rng.permutation(len(truth))
    sizes = np.bincount(strata)
    sampled = np.zeros(0, dtype=np.int64)
    for _ in range(2):
        sample = GradedSample(strata, sampled, truth[sampled], 3)
        taken = np.bincount(strata[sampled], minlength=len(sizes))
        counts = taken + allocate_sample(sizes, estimate_spreads(sample), taken, SAMPLE // 2)
        sampled = np.concatenate([order[strata[order] == h][: counts[h]] for h in range(len(sizes))])
    return GradedSample(strata, sampled, truth[sampled], 3)


def pool_ranking(pool: JudgedPool, truth: Ints) -> tuple[Ints, PooledRanking]:
    """Return the remaining pairs of the pool, and the first system's ranking of these and one known gold per query."""
    first = {int(query): place for place, query in reversed([*enumerate(pool.queries)]) if truth[place] > 0}
    known = np.zeros(len(truth), dtype=np.bool_)
    known[list(first.values())] = True
    kept = np.flatnonzero(~known & np.isin(pool.queries, list(first)))
    position = np.full(len(truth), -1)
    position[kept] = np.arange(len(kept))
    rows = np.flatnonzero((pool.ranks[0] > 0) & np.isin(pool.queries, list(first)))
    rows = rows[np.lexsort((pool.ranks[0][rows], pool.queries[rows]))]
    gains = np.where(position[rows] < 0, truth[rows], 0).astype(np.float64)
    return kept, PooledRanking(
        pool.queries[rows], pool.ranks[0][rows], position[rows], gains,
        {query: truth[[place]].astype(np.float64) for query, place in sorted(first.items())},
        {query: position[kept[pool.queries[kept] == query]] for query in sorted(first)},
    )  # fmt: skip


def main(draws: int = 1000, slow_draws: int = 100) -> None:
    """Print a row for each collection, judge, measure and design; nDCG@10 has `slow_draws`."""
    print("| collection | judge | measure | correlation | design | coverage | relative width |")
    print("|---|---|---|--:|---|--:|--:|")
    for name in (name for name in ("cranfield", "medquad") if (DATA / name).is_dir()):
        pool = load_settings_pool(name)
        truth = np.minimum(pool.grades, 3)
        parts = {
            "mean grade": np.tile(np.arange(4.0), (len(truth), 1)) / len(truth),
            "P@10": pool.weights[0][:, None] * (np.arange(4) >= 2),
        }
        kept, pooled = pool_ranking(pool, truth)
        for kind in ("symmetric", "lenient"):
            for measure, part in parts.items():
                true = float(part[np.arange(len(truth)), truth].sum())
                expand = partial(expand_rows, part)
                print_rows(f"{name} | {kind} | {measure}", truth, kind, true, expand, draws)
            certain = np.eye(4)[truth[kept]]
            exact = draw_ideals(pooled, 10, np.arange(4.0), certain, np.random.default_rng(0))
            true = expand_ndcg(pooled, 10, np.arange(4.0), certain, exact).base
            expand = partial(expand_ranking, pooled)
            print_rows(f"{name} | {kind} | nDCG@10", truth[kept], kind, true, expand, slow_draws)


def expand_rows(parts: Floats, sample: GradedSample, rng: np.random.Generator) -> Expansion:
    """Return the expansion of a linear measure."""
    return expand_linear(0.0, parts, sample.chances()[sample.strata])


def expand_ranking(pooled: PooledRanking, sample: GradedSample, rng: np.random.Generator) -> Expansion:
    """Return the expansion of nDCG@10."""
    chances, gains = sample.chances()[sample.strata], np.arange(4.0)
    return expand_ndcg(pooled, 10, gains, chances, draw_ideals(pooled, 10, gains, chances, rng))


def print_rows(title: str, truth: Ints, kind: str, true: float, expand: Expand, draws: int) -> None:
    """Print a row for each design."""
    if not draws:
        return
    results: dict[str, list[tuple[bool, float]]] = {"people alone": [], "PPI++": [], "stratified": []}
    correlations = []
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        judged = draw_judge(truth, kind, rng)
        correlations.append(np.corrcoef(truth, judged)[0, 1])
        strata = np.unique(judged, return_inverse=True)[1]
        for design, rows in results.items():
            sample = draw_sample(truth, np.zeros_like(strata) if design == "people alone" else strata, design, rng)
            done = estimate(sample, expand(sample, rng))
            rows.append((done.low <= true <= done.high, done.high - done.low))
    alone = np.mean([width for _, width in results["people alone"]])
    for design, rows in results.items():
        covered, width = np.mean(rows, axis=0)
        print(f"| {title} | {np.mean(correlations):.2f} | {design} | {covered:.3f} | {width / alone:.2f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
