"""How often a sweep of equal systems reports a difference to its best, and how many true differences it finds.

Systems are made equal in four ways: the scores of each query are assigned to the systems at random ("shuffled"); the
scores of each system are shifted to the same mean ("shifted"), which keeps how systems differ in spread and
correlation; they are shifted only on the queries on which any two systems differ ("ties kept"); or queries are drawn
with weights with which all systems have the same mean ("reweighted"), which changes no score. Queries are then drawn
with replacement. Power is measured on the scores as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations.scores import populations
from runner.statistics.corrections import holm
from runner.statistics.maxt import run_max_t
from runner.statistics.significance import compute_differences, t_test

Floats = NDArray[np.float64]

ALPHA, PERMUTATIONS = 0.05, 999
AS_THEY_ARE = "as they are"
TIES_KEPT, REWEIGHTED = "ties kept", "reweighted"
KINDS = ("shuffled", "shifted", TIES_KEPT, REWEIGHTED, AS_THEY_ARE)
SYSTEMS, QUERIES = (2, 10, 30, 100), (50, 300)


def against_the_best(scores: Floats, best: int) -> Floats:
    """Return p-values by t-tests against the best, corrected by Holm for these alone, as if it was named before."""
    others = np.arange(len(scores)) != best
    found = np.ones(len(scores))
    found[others] = holm(t_test(compute_differences(scores[others], scores[best])))
    return found


def holm_of_pairs(scores: Floats, best: int) -> Floats:
    """Return p-values by t-tests against the best, corrected by Holm for all pairs."""
    first, second = np.triu_indices(len(scores), 1)
    corrected = holm(t_test(compute_differences(scores[first], scores[second])))
    found = np.ones((len(scores), len(scores)))
    found[first, second] = found[second, first] = corrected
    return found[best]


def max_t(scores: Floats, best: int) -> Floats:
    """Return the p-values of the step-down max-T test of all pairs."""
    return run_max_t(scores, PERMUTATIONS).p_values[best]


PROCEDURES = {
    "Holm, comparisons with the best only": against_the_best,
    "Holm, all pairs": holm_of_pairs,
    "max-T": max_t,
}


def sample(population: Floats, m: int, n: int, kind: str, rng: np.random.Generator) -> Floats:
    """Return scores of some systems on some queries, equal unless the kind is `AS_THEY_ARE`."""
    scores = population[rng.permutation(len(population))[:m]]
    if kind == "shifted":
        scores = scores - scores.mean(axis=1, keepdims=True)
    if kind == TIES_KEPT and (differ := (scores != scores[0]).any(axis=0)).any():
        scores[:, differ] -= scores[:, differ].mean(axis=1, keepdims=True)
    if kind == REWEIGHTED:
        return scores[:, rng.choice(scores.shape[1], n, p=find_weights(scores))]
    scores = scores[:, rng.integers(0, scores.shape[1], n)]
    return rng.permuted(scores, axis=0) if kind == "shuffled" else scores


def find_weights(scores: Floats) -> Floats:
    """Return the weights of queries nearest to equal ones with which all systems have the same mean (queries,).

    They are those of the largest entropy: exponentials of a sum of the differences from a query's mean, whose factors
    minimise the sum of these exponentials. Raises `ValueError` if there are none.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax

    contrasts = scores - scores.mean(axis=0)

    def measure(factors: Floats) -> tuple[float, Floats]:
        return float(logsumexp(factors @ contrasts)), contrasts @ softmax(factors @ contrasts)

    with np.errstate(over="ignore", invalid="ignore"):  # without such weights, the factors grow without a limit
        factors = minimize(measure, np.zeros(len(scores)), jac=True, options={"gtol": 1e-8}).x
    weights: Floats = softmax(factors @ contrasts)
    if not np.abs(contrasts @ weights).max() <= 1e-6:  # they may be NaN
        raise ValueError("no weights of queries make the means of all systems equal")
    return weights


def main() -> None:
    """Print a row for each population, kind, number of systems and of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000, help="for each row of equal systems")
    parser.add_argument("--power-trials", type=int, default=100, help="for each row of systems as they are")
    parser.add_argument("--scores", nargs="*", help="populations; all by default")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--systems", nargs="*", type=int, default=SYSTEMS)
    parser.add_argument("--queries", nargs="*", type=int, default=QUERIES)
    parser.add_argument("--seed", nargs="*", type=int, default=[], help="one or more numbers, for other draws")
    options = parser.parse_args()
    print("| scores | treatment | number of systems | queries | trials | " + " | ".join(PROCEDURES) + " |")
    print("|---|---|" + "--:|" * (3 + len(PROCEDURES)))
    for name, population in populations().items():
        for kind, m, n in product(options.kinds, options.systems, options.queries):
            if not options.scores or name in options.scores:
                trials = options.power_trials if kind == AS_THEY_ARE else options.trials
                cells = " | ".join(f"{share:.3f}" for share in shares(population, m, n, kind, trials, options.seed))
                print(f"| {name} | {kind} | {m} | {n} | {trials} | {cells} |", flush=True)


def shares(population: Floats, m: int, n: int, kind: str, trials: int, seed: Sequence[int] = ()) -> Floats:
    """Return, by procedure, the share of trials with a false difference, or of differences that are reported."""
    rng = np.random.default_rng([m, n, *seed])
    sums = np.zeros(len(PROCEDURES))
    for _ in range(trials):
        scores = sample(population, m, n, kind, rng)
        best = int(np.argmax(scores.mean(axis=1)))
        different = np.array([(test(scores, best) < ALPHA).sum() for test in PROCEDURES.values()])
        sums += different / (m - 1) if kind == AS_THEY_ARE else different > 0
    means: Floats = sums / trials
    return means


if __name__ == "__main__":
    main()
