"""Measure how often a gate passes, fails or is undecided on simulated pull requests of which the truth is known.

A pull request is a pair of systems on a collection. Queries are drawn with weights with which the mean difference of
the pair is exactly the truth: no difference, a loss of the margin, or a loss of twice the margin. The weights are as
near to equal weights as possible, and no score changes, so systems tie where they did. The second table draws samples
of several sizes and finds the number of queries with which equal systems pass in 80 % of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.difference_coverage import MEASURES, score_systems
from runner.comparison.compare import TableStatistics
from runner.comparison.gate import Check, Gate, judge_drops
from runner.statistics.noninferiority import bound_losses, queries_to_exclude
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.roots import find_root
from runner.statistics.significance import compute_differences

Floats = NDArray[np.float64]

COLLECTIONS = ("cranfield", "scifact", "xquad-en", "cosqa")
TESTED = ("nDCG@10", "RR", "Success@5")
QUERIES = (30, 100, 300)
STATISTICS = TableStatistics(correction="none", permutations=999)
PAIRS = 40
ALPHA = 0.05
STEPS = 7
LARGEST = 2000
POPULATION = 50_000


def weigh_queries(differences: Floats, truth: float) -> Floats | None:
    """Return the weights, by exponential tilting, with which the mean difference is `truth`; None if it cannot be."""
    if not differences.min() < truth < differences.max():
        return None

    def tilt(strength: float) -> Floats:
        exponents = strength * (differences - truth)
        weights = np.exp(exponents - exponents.max())
        normalised: Floats = weights / weights.sum()
        return normalised

    weights = tilt(find_root(lambda strength: float(tilt(strength) @ differences) - truth, -200.0, 200.0))
    return weights if abs(weights @ differences - truth) < 1e-6 else None


def draw_pairs(scores: Floats, truth: float, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Yield the differences and the weights of pairs of systems that can have the true difference."""
    first, second = np.triu_indices(len(scores), 1)
    yielded = 0
    for place in rng.permutation(len(first)):
        differences = compute_differences(scores[first[place]], scores[second[place]])
        if yielded < PAIRS and (weights := weigh_queries(differences, truth)) is not None:
            yielded += 1
            yield differences, weights


def judge_samples(samples: Floats, gate: Gate, measure: str, margin: float) -> list[Check]:
    """Return the check of each sample of differences."""
    means = samples.mean(axis=1)
    rules = [Check("candidate", "drop", measure, "", 0.0, float(mean), margin) for mean in means]
    return judge_drops(list(zip(rules, samples, strict=True)), gate, STATISTICS, None)


def simulate_verdicts(scores: Floats, measure: str, margin: float, truth: float, n: int, trials: int) -> list[str]:
    """Return the cells of a row: rates of pass and fail by both proofs, and of passes that hide the true loss."""
    rng = np.random.default_rng(n)
    pairs = list(draw_pairs(scores, truth, rng))
    if not pairs:
        return ["-"] * 5
    each = -(-trials // len(pairs))
    samples = np.concatenate([rng.choice(d, (each, n), p=weights) for d, weights in pairs])
    checks = judge_samples(samples, Gate(proof="noninferior", alpha=ALPHA), measure, margin)
    cells = [np.mean([check.verdict == verdict for check in checks]) for verdict in ("pass", "fail")]
    is_fail = [check.exceeds and check.p < ALPHA for check in checks]
    silent = [not check.exceeds and check.hidden < -truth - 1e-9 for check in checks]
    cells += [np.mean([not check.exceeds for check in checks]), np.mean(is_fail), np.mean(silent)]
    return [f"{rate:.3f}" for rate in cells]


def find_queries(scores: Floats, margin: float, trials: int) -> list[tuple[float, float]]:
    """Return, for pairs of equal systems, the queries needed by the formula and by simulation."""
    test, rng, rows = PAIRED_TESTS[STATISTICS.test], np.random.default_rng(0), []
    spans = np.ones(1)
    for differences, weights in draw_pairs(scores, 0.0, rng):
        population = rng.choice(differences, POPULATION, p=weights)[None]
        formula = float(queries_to_exclude(population, np.array([margin]), ALPHA, spans)[0])
        if not 30 <= formula <= LARGEST:
            continue

        def passes(n: int, differences: Floats = differences, weights: Floats = weights) -> float:
            samples = np.random.default_rng(n).choice(differences, (trials, n), p=weights)
            intervals = test.compute_intervals(samples, ALPHA, STATISTICS.permutations, STATISTICS.seed, None, None)
            return float(np.mean(bound_losses(samples, intervals, ALPHA, np.ones(trials)) <= margin))

        low, high = int(formula / 2), int(formula * 2)
        for _ in range(STEPS):
            middle = (low + high) // 2
            low, high = (middle, high) if passes(middle) < 0.8 else (low, middle)
        # The size from which on samples are enough: power falls where one more different query fits into a sample.
        step = max(high // 20, 1)
        last = max((n for n in range(high, int(high * 1.4), step) if passes(n) < 0.8), default=high - step)
        rows.append((formula, last + step))
        if len(rows) == 3:
            break
    return rows


def main() -> None:
    """Print a row for each collection, measure, truth and number of queries, then the queries needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--margin", type=float, default=0.05)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    parser.add_argument("--part", choices=("verdicts", "needed"), default="verdicts")
    options = parser.parse_args()
    if options.part == "verdicts":
        print("| scores | measure | queries | true loss | pass | fail | pass | fail | passes that hide it |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    else:
        print("| scores | measure | queries needed: as shown | simulation | ratio |\n|---|---|--:|--:|--:|")
    for collection in options.collections:
        scores = dict(zip(MEASURES, score_systems(collection), strict=True))
        for measure in TESTED:
            if options.part == "needed":
                for formula, found in find_queries(scores[measure], options.margin, options.trials):
                    row = f"{collection} | {measure} | {formula:.0f} | {found:.0f} | {formula / found:.2f}"
                    print(f"| {row} |", flush=True)
                continue
            for n in QUERIES:
                for times in (0, 1, 2):
                    truth = -times * options.margin
                    cells = simulate_verdicts(scores[measure], measure, options.margin, truth, n, options.trials)
                    print(
                        f"| {collection} | {measure} | {n} | {times * options.margin:g} | {' | '.join(cells)} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
