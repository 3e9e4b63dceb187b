"""Count how many judgments it takes to rank 20 systems as all judgments do, by the order in which pairs are judged.

The pool has the top tens of 20 systems: twelve BM25 settings, four of LSA and four hybrids, drawn from 60. A tenth of
the judgments is a tenth of the pairs of this pool; pairs that the collection does not judge count as irrelevant. A
round judges a hundredth of the pool. Kendall's tau compares the systems' nDCG@10 with unjudged pairs as irrelevant
with that of the whole pool. Each row is the mean over draws of systems, with the standard error at a tenth.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import kendalltau

from benchmarks.cases import DATA
from benchmarks.simulations.systems import JudgedPool, draw_mixed_pools
from runner.features.judge.order import ORDERS, UNJUDGED, Floats, RankedPool, order_pairs

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
ROUNDS = 100
COLLECTIONS = ("cranfield", "medquad")
"""Collections with several relevant documents for most queries."""


def main(draws: int = 5, depth: int = 10, *names: str) -> None:
    """Print a row for each collection and order."""
    print("| collection | order | " + " | ".join(f"{share:.0%}" for share in SHARES) + " | s.e. |")
    print("|---|---|" + "--:|" * (len(SHARES) + 1))
    for name in names or [name for name in COLLECTIONS if (DATA / name).is_dir()]:
        pools = list(draw_mixed_pools(name, draws, depth))
        for order in ORDERS:
            table = [follow_order(pool, order, depth) for pool in pools]
            error = np.std([taus[1] for taus in table], ddof=1) / len(table) ** 0.5 if len(table) > 1 else np.nan
            cells = " | ".join(f"{tau:.3f}" for tau in np.mean(table, axis=0))
            print(f"| {name} | {order} | {cells} | {error:.3f} |", flush=True)


def follow_order(pool: JudgedPool, order: str, depth: int) -> list[float]:
    """Return Kendall's tau at each share."""
    ranked = RankedPool(pool.queries, pool.ranks)
    truth = score_ndcg(ranked, pool.grades.astype(np.float64), depth)
    step, grades, taus = -(-len(pool.grades) // ROUNDS), np.full(len(pool.grades), UNJUDGED), list[float]()
    for share in SHARES:
        while (missing := round(share * len(grades)) - int((grades != UNJUDGED).sum())) > 0:
            pairs = order_pairs(order, ranked, grades, min(step, missing))
            grades[pairs] = pool.grades[pairs]
        scores = score_ndcg(ranked, np.maximum(grades, 0).astype(np.float64), depth)
        taus.append(float(kendalltau(truth, scores).statistic))
    return taus


def score_ndcg(pool: RankedPool, gains: Floats, k: int) -> Floats:
    """Return the mean nDCG@k of each system, given the gain of each pair (S,)."""
    queries, n = pool.queries, int(pool.queries.max(initial=0)) + 1
    order = np.lexsort((-gains, queries))
    places = np.arange(len(gains)) - np.searchsorted(queries[order], queries[order])
    ideal = np.bincount(queries[order], np.where(places < k, gains[order] / np.log2(places + 2), 0), n)
    inside = (pool.ranks > 0) & (pool.ranks <= k)
    discounts = np.where(inside, 1 / np.log2(np.maximum(pool.ranks, 1) + 1), 0.0)
    there = np.divide(gains, ideal[queries], out=np.zeros(len(gains)), where=ideal[queries] > 0)
    scores: Floats = discounts @ there / max(len(np.unique(queries)), 1)
    return scores


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
