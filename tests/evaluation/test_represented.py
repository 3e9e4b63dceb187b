"""Queries that say how many searches they represent give the mean over searches, with an interval."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from runner.__main__ import main
from runner.evaluation.represented import measure_over_searches


def test_the_mean_weighs_queries_by_what_they_represent_and_so_does_its_interval() -> None:
    rows = [{"represents": weight} for weight in (6, 3.0, 1, 0, 2)]
    figures = measure_over_searches(rows, np.array([1.0, 0.0, 0.5, 1.0, np.nan]), 0.9)
    mean = (6 * 1 + 1 * 0.5) / 10
    residuals = np.array([6 * (1 - mean), 3 * (0 - mean), 1 * (0.5 - mean)])
    half = stdtrit(2, 0.95) * np.sqrt((residuals**2).sum() * 3 / 2) / 10
    assert figures == pytest.approx(
        {"over_searches": mean, "over_searches.low": max(mean - half, 0), "over_searches.high": min(mean + half, 1)}
    )
    rows = [{"represents": 1}] * 40
    values = np.linspace(0, 1, 40)
    assert measure_over_searches(rows, values)["over_searches.low"] == pytest.approx(0.5 - 0.0947, abs=2e-3)


def test_a_query_that_does_not_say_what_it_represents_leaves_the_mean_out() -> None:
    assert measure_over_searches([{"represents": 1}, {}], np.array([1.0, 0.0])) == {}
    assert measure_over_searches([{"represents": "many"}], np.array([1.0])) == {}
    assert measure_over_searches([], np.array([])) == {}
    assert measure_over_searches([{"represents": 0}], np.array([1.0])) == {}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with a sample of traffic and two runs, of which each has one of two queries right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    queries = [{"_id": f"q{n}", "text": "x", "metadata": {"represents": weight}} for n, weight in ((1, 30.0), (2, 10))]
    tables = {"queries": queries, "corpus": [{"_id": f"d{n}", "text": "x"} for n in (1, 2)]}
    for name, rows in tables.items():
        (tmp_path / "data" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    for document in ("d1", "d2"):
        lines = [f"{query} Q0 {document} 1 1.0 x\n" for query in ("q1", "q2")]
        (tmp_path / f"{document}.trec").write_text("".join(lines))
    return tmp_path


def test_commands_state_the_mean_over_searches(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["dataset=beir", "dataset.path=data", "tracking=none"]
    assert main([*data, "retriever=run", "retriever.path=d1.trec"]) == 0
    assert "nDCG@10 0.750 [0.000, 1.000] over the searches that the queries represent" in capsys.readouterr().out
    assert main(["-m", *data, "retriever=run", "retriever.path=d1.trec,d2.trec", "sweep.output=board"]) == 0
    printed = capsys.readouterr().out
    assert "over searches" in printed and "0.750" in printed and "0.250" in printed
    assert main(["compare", "baseline=d1.trec", "candidate=d2.trec", "gate=none", *data[:2]]) == 0
    printed = " ".join("".join(capsys.readouterr()).split())
    assert "d1.trec: nDCG@10 0.750 [0.000, 1.000] over the searches" in printed
    assert "d2.trec: nDCG@10 0.250 [0.000, 1.000] over the searches" in printed
