"""Measure how often 500 adaptive proposals of equal systems end with one that a gate calls better.

A setting chooses one of two systems for each query at random, so the baseline and all proposals are equal on new
queries. A proposal changes the best setting so far for a tenth of the queries. Which one is the best, the proposer
knows from the answers of the gate, or from the differences that it sees. The usual gate says better if a t-test finds a
gain significant; a locked split, if a loss is excluded at the level of the look. The last column has the levels of a
locked split but shows the differences. With `--part power`, the table shows how often a locked split says yes to a
system with a known true difference.
"""

from __future__ import annotations

import argparse
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.difference_coverage import MEASURES, score_systems
from benchmarks.simulations.gate_verdicts import draw_pairs
from runner.comparison.locked import compute_level
from runner.statistics.betting import bet
from runner.statistics.significance import t_test

Floats = NDArray[np.float64]

COLLECTIONS = ("cranfield", "scifact", "xquad-en", "cosqa")
TESTED = ("nDCG@10", "RR", "Success@5")
QUERIES = (30, 100, 300)
ALPHA, LOOKS, CHANGED = 0.05, 500, 0.1
GAINS, BUDGETS, MARGIN = (0.05, 0.1), (10, 100, 500), 0.05

Gate = Literal["usual", "locked"]


def find_better(differences: Floats, gate: Gate) -> NDArray[np.bool_]:
    """Return which samples of differences (m x n) a gate calls better; for a locked split, before any earlier yes."""
    if gate == "locked":
        better: NDArray[np.bool_] = bet(differences, 1.0)[:, -1] >= -np.log(compute_level(ALPHA, LOOKS, 0))
        return better
    return (t_test(differences) < ALPHA) & (differences.mean(axis=1) > 0)


def propose(scores: Floats, n: int, trials: int, gate: Gate, sees_differences: bool) -> float:
    """Return the share of trials in which any of 500 proposals is called better."""
    rng = np.random.default_rng(n)
    first, second = rng.permuted(np.tile(np.arange(len(scores)), (trials, 1)), axis=1)[:, :2].T
    queries = rng.integers(0, scores.shape[1], (trials, n))
    own, other = scores[first[:, None], queries], scores[second[:, None], queries]
    baseline = rng.random((trials, n)) < 0.5
    best, called = rng.random((trials, n)) < 0.5, np.zeros(trials, dtype=np.bool_)
    highest = np.full(trials, -np.inf)
    for _ in range(LOOKS):
        proposal = best ^ (rng.random((trials, n)) < CHANGED)
        differences = (proposal * 1.0 - baseline) * (own - other)
        better = find_better(differences, gate)
        called |= better
        means = differences.mean(axis=1)
        is_kept = means > highest if sees_differences else better
        best[is_kept], highest[is_kept] = proposal[is_kept], means[is_kept]
    return float(called.mean())


def measure_power(scores: Floats, truth: float, n: int, trials: int, bound: float) -> list[str]:
    """Return how often a locked split says yes to a system with a true difference, for each budget of looks.

    `bound` is the difference that it has to be shown to exceed. The second rate is that after one earlier yes.
    """
    rng = np.random.default_rng(n)
    pairs = list(draw_pairs(scores, truth, rng))
    if not pairs:
        return ["-"] * len(BUDGETS)
    samples = np.concatenate([rng.choice(d, (-(-trials // len(pairs)), n), p=weights) for d, weights in pairs])
    capital = bet(samples - bound, 1.0 + bound)[:, -1]
    rates = [[np.mean(capital >= -np.log(compute_level(ALPHA, b, yes))) for yes in (0, 1)] for b in BUDGETS]
    return [f"{first:.2f} ({second:.2f})" for first, second in rates]


def main() -> None:
    """Print a row for each collection, measure and number of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    parser.add_argument("--part", choices=("proposals", "power"), default="proposals")
    options = parser.parse_args()
    titles = ["usual gate, answers", "usual gate, differences", "locked split", "locked levels, differences"]
    if options.part == "power":
        titles = ["true difference", "shown", *(f"{budget} looks" for budget in BUDGETS)]
    print(f"| scores | measure | queries | {' | '.join(titles)} |\n|---|---|--:|{'--:|' * len(titles)}")
    for collection in options.collections:
        scores = dict(zip(MEASURES, score_systems(collection), strict=True))
        for measure in TESTED:
            for n in QUERIES:
                row = f"{collection} | {measure} | {n}"
                if options.part == "proposals":
                    kinds: list[tuple[Gate, bool]] = [(g, sees) for g in ("usual", "locked") for sees in (False, True)]
                    rates = [propose(scores[measure], n, options.trials, gate, sees) for gate, sees in kinds]
                    print(f"| {row} | {' | '.join(f'{rate:.3f}' for rate in rates)} |", flush=True)
                    continue
                for truth, bound in ((0.0, -MARGIN), *((gain, 0.0) for gain in GAINS)):
                    cells = measure_power(scores[measure], truth, n, options.trials, bound)
                    print(f"| {row} | {truth:g} | above {bound:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
