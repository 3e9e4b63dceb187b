"""What production served is a baseline, and unjudged hits are bounded by slice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from tests.datasets.otlp import retrieval, span, write_spans

WEEK_S = 7 * 24 * 3600
DATA = ["dataset=telemetry", "dataset.path=spans.jsonl", "dataset.qrels=qrels.tsv"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with two weeks of traffic, and a run that changes the hits of the first week."""
    monkeypatch.chdir(tmp_path)
    spans = [span(i + 1, retrieval(f"query {i}", "a", "b"), seconds=i // 2 * WEEK_S + i) for i in range(4)]
    write_spans(tmp_path / "spans.jsonl", *spans)
    (tmp_path / "qrels.tsv").write_text("".join(f"query {i}\ta\t1\n" for i in range(4)))
    return tmp_path


def compare(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Compare with what was served, and return the document."""
    fixed = ["compare", "baseline=telemetry", "gate=none", "compare.primary=P@10", "statistics.permutations=100"]
    assert main([*fixed, *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def write_run(folder: Path) -> None:
    """Write a run with an unknown document first in the first week, and the hits that were served in the second."""
    from runner.datasets.traffic.queries import hash_query

    rows = [(f"query {i}", name) for i in range(4) for name in (("c", "a") if i < 2 else ("a", "b"))]
    lines = [f"{hash_query(text)} Q0 {name} 1 {1 / (place + 1)} x" for place, (text, name) in enumerate(rows)]
    (folder / "new.trec").write_text("\n".join(lines))


def test_differences_from_what_was_served_are_bounded_by_week(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(here)
    document = compare(capsys, "candidate=new.trec", *DATA)
    assert (document["baseline"], document["systems"][0]["source"]) == ("served", "telemetry")
    (bounds,) = document["bounds"].values()
    rows = {(own["field"], own["value"]): own for own in bounds}
    assert list(rows) == [("all", ""), ("week", "2026-W48"), ("week", "2026-W49")]
    figures = {
        key: [own["queries"], *(round(own[name], 6) for name in ("before", "after", "low", "high", "unjudged"))]
        for key, own in rows.items()
    }
    assert figures["week", "2026-W48"] == [2, 0.1, 0.1, -0.1, 0.1, 0.666667]  # b is served, and c is new
    assert figures["week", "2026-W49"] == [2, 0.1, 0.1, 0.0, 0.0, 0.5]
    assert figures["all", ""] == [4, 0.1, 0.1, -0.05, 0.05, 0.583333]


def test_the_report_shows_the_bounds_and_what_they_mean(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(here)
    words = ["compare", "baseline=telemetry", "candidate=new.trec", "gate=none", *DATA, "output=out"]
    assert main([*words, "compare.primary=P@10", "statistics.permutations=100"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Unjudged hits, by slice: run" in printed
    assert "week 2026-W48 2 0.1000 0.1000 +0.0000 -0.1000 +0.1000 66.7%" in printed
    assert "| week 2026-W48 | 2 | 0.1000 | 0.1000 | +0.0000 | -0.1000 | +0.1000 | 66.7% |" in (
        here / "out" / "comparison.md"
    ).read_text(encoding="utf-8")


def test_the_rankings_beside_a_golden_set_are_what_was_served(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mine", "source=telemetry", "source.path=spans.jsonl", "source.qrels=qrels.tsv", "output=golden"]
    assert main([*words, "source.clusters=1", "tracking=none"]) == 0
    capsys.readouterr()
    write_run(here)
    document = compare(capsys, "candidate=new.trec", "dataset=beir", "dataset.path=golden")
    (bounds,) = document["bounds"].values()
    assert {own["field"] for own in bounds} >= {"all", "week"}
    assert (bounds[0]["low"], bounds[0]["high"]) == (pytest.approx(-0.05), pytest.approx(0.05))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "telemetry: a run can only be scored with judgments; choose a dataset, for example dataset=telemetry"),
        (["dataset=golden"], "telemetry: the dataset has no rankings that were served"),
    ],
)
def test_without_served_rankings_the_way_out_is_named(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    write_run(here)
    assert main(["compare", "baseline=telemetry", "candidate=new.trec", "gate=none", *words]) == 2
    assert message in capsys.readouterr().err
