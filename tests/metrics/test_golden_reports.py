"""The published reports of a real golden evaluation are an oracle: precision, recall, RR, statuses, true negatives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Rankings
from runner.metrics.abstention import list_statuses, measure_abstention
from runner.metrics.measures import expand
from tests.metrics.worlds import World, rankings_of

GRADES = {"high": 3, "medium": 2, "low": 1}
REPORTS = ["eval_20251214_204125_report.json", "eval_20251222_212728_report.json"]


def read(path: Path) -> tuple[dict[str, Any], World]:
    """Return a report, and its queries as a world; what it returned is in its order, whatever the scores."""
    report = json.loads(path.read_text(encoding="utf-8"))
    queries = report["query_results"]
    ids = sorted({item for query in queries for item in (*query["expected_items"], *query["retrieved_items"])})
    position = {item: place for place, item in enumerate(ids)}
    qrels = {
        place: {position[item]: GRADES[label] for item, label in query["expected_relevance"].items()}
        for place, query in enumerate(queries)
    }
    rows = [[(position[item], -float(place)) for place, item in enumerate(q["retrieved_items"])] for q in queries]
    found = rankings_of(rows, ids, 10)
    errors = {place: "failed" for place, query in enumerate(queries) if query["status"] == "error"}
    return report, World(qrels, Rankings(found.documents, found.scores, errors=errors), len(ids), ids)


@pytest.mark.parametrize("name", REPORTS)
def test_precision_recall_and_mrr_are_those_of_the_report(real_golden: Path, name: str) -> None:
    report, world = read(real_golden / "reports" / name)
    scores = world.grader.score(world.rankings, expand(["P", "R", "RR"], [1, 3, 5, 10]))
    types = np.array([query["query_type"] for query in report["query_results"]])
    slices = {name: scores.select(types == name) for name in report["by_query_type"]}
    for part, expected in [
        (scores, report["summary"]),
        *((slices[name], report["by_query_type"][name]) for name in slices),
    ]:
        means = part.means()
        for k in (1, 3, 5, 10):
            assert means[f"P@{k}"] == pytest.approx(expected["precision"][f"@{k}"], abs=1e-12)
            assert means[f"R@{k}"] == pytest.approx(expected["recall"][f"@{k}"], abs=1e-12)
        assert means["RR"] == pytest.approx(expected["mrr"], abs=1e-12)


@pytest.mark.parametrize("name", REPORTS)
def test_statuses_and_true_negatives_are_those_of_the_report(real_golden: Path, name: str) -> None:
    report, world = read(real_golden / "reports" / name)
    statuses = [query["status"] for query in report["query_results"]]
    assert list(list_statuses(world.grader, world.rankings, 10)) == statuses
    measured, expected = measure_abstention(world.grader, world.rankings), report["summary"]["edge_cases"]
    at = measured.thresholds[0]
    assert measured.no_result == expected["total"]
    assert (at.true_negatives, at.false_positives) == (expected["true_negatives"], expected["false_positives"])
    assert (at.tn_rate, at.fp_rate) == (expected["tn_rate"], expected["fp_rate"])
