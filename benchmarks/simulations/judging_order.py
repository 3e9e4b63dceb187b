"""Count how many judgments it takes to rank 20 systems as all judgments do, by the order in which pairs are judged.

The systems are twelve BM25 settings, four of LSA and four hybrids, whose top tens form the pool; a pair that nobody
judged counts as irrelevant. A round judges a hundredth of the pool. Kendall's tau compares the systems' nDCG@10 with
that of the whole pool: with unjudged pairs as irrelevant, and as the mean over random grades, drawn as the judged pairs
and the ranks predict.
"""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
from scipy.stats import kendalltau

from benchmarks.cases import DATA
from benchmarks.simulations.systems import DEPTH, load_mixed_pool
from runner.analysis.judging_order import UNJUDGED, PoolOrder, RankedPool, expect_ndcg, order_pairs, score_ndcg

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
ROUNDS = 100
COLLECTIONS = ("cranfield", "medquad")
"""Collections with several relevant documents for most queries."""


def main(*names: str) -> None:
    """Print a row for each collection and order."""
    print("| collection | order | unjudged are | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
    print("|---|---|---|" + "--:|" * len(SHARES))
    for name in names or [name for name in COLLECTIONS if (DATA / name).is_dir()]:
        pool = load_mixed_pool(name)
        ranked = RankedPool(pool.queries, pool.ranks)
        truth = score_ndcg(ranked, pool.grades.astype(np.float64), DEPTH)
        step = -(-len(pool.grades) // ROUNDS)
        for order in get_args(PoolOrder):
            grades = np.full(len(pool.grades), UNJUDGED)
            rows: dict[str, list[float]] = {"irrelevant": [], "estimated": []}
            for share in SHARES:
                while (missing := round(share * len(grades)) - int((grades != UNJUDGED).sum())) > 0:
                    pairs = order_pairs(order, ranked, grades, min(step, missing))
                    grades[pairs] = pool.grades[pairs]
                scores = {
                    "irrelevant": score_ndcg(ranked, np.maximum(grades, 0).astype(np.float64), DEPTH),
                    "estimated": expect_ndcg(ranked, grades, DEPTH),
                }
                for way, values in scores.items():
                    rows[way].append(kendalltau(truth, values).statistic)
            for way, taus in rows.items():
                print(f"| {name} | {order} | {way} | " + " | ".join(f"{tau:.3f}" for tau in taus) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
