"""How often intervals of Kendall's tau contain the tau with the ranking on other queries, and how often power holds.

Each trial draws systems from a population, a set of queries, and other sets of as many queries. The interval is
computed from the first set; the taus are those between its ranking and the rankings on the others, and compared with
the one that `measure_stability` expects; so is how often the best system stays the best. "bootstrap" is the percentile
interval of the tau between the observed means and resampled ones, "two bootstraps" that between two resamples.
"shrunk" is `measure_stability`.

The second table draws samples of the number of queries that `queries_needed` states for a pair of systems, and counts
how often a paired t-test detects the difference; its power should be 0.8.

    python -m benchmarks.simulations.ranking_stability [TRIALS [SCORES ...]]
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.scores import populations
from runner.statistics.clusters import by_cluster
from runner.statistics.effects import queries_needed
from runner.statistics.reliability import RankingStability, compute_taus, measure_stability
from runner.statistics.significance import compute_differences, iter_resampled_means, moments, t_test

Floats = NDArray[np.float64]

SYSTEMS, QUERIES, RESAMPLES = (3, 4, 8, 10, 20), (50, 200), 500

OTHERS = 100
"""How many other sets of queries a trial draws."""


def resample(scores: Floats, seed: int) -> Floats:
    """Return the means of the systems in bootstrap samples of the queries (resamples x m)."""
    blocks = iter_resampled_means(by_cluster(scores, None), RESAMPLES, seed)
    return np.concatenate([block for _, block in blocks], axis=1).T


def compute_intervals(scores: Floats, stability: RankingStability, seed: int) -> list[tuple[float, float]]:
    """Return the three intervals of the tau with the ranking on other queries."""
    observed, one, other = scores.mean(axis=1), resample(scores, 2 * seed), resample(scores, 2 * seed + 1)
    pairs = np.array([compute_taus(a, b[None])[0] for a, b in zip(one, other, strict=True)])
    plain = [
        tuple(np.quantile(taus, [0.025, 0.975], method="inverted_cdf").tolist())
        for taus in (compute_taus(observed, one), pairs)
    ]
    return [*plain, (stability.low, stability.high)]


def cover_tau(scores: Floats, systems: int, queries: int, trials: int) -> tuple[Floats, Floats]:
    """Return the share of intervals that contain the tau and their mean width (3 x 2), and means (4,).

    The means are those of the tau and of the expected one, and of whether the same system is best and its chance.
    """
    rng, totals, figures = np.random.default_rng(systems * 1000 + queries), np.zeros((3, 2)), np.zeros(4)
    for trial in range(trials):
        some = scores[rng.choice(len(scores), systems, replace=False)]
        one = some[:, rng.integers(some.shape[1], size=queries)]
        observed, other = one.mean(axis=1), draw_means(some, queries, rng)
        taus = compute_taus(observed, other)
        stability = measure_stability(one, resamples=RESAMPLES, seed=trial)
        same_best = (observed.argmax() == other.argmax(axis=1)).mean()
        figures += (taus.mean(), stability.tau, same_best, stability.same_best)
        for row, (low, high) in zip(totals, compute_intervals(one, stability, trial), strict=True):
            row += (((low - 1e-9 <= taus) & (taus <= high + 1e-9)).mean(), high - low)
    return totals / trials, figures / trials


def draw_means(scores: Floats, queries: int, rng: np.random.Generator) -> Floats:
    """Return the means of systems in samples of the queries of a population (OTHERS x m)."""
    times = rng.multinomial(queries, np.full(scores.shape[1], 1 / scores.shape[1]), size=OTHERS)
    means: Floats = times.astype(np.float64) @ scores.T / queries
    return means


def measure_power(scores: Floats, trials: int) -> tuple[int, float, float]:
    """Return the number of pairs that need 5 to 1,000 queries, their median number, and the share of detections."""
    rng = np.random.default_rng(0)
    found, sizes = [], []
    while len(found) < trials:
        one, other = rng.choice(len(scores), 2, replace=False)
        differences = compute_differences(scores[one], scores[other])[None]
        _, means, deviations = moments(differences)
        needed = float(queries_needed(means, deviations * np.sqrt(1 - 1 / differences.shape[1]))[0])
        if 5 <= needed <= 1000:
            sample = differences[:, rng.integers(differences.shape[1], size=int(needed))]
            found.append(float(t_test(sample)[0] < 0.05))
            sizes.append(needed)
    return len(found), float(np.median(sizes)), float(np.mean(found))


def main(arguments: list[str]) -> None:
    """Print both tables."""
    trials = int(arguments[0]) if arguments else 500
    titles = "bootstrap | two bootstraps | shrunk | tau | expected | same best | predicted"
    print(f"| scores | systems | queries | {titles} |\n|---|" + "--:|" * 9)
    scores_of = {name: scores for name, scores in populations().items() if name in (arguments[1:] or [name])}
    for name, scores in scores_of.items():
        for systems in SYSTEMS:
            for queries in QUERIES:
                covered, figures = cover_tau(scores, systems, queries, trials)
                cells = [f"{share:.3f} ({width:.2f})" for share, width in covered]
                cells += [f"{figure:.2f}" for figure in figures]
                print(f"| {name} | {systems} | {queries} | {' | '.join(cells)} |", flush=True)
    print("\n| scores | pairs | median number needed | detected |\n|---|--:|--:|--:|")
    for name, scores in scores_of.items():
        pairs, median, share = measure_power(scores, 4 * trials)
        print(f"| {name} | {pairs} | {median:.0f} | {share:.3f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
