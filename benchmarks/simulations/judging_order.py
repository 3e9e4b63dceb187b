"""Count how many judgments it takes to rank 20 systems as all judgments do, by the order in which pairs are judged.

The pool has the top tens of 20 systems: twelve BM25 settings, four of LSA and four hybrids, drawn from 60. A tenth of
the judgments is a tenth of the pairs of this pool; pairs that the collection does not judge count as irrelevant. A
round judges a hundredth of the pool. Kendall's tau compares the systems' nDCG@10 with that of the whole pool: with
unjudged pairs as irrelevant, and as the mean over random grades, drawn as the judged pairs and the ranks predict.
Each row is the mean over draws of systems, with the standard error at a tenth.

`by the known model` shows what limits every estimate that knows only ranks: the random grades come from a logistic
model of ranks and queries that is fitted to all grades. The row `known model` adds what limits every order: the
expected tau if, in addition, the model is right and pairs are chosen by the true differences between systems.
"""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
from scipy.stats import kendalltau, norm

from benchmarks.cases import DATA
from benchmarks.simulations.systems import JudgedPool, draw_mixed_pools
from runner.analysis.judging_order import (
    UNJUDGED,
    Floats,
    Ints,
    PoolOrder,
    RankedPool,
    expect_ndcg,
    order_pairs,
    score_ndcg,
)

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
ROUNDS = 100
COLLECTIONS = ("cranfield", "medquad")
"""Collections with several relevant documents for most queries."""


def main(draws: int = 5, depth: int = 10, *names: str) -> None:
    """Print a row for each collection and order."""
    print("| collection | order | unjudged are | " + " | ".join(f"{share:.0%}" for share in SHARES) + " | s.e. |")
    print("|---|---|---|" + "--:|" * (len(SHARES) + 1))
    for name in names or [name for name in COLLECTIONS if (DATA / name).is_dir()]:
        rows: dict[str, list[list[float]]] = {}
        for pool in draw_mixed_pools(name, draws, depth):
            known = model_relevance(pool)
            for order in get_args(PoolOrder):
                for way, taus in follow_order(pool, order, known, depth).items():
                    rows.setdefault(f"{order} | {way}", []).append(taus)
            rows.setdefault("known model | expected", []).append(expect_taus(pool, known, depth))
        for title, table in rows.items():
            error = np.std([taus[1] for taus in table], ddof=1) / len(table) ** 0.5 if len(table) > 1 else np.nan
            cells = " | ".join(f"{tau:.3f}" for tau in np.mean(table, axis=0))
            print(f"| {name} | {title} | {cells} | {error:.3f} |", flush=True)


