"""A plan says which differences the queries can show: from earlier results, or from an assumed spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from runner.__main__ import main
from runner.comparison.recommendation import SAME_SPEED
from runner.statistics.effects import detectable_difference
from runner.sweep.report.plan import describe_power
from runner.sweep.work import Plan, PlannedPower

GOLDEN = ("retriever=bm25", "retriever.k1=0.4,1.2,2.4", "retriever.b=0.0,1.0")


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_a_plan_says_what_the_queries_can_show_before_and_after_results_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    shown = run("plan", *GOLDEN, capsys=capsys)
    (single, corrected) = detectable_difference(np.array([54, 54]), np.array([0.26, 0.26]), np.array([0.05, 0.05 / 15]))
    assert (
        f"nDCG@10 on 54 queries: differences below about {corrected:.3f} usually cannot be seen (power 80%, "
        "corrected for 15 pairs; the deviation of differences is 0.26, assumed: there are no two earlier results "
        "on this dataset)."
    ) in shown
    assert f"A comparison with a baseline detects a loss of about {single:.3f}. To detect a loss of 0.01, " in shown
    board = orjson.loads(run("-m", *GOLDEN, "--json", capsys=capsys))["leaderboards"][0]
    (power,) = orjson.loads(run("plan", *GOLDEN, "--json", capsys=capsys))["power"]
    assert power["results"] == 5
    assert (power["units"], power["pairs"], power["dataset"]) == (54, 15, "golden (test)")
    assert 0 < power["spread"] < 0.1, "settings of BM25 differ less than is assumed"
    assert power["corrected"] == pytest.approx(board["detectable"], rel=0.8)
    times = [row["means"]["median_ms"] for row in board["rows"]]
    gains = board["search_gain"]["observed"] > board["search_gain"]["expected"]
    cheapest = next(rank for rank, ms in enumerate(times, start=1) if ms <= SAME_SPEED * min(times))
    assert not any(row["differs"] for row in board["rows"])
    assert board["recommended"] == (1 if gains else cheapest)
    shown = run("plan", "retriever=bm25", capsys=capsys)
    assert f"nDCG@10 on 54 queries: a comparison with a baseline detects a loss of about {power['single']:.3f}" in shown
    assert f"the deviation of differences is {power['spread']:.2f}, as in {power['results']} earlier results" in shown


def test_a_plan_of_a_search_says_what_its_queries_can_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    search = (
        "plan",
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=9",
        "retriever=bm25",
        "retriever.k1=interval(0,3)",
    )
    shown = run(*search, capsys=capsys)
    (corrected,) = detectable_difference(np.array([54]), np.array([0.26]), np.array([0.05 / 36]))
    assert "a search of up to 54 combinations (9 trials, and 9 more for each of 5 folds" in shown
    assert f"nDCG@10 on 54 queries: differences below about {corrected:.3f} usually cannot be seen" in shown
    (power,) = orjson.loads(run(*search, "--json", capsys=capsys))["power"]
    assert (power["units"], power["pairs"], power["corrected"]) == (54, 36, pytest.approx(corrected))


def test_datasets_are_named_if_there_are_several() -> None:
    powers = [
        PlannedPower(name, "RR", 40, "clusters of queries", 1, 0, 0.3, 0.15, 0.15) for name in ("a (test)", "b (dev)")
    ]
    lines = describe_power(Plan("two", ["a", "b"], 4, 0, [], [], None, 1, "store", power=powers))
    assert lines[2].startswith(
        "b (dev): RR on 40 clusters of queries: differences below about 0.150 usually cannot be seen (power 80%; "
    )
