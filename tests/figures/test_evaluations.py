"""The figures of an evaluation in the database, against ir_measures and values worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isnan
from pathlib import Path
from statistics import fmean, median

import ir_measures
import pytest

from runner.evaluation import bench as evaluation
from runner.metrics.delegated import parse_delegated
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import CLOCK, DATASET, QUERIES, list_final, write_collection

CUTOFFS = (1, 3, 5, 10)
GOLDEN = [name for name, query in QUERIES.items() if any(query.grades.values())]
EMPTY = [name for name in QUERIES if name not in GOLDEN]
SEARCHED = [name for name in QUERIES if QUERIES[name].hits is not None]
ANSWERABLE = [name for name in GOLDEN if name in SEARCHED]  # failed searches enter no mean
KINDS = ("a", "b")
THRESHOLD = 0.45


def compute_measures(names: list[str]) -> dict[str, float]:
    """Return the mean of each measure over queries, by its name in MLflow, as ir_measures computes it."""
    qrels = {name: dict(QUERIES[name].grades) for name in names}
    run = {name: {hit: 1 / rank for rank, hit in enumerate(list_final(name), start=1)} for name in names}
    shared = {"ndcg": "nDCG", "precision": "P", "recall": "R", "mrr": "RR", "map": "AP", "success": "Success"}
    wanted = {f"{own}_at_{k}": f"{name}@{k}" for own, name in shared.items() for k in CUTOFFS}
    wanted |= {"mrr": "RR", "map_at_10": "AP@10", "rprec_at_10": "Rprec", "bpref_at_10": "Bpref"}
    values: dict[str, dict[str, float]] = {own: dict.fromkeys(names, 0.0) for own in wanted}
    for own, measure in wanted.items():
        for metric in ir_measures.iter_calc([parse_delegated(measure)], qrels, run):
            values[own][metric.query_id] = metric.value
    for k in CUTOFFS:
        pairs = [(values[f"precision_at_{k}"][name], values[f"recall_at_{k}"][name]) for name in names]
        values[f"f1_at_{k}"] = {n: 2 * p * r / (p + r) if p else 0.0 for n, (p, r) in zip(names, pairs, strict=True)}
    return {own: fmean(by_query.values()) for own, by_query in values.items()}


def best(name: str) -> float:
    """Return the score of the best hit of a query, below all others if there is none."""
    hits = [score for document, score in QUERIES[name].hits or [] if document != name and not isnan(score)]
    return hits[0] if hits else -1.0


def holes(k: int) -> float:
    """Return the share of unjudged documents among the first k hits of the queries with gold."""
    hits = [(name, hit) for name in ANSWERABLE for hit in list_final(name)[:k]]
    return fmean(hit not in QUERIES[name].grades for name, hit in hits)


def recall(above: float) -> Mapping[str, float]:
    """Return the recall of each answerable query from its hits that score above a threshold."""
    kept: dict[str, float] = {}
    for name in ANSWERABLE:
        hits, lowest = set(), float("inf")
        for document, score in QUERIES[name].hits or []:
            lowest = lowest if isnan(score) else min(lowest, score)  # a hit scores no more than the one before it
            if not isnan(score) and lowest >= above:
                hits.add(document)
        gold = {document for document, grade in QUERIES[name].grades.items() if grade}
        kept[name] = len(hits & gold) / len(gold)
    return kept


PAIRS = [(best(one), best(other)) for one in ANSWERABLE for other in EMPTY]
TIMES = [place + 1 for place, name in enumerate(QUERIES) if name in SEARCHED]  # seconds
FILTERED = [name for name, query in QUERIES.items() if query.year]
EVEN = {name: [hit for hit in list_final(name) if hit[0] == "d" and int(hit[1:]) % 2] for name in FILTERED}
BAND = "filter_over_20_percent"

MEANS = compute_measures(ANSWERABLE)
EXPECTED = {
    **MEANS,
    **{
        f"by_type/{kind}/{name}": mean
        for kind in KINDS
        for name, mean in compute_measures([name for name in ANSWERABLE if QUERIES[name].kind == kind]).items()
    },
    **{
        f"curve/{name}, step {k}": MEANS[f"{name}_at_{k}"]
        for name in ("ndcg", "precision", "recall", "mrr", "map", "success", "f1")
        for k in CUTOFFS
    },
    **{f"hole_rate_at_{k}": holes(k) for k in CUTOFFS},
    "auroc": fmean((one > other) + (one == other) / 2 for one, other in PAIRS),
    "tn_rate": 2 / 5,
    "fp_rate": 3 / 5,
    "answerable_rejected": 1 / len(ANSWERABLE),
    "by_type/b/answerable_rejected": 1 / 4,  # b2, of b1, b2, b3 and d29
    "by_type/a/answerable_rejected": 0,
    "by_type/a/tn_rate": 1 / 3,
    "by_type/a/fp_rate": 2 / 3,
    "by_type/b/tn_rate": 1 / 2,
    "by_type/b/fp_rate": 1 / 2,
    "threshold_0.45/tn_rate": fmean(best(name) < THRESHOLD for name in EMPTY),
    "threshold_0.45/fp_rate": fmean(best(name) >= THRESHOLD for name in EMPTY),
    "threshold_0.45/recall": fmean(recall(THRESHOLD).values()),
    "threshold_0.45/recall_lost": fmean(recall(-1).values()) - fmean(recall(THRESHOLD).values()),
    "threshold_0.45/answerable_rejected": fmean(best(name) < THRESHOLD for name in ANSWERABLE),
    "queries/failed": 2,
    "own_documents_excluded": 2,
    "unknown_items": 2,
    "repeated_items": 2,
    "rising_scores": 2,
    "nan_scores": 2,
    "latency/mean_ms": 1000 * fmean(TIMES),
    "latency/median_ms": 1000 * median(TIMES),
    "latency/p95_ms": 1000 * (14 + 0.4),  # 0.95 of the way over the twelve gaps between 13 times is 11.4 gaps
    "time/index_s": 3,
    "time/search_s": sum(range(1, len(QUERIES) + 1)),
    "time/score_s": 2,
    "time/wall_s": 3 + sum(range(1, len(QUERIES) + 1)) + 2,
    "by_type/a/queries": 4,
    "by_type/b/queries": 4,
    f"queries.{BAND}": 3,
    f"nDCG_10.{BAND}": compute_measures(FILTERED)["ndcg_at_10"],
    f"hits_outside_filter_at_10.{BAND}": sum(map(len, EVEN.values())),
    f"short_results_at_10.{BAND}": 3,
}


def describe_slowly() -> dict[str, object]:
    """Return nothing about the environment; it takes 2 s, as the rest of scoring does not."""
    CLOCK[0] += 2
    return {}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of the engine of the planted collection, by a clock that it moves itself."""
    folder = tmp_path_factory.mktemp("evaluated")
    prepare_store(migrated, folder)
    write_collection(folder)
    words = ("retriever=object", "retriever.factory=tests.figures.planted:build", "metrics.depth=10")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: CLOCK[0])
        patch.setattr(evaluation, "describe_environment", describe_slowly)
        run_logged(
            folder,
            *words,
            *DATASET,
            f"metrics.k_values={list(CUTOFFS)}",
            f"metrics.thresholds=[{THRESHOLD}]",
            code=1,  # two searches fail
        )
    return read_figures(folder)["object"]


def test_no_recall_is_lost_without_a_threshold(figures: Figures) -> None:
    assert [name for name in figures if name.endswith("recall_lost")] == ["threshold_0.45/recall_lost"]


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_of_an_evaluation_is_that_of_the_oracle(figures: Figures, name: str) -> None:
    assert figures[name] == pytest.approx(EXPECTED[name])
