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
from runner.metrics.formulas import is_of_whole_ranking
from runner.metrics.settings import MetricSettings
from runner.tracking.record import metric_name
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import CLOCK, DATASET, QUERIES, list_final, write_collection
from tests.metrics.oracles import ORACLES

CUTOFFS, DEPTH = (1, 3, 5, 10), 10
MEASURES = [m for m in MetricSettings(k_values=CUTOFFS, depth=DEPTH).expanded if m.name != "Judged"]
"""The measures that are logged; the share of judged documents is logged as the hole rate."""

GOLDEN = [name for name, query in QUERIES.items() if any(query.grades.values())]
EMPTY = [name for name in QUERIES if name not in GOLDEN]
SEARCHED = [name for name in QUERIES if QUERIES[name].hits is not None]
ANSWERABLE = [name for name in GOLDEN if name in SEARCHED]  # failed searches enter no mean
KINDS = ("a", "b")
THRESHOLD = 0.45


def compute_measures(names: list[str]) -> dict[str, float]:
    """Return the mean of each measure over queries, by its name in MLflow, as ir_measures or an oracle computes it."""
    qrels = {name: dict(QUERIES[name].grades) for name in names}
    run = {name: {hit: 1 / rank for rank, hit in enumerate(list_final(name), start=1)} for name in names}
    means: dict[str, float] = {}
    for measure in MEASURES:
        oracle, values = ORACLES.get(measure.name), dict.fromkeys(names, 0.0)
        if oracle and measure.cutoff:
            for name, grades in qrels.items():
                values[name] = oracle([grades.get(hit, 0) for hit in run[name]], [*grades.values()], measure.cutoff)
        else:
            theirs = measure.name if is_of_whole_ranking(str(measure)) and measure.cutoff == DEPTH else str(measure)
            for metric in ir_measures.iter_calc([parse_delegated(theirs)], qrels, run):
                values[metric.query_id] = metric.value
        means[metric_name(str(measure))] = fmean(values.values())
    return means


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

MISSED = [
    (name, gold) for name in ANSWERABLE for gold, grade in QUERIES[name].grades.items()
    if grade and gold not in list_final(name)[:10]
]  # fmt: skip
KEPT = recall(THRESHOLD)
BELOW = sum((recall(-1)[name] - KEPT[name]) * sum(map(bool, QUERIES[name].grades.values())) for name in ANSWERABLE)
"""The number of gold documents among the hits that score below the threshold."""

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
        for name in dict.fromkeys(key.partition("_at_")[0] for key in MEANS)
        for k in CUTOFFS
        if f"{name}_at_1" in MEANS
    },
    **{f"hole_rate_at_{k}": holes(k) for k in CUTOFFS},
    "lost_at_10/not_retrieved": len(MISSED),
    "lost_at_10/cutoff": 0,  # as deep as the search
    "threshold_0.45/lost_at_10": BELOW,
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
    words = ("retriever=object", "retriever.factory=tests.figures.planted:build", f"metrics.depth={DEPTH}")
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
