"""Small results with seeded numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrievers.base import NOTHING, Rankings
from retrievers.work import Cost
from runner.evaluation.losses import Losses
from runner.evaluation.result import DatasetSummary, Hits, QueryTable, Result, Timings
from runner.metrics.abstention import Abstention, AtThreshold

MEASURES = ("nDCG@1", "nDCG@10", "P@1", "P@10", "R@1", "R@10", "R@100", "RR", "AP")
TYPES = ("precise", "semantic", "wide")


def result(
    name: str = "bm25",
    *,
    retriever: str = "bm25",
    swept: Mapping[str, Any] | None = None,
    seed: int = 0,
    quality: float = 0.6,
    queries: int = 30,
    no_result: int = 4,
    types: Sequence[str] = TYPES,
    primary: str = "nDCG@10",
    mean_ms: float | None = 1.5,
    hits: bool = True,
    text: str = "how does a lighthouse keep its lamp burning in a storm",
    errors: Mapping[int, str] | None = None,
) -> Result:
    """Return a result of queries q000, q001, ...; the last `no_result` of them have no gold."""
    rng, shared = np.random.default_rng(seed + 1000), np.random.default_rng(7)
    n = queries + no_result
    difficulty = shared.normal(0, 0.25, n)
    base = np.clip(quality + difficulty + rng.normal(0, 0.1, n), 0, 1).round(4)
    errors = errors or {}
    counted = np.array([i < queries and i not in errors for i in range(n)])
    scores = np.stack([_measure(m, base) for m in MEASURES])
    scores[:, ~counted] = np.nan
    of_type = [types[i % len(types)] if types else "" for i in range(n)]
    ids = [f"q{i:03d}" for i in range(n)]
    means = {m: _mean(row[counted]) for m, row in zip(MEASURES, scores, strict=True)}
    by_type = {
        t: {"queries": float(sum(c for c, u in zip(counted, of_type, strict=True) if u == t))}
        | {m: _mean(row[counted & (np.array(of_type) == t)]) for m, row in zip(MEASURES, scores, strict=True)}
        for t in types
    }
    statuses = ["partial" if row < 1 else "pass" for row in np.nan_to_num(scores[MEASURES.index("RR")])]
    for i in range(n):
        if i in errors:
            statuses[i] = "error"
        elif i >= queries:
            statuses[i] = "false_positive" if i % 2 else "true_negative"
        elif scores[MEASURES.index("RR"), i] == 0:
            statuses[i] = "fail"
    negatives = statuses.count("true_negative")
    thresholds = tuple(
        AtThreshold(
            threshold=threshold,
            true_negatives=negatives,
            false_positives=no_result - negatives,
            tn_rate=negatives / no_result if no_result else math.nan,
            fp_rate=1 - negatives / no_result if no_result else math.nan,
            recall=means["R@10"],
            recall_lost=0.0,
            left_with_nothing=0.0,
        )
        for threshold in (None, 0.5)
    )
    return Result(
        name=name,
        retriever=retriever,
        config={
            "retriever": {"_target_": "retrievers.lexical.bm25.BM25", "k1": 1.2},
            "choices": {"retriever": retriever},
        },
        config_hash="c0ffee",
        swept=swept or {},
        dataset=DatasetSummary("harbour", "test", "d1" * 16, "c1" * 16, 120, n, 3 * queries),
        primary=primary,
        queries=QueryTable(
            ids=ids,
            texts=[f"{text} {i}" for i in range(n)],
            types=of_type,
            expected=[[f"d{i}", f"d{i + 50}"] if i < queries else [] for i in range(n)],
            statuses=statuses,
            errors=[errors.get(i, "") for i in range(n)],
            notes=[""] * n,
        ),
        measures=MEASURES,
        scores=scores,
        means=means,
        intervals={m: (mean - 0.05, mean + 0.05) for m, mean in means.items()},
        by_type=by_type,
        abstention=Abstention(
            no_result=no_result,
            answerable=queries,
            errors=len(errors),
            k=10,
            auroc=0.875 if no_result else math.nan,
            thresholds=thresholds,
        ),
        timings=Timings(
            index_s=2.5,
            search_s=0.25,
            score_s=0.01,
            wall_s=1.75,
            mean_ms=mean_ms,
            p95_ms=None if mean_ms is None else 2 * mean_ms,
            stages=[Cost("postings", 2.25, True), Cost("rankings", 0.25, False)],
            each_ms=() if mean_ms is None else [mean_ms],
        ),
        hits=_create_hits(n, scores[MEASURES.index("RR")], rng) if hits else None,
        diagnostics={"recall_of_exact": 0.98} if retriever == "dense" else {},
        environment={"python": "3.12", "cpu": 2},
    )


def sweep(count: int = 25, **options: Any) -> list[Result]:
    """Return results over k1 and b, better the nearer they are to 1.2 and 0.75, without rankings."""
    b_values = (0.0, 0.3, 0.5, 0.75, 1.0)
    found = []
    for i in range(count):
        k1, b = 0.4 * (i // 5 + 1), b_values[i % 5]
        quality = 0.65 - 0.1 * abs(k1 - 1.2) - 0.25 * abs(b - 0.75)
        swept = {"retriever": "bm25", "retriever.k1": f"{k1:.1f}", "retriever.b": str(b)}
        name = f"retriever=bm25,retriever.k1={k1:.1f},retriever.b={b}"
        settings: dict[str, Any] = {"seed": i, "quality": quality, "mean_ms": 1 + i % 7 / 5} | options
        found.append(result(name, swept=swept, hits=False, **settings))
    return found


def mixed() -> list[Result]:
    """Return results of three retrievers, only one of which has k1."""
    of_bm25 = [replace(r, swept={**r.swept}) for r in sweep(10)]
    dense = [
        result(
            f"retriever=dense,encoder={encoder}",
            retriever="dense",
            swept={"retriever": "dense", "encoder": encoder},
            seed=50 + i,
            quality=0.7 - 0.12 * i,
            mean_ms=12.0 * (i + 1),
            hits=False,
        )
        for i, encoder in enumerate(("minilm", "potion"))
    ]
    hybrid = result(
        "retriever=hybrid", retriever="hybrid", swept={"retriever": "hybrid"}, seed=60, quality=0.74, mean_ms=14.5
    )
    return [*of_bm25, *dense, hybrid]


def lose_gold(found: Result, seed: int) -> Result:
    """Return a result that missed some of its gold documents, each by one of two steps."""
    gold = sum(map(len, found.queries.expected))
    codes = np.random.default_rng(seed).integers(-1, 2, gold).astype(np.int8)
    return replace(found, losses=Losses(10, ("not retrieved", "cutoff"), codes, ("",), np.zeros((1, gold), np.int32)))


def _measure(measure: str, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values for a measure that depend on how well a query went, larger for larger cutoffs."""
    name, _, cutoff = measure.partition("@")
    if name == "RR":
        return np.where(base < 0.2, 0, 1 / np.ceil((1.0001 - base) * 6))
    if name == "P":
        return base if cutoff == "1" else base / 5
    return np.clip(base * {"1": 0.5, "10": 1.0, "100": 1.25, "": 0.8}[cutoff], 0, 1)