def follow_order(pool: JudgedPool, order: PoolOrder, known: Floats, depth: int) -> dict[str, list[float]]:
    """Return Kendall's tau at each share, by how unjudged pairs count; `known` are probabilities of relevance (N,)."""
    ranked = RankedPool(pool.queries, pool.ranks)
    truth = score_ndcg(ranked, pool.grades.astype(np.float64), depth)
    step, grades = -(-len(pool.grades) // ROUNDS), np.full(len(pool.grades), UNJUDGED)
    rows: dict[str, list[float]] = {"irrelevant": [], "estimated": [], "by the known model": []}
    for share in SHARES:
        while (missing := round(share * len(grades)) - int((grades != UNJUDGED).sum())) > 0:
            pairs = order_pairs(order, ranked, grades, min(step, missing))
            grades[pairs] = pool.grades[pairs]
        scores = {
            "irrelevant": score_ndcg(ranked, np.maximum(grades, 0).astype(np.float64), depth),
            "estimated": expect_ndcg(ranked, grades, depth),
            "by the known model": mean_ndcg(pool, grades, known, depth),
        }
        for way, values in scores.items():
            rows[way].append(float(kendalltau(truth, values).statistic))
    return rows


def mean_ndcg(pool: JudgedPool, grades: Ints, chance: Floats, depth: int, draws: int = 40) -> Floats:
    """Return the mean nDCG of each system over random grades of the unjudged pairs."""
    rng, gold, ranked = np.random.default_rng(0), pool.grades[pool.grades > 0], RankedPool(pool.queries, pool.ranks)
    total = np.zeros(len(pool.ranks))
    for _ in range(draws):
        drawn = np.where(rng.random(len(chance)) < chance, rng.choice(gold, len(chance)), 0.0)
        total += score_ndcg(ranked, np.where(grades == UNJUDGED, drawn, grades), depth)
    return total / draws


def expect_taus(pool: JudgedPool, chance: Floats, depth: int) -> list[float]:
    """Return the expected tau at each share if the model of relevance and the true differences are known."""
    ranked, size = RankedPool(pool.queries, pool.ranks), len(pool.grades)
    truth = score_ndcg(ranked, pool.grades.astype(np.float64), depth)
    gold = pool.grades[pool.grades > 0]
    weights = ranked.discounts * mean_inverse_ideal(pool, chance, depth)[pool.queries]
    variance = chance * (gold**2).mean() - (chance * gold.mean()) ** 2
    apart, taus, step = np.abs(truth[:, None] - truth), list[float](), -(-size // ROUNDS)
    judged = np.zeros(size, dtype=np.bool_)
    for share in SHARES:
        while (missing := round(share * size) - int(judged.sum())) > 0:
            spread = _spread(weights, np.where(judged, 0, variance))
            open_ = norm.pdf(apart / spread) * apart / spread**3  # the derivative of the expected number of errors
            laplacian = np.diag(open_.sum(axis=1)) - open_
            gain = np.where(judged, -np.inf, variance * (weights * (laplacian @ weights)).sum(axis=0))
            judged[np.argsort(-gain, kind="stable")[: min(step, missing)]] = True
        errors = norm.cdf(-apart / _spread(weights, np.where(judged, 0, variance)))
        systems = len(truth)
        taus.append(1 - 4 * float(np.triu(errors, 1).sum()) / (systems * (systems - 1)))
    return taus


def model_relevance(pool: JudgedPool) -> Floats:
    """Return each pair's probability of relevance by a logistic model of ranks and queries, fitted to all grades."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    height = np.where(pool.ranks > 0, np.log((pool.ranks.max() + 1) / np.maximum(pool.ranks, 1)), 0.0)
    places = np.arange(len(pool.queries))
    queries = csr_matrix((np.ones(len(places)), (places, pool.queries)))
    features = hstack([csr_matrix(height.T), queries]).tocsr()
    model = LogisticRegression(max_iter=1000).fit(features, pool.grades > 0)
    chance: Floats = model.predict_proba(features)[:, 1]
    return chance


def mean_inverse_ideal(pool: JudgedPool, chance: Floats, depth: int, draws: int = 20) -> Floats:
    """Return the mean of 1 / ideal DCG of each query over random grades; 0 counts where nothing is relevant."""
    rng, gold, queries = np.random.default_rng(0), pool.grades[pool.grades > 0], pool.queries
    total = np.zeros(int(queries.max()) + 1)
    for _ in range(draws):
        gains = np.where(rng.random(len(chance)) < chance, rng.choice(gold, len(chance)), 0.0)
        order = np.lexsort((-gains, queries))
        places = np.arange(len(gains)) - np.searchsorted(queries[order], queries[order])
        parts = np.where(places < depth, gains[order] / np.log2(places + 2), 0)
        ideal = np.bincount(queries[order], parts, len(total))
        total += np.divide(1, ideal, out=np.zeros(len(total)), where=ideal > 0)
    return total / draws


def _spread(weights: Floats, variance: Floats) -> Floats:
    """Return the standard deviation of each difference between two systems (systems x systems)."""
    scaled = weights * np.sqrt(variance)
    covariance = scaled @ scaled.T
    squares = covariance.diagonal()[:, None] + covariance.diagonal() - 2 * covariance
    spread: Floats = np.sqrt(np.maximum(squares, 1e-12))
    return spread


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
