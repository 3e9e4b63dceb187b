"""How many judgments rank 20 systems as all judgments do, by the order in which pairs are judged.

The systems are twelve BM25 settings, four of LSA and four hybrids, whose top tens form the pool; a pair that nobody
judged counts as irrelevant. A round judges a hundredth of the pool. Kendall's tau compares the systems' nDCG@10 with
that of the whole pool: with unjudged pairs as irrelevant, and with the grades that the judged pairs and the ranks let
expect.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from benchmarks.cases import DATA
from benchmarks.simulations.systems import DEPTH, JudgedPool, load_mixed_pool
from runner.analysis.judging_order import UNJUDGED, PoolOrder, RankedPool, expect_grades, order_pairs

Floats = NDArray[np.float64]

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
ROUNDS = 100


def score_systems(pool: JudgedPool, gains: Floats) -> Floats:
    """Return the mean nDCG@10 of each system."""
    n = int(pool.queries.max()) + 1
    best = np.lexsort((-gains, pool.queries))
    places = np.empty(len(gains), dtype=np.int64)
    places[best] = np.arange(len(gains)) - np.searchsorted(pool.queries, pool.queries)
    ideal = np.bincount(pool.queries, np.where(places < DEPTH, gains / np.log2(places + 2), 0), n)
    discounts = np.where(pool.ranks > 0, 1 / np.log2(np.maximum(pool.ranks, 1) + 1), 0)
    dcg = np.stack([np.bincount(pool.queries, discount * gains, n) for discount in discounts])
    ndcg: Floats = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
    return ndcg.mean(axis=1)


def main() -> None:
    """Print a row for each collection and order."""
    print("| collection | order | unjudged are | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
    print("|---|---|---|" + "--:|" * len(SHARES))
    for name in (name for name in ("cranfield", "scifact") if (DATA / name).is_dir()):
        pool = load_mixed_pool(name)
        truth = score_systems(pool, pool.grades.astype(np.float64))
        ranked = RankedPool(pool.queries, pool.ranks)
        step = -(-len(pool.grades) // ROUNDS)
        for order in get_args(PoolOrder):
            grades = np.full(len(pool.grades), UNJUDGED)
            rows: dict[str, list[float]] = {"irrelevant": [], "estimated": []}
            for share in SHARES:
                while (missing := round(share * len(grades)) - int((grades != UNJUDGED).sum())) > 0:
                    pairs = order_pairs(order, ranked, grades, min(step, missing))
                    grades[pairs] = pool.grades[pairs]
                gains = {
                    "irrelevant": np.maximum(grades, 0).astype(float),
                    "estimated": expect_grades(ranked, grades).mean,
                }
                for way, values in gains.items():
                    rows[way].append(kendalltau(truth, score_systems(pool, values)).statistic)
            for way, taus in rows.items():
                print(f"| {name} | {order} | {way} | " + " | ".join(f"{tau:.3f}" for tau in taus) + " |", flush=True)


if __name__ == "__main__":
    main()
