"""Measure how often a sequential gate errs, and how many queries it needs, if the truth is known.

Pull requests are those of `gate_verdicts`: pairs of systems on queries that are drawn with weights with which the mean
difference is exactly the truth. The gate looks after each block and stops when it is decided. An error of `noninferior`
is a pass of a loss of the limit or more, or a fail without a loss. An error of `regression` is a verdict that all these
queries contradict: a pass with a drop beyond the limit, a fail with one within it, or a fail without a true loss. For
comparison, `fixed` is how often the usual gate decides in the same way on all queries.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.difference_coverage import MEASURES, score_systems
from benchmarks.simulations.gate_verdicts import COLLECTIONS, TESTED, draw_pairs, judge_samples
from runner.comparison.gate import Gate
from runner.statistics.betting import SequentialTest

Floats = NDArray[np.float64]

QUERIES = (30, 100, 300, 1000)
TRUTHS = (0, 1, 2, 4)
BLOCK, ALPHA = 20, 0.05


def run_gate(samples: Floats, limit: float, finite: bool) -> tuple[NDArray[np.str_], Floats]:
    """Return the verdict of each sample (m x n) and the number of queries that were searched."""
    n = samples.shape[1]
    test = SequentialTest(limit, 1.0, ALPHA / 2, ALPHA / 2, n, finite)
    passes, fails = test.find_stops(samples, np.ones_like(samples))
    verdicts = np.select([passes <= np.minimum(fails, n), fails <= n], ["pass", "fail"], "undecided")
    stops = np.minimum(np.minimum(passes, fails), n)
    return verdicts, np.minimum(np.ceil(stops / BLOCK) * BLOCK, n)


def simulate_row(scores: Floats, measure: str, limit: float, truth: float, n: int, trials: int) -> list[str]:
    """Return for both proofs the rates of pass, fail and errors, the mean share of queries, and of the usual gate."""
    rng = np.random.default_rng(n)
    pairs = list(draw_pairs(scores, truth, rng))
    if not pairs:
        return ["-"] * 10
    each = -(-trials // len(pairs))
    samples = np.concatenate([rng.choice(d, (each, n), p=weights) for d, weights in pairs])
    is_beyond = samples.mean(axis=1) < -limit - 1e-9
    cells = []
    for proof, finite in (("noninferior", False), ("regression", True)):
        verdicts, searched = run_gate(samples, limit, finite)
        passed, failed = verdicts == "pass", verdicts == "fail"
        errors = failed & (truth >= 0)
        errors |= (passed & is_beyond) | (failed & ~is_beyond) if finite else passed & (truth <= -limit)
        some = rng.permutation(len(samples))[:500]
        fixed = judge_samples(samples[some], Gate(proof=proof, alpha=ALPHA), measure, limit)
        wanted = "pass" if truth > -limit else "fail"
        rates = [passed.mean(), failed.mean(), errors.mean(), np.mean([c.verdict == wanted for c in fixed])]
        cells += [f"{rate:.3f}" for rate in rates] + [f"{searched.mean() / n:.0%}"]
    return cells


def main() -> None:
    """Print a row for each collection, measure, number of queries and truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--margin", type=float, default=0.05)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    titles = [f"`{proof}`: pass | fail | errors | fixed | searched" for proof in ("noninferior", "regression")]
    print(f"| scores | measure | queries | true loss | {' | '.join(titles)} |\n|---|---|--:|--:|{'--:|' * 10}")
    for collection in options.collections:
        scores = dict(zip(MEASURES, score_systems(collection), strict=True))
        for measure in TESTED:
            for n in QUERIES:
                for times in TRUTHS:
                    truth = -times * options.margin
                    cells = simulate_row(scores[measure], measure, options.margin, truth, n, options.trials)
                    row = f"{collection} | {measure} | {n} | {times * options.margin:g}"
                    print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