def _mean(values: np.ndarray[Any, Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _create_hits(n: int, reciprocal: np.ndarray[Any, Any], rng: np.random.Generator) -> Hits:
    """Return rankings whose first gold stands where the reciprocal rank says."""
    k = 12
    documents = np.stack([rng.permutation(np.arange(200, 200 + k)) for _ in range(n)]).astype(np.int32)
    grades = np.full((n, k), NOTHING, dtype=np.int32)
    for i, value in enumerate(reciprocal):
        if value > 0:
            place = round(1 / value) - 1
            documents[i, place], grades[i, place] = i, 2
    scores = np.sort(rng.random((n, k)))[:, ::-1].astype(np.float32)
    return Hits(Rankings(documents, scores), [f"d{i}" for i in range(300)], grades)


def with_variants(of: Result, times: int) -> Result:
    """Return a result each of whose queries is there several times, as variants that form a cluster."""
    q = of.queries
    columns = {name: [value for value in column for _ in range(times)] for name, column in vars(q).items()}
    columns["clusters"] = list(columns["ids"])
    columns["ids"] = [f"{query}.{place % times}" for place, query in enumerate(columns["ids"])]
    dataset = replace(of.dataset, fingerprint="v1" * 16, queries=times * len(q.ids), clusters=len(q.ids))
    scores = np.repeat(of.scores, times, axis=1)
    return replace(of, queries=QueryTable(**columns), scores=scores, dataset=dataset, hits=None)
