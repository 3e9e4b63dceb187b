"""Two results are compared by the step that lost each gold document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from runner.__main__ import main
from runner.comparison.step_losses import compare_steps
from runner.evaluation.losses import FOUND, NOT_COUNTED, Losses
from runner.evaluation.result import Result
from runner.statistics.signs import sign_test
from tests.pages.factory import result

STEPS = ("not retrieved", "fusion", "cutoff")


def lose(codes: Sequence[int], steps: Sequence[str] = STEPS, cutoff: int = 10) -> Result:
    """Return a result of queries with one gold document each, lost by the steps with these codes."""
    one = result(queries=len(codes), no_result=0)
    table = replace(one.queries, expected=[[f"d{i}"] for i in range(len(codes))])
    array = np.array(codes, dtype=np.int8)
    losses = Losses(cutoff, steps, array, ("",), np.zeros((1, len(codes)), dtype=np.int32))
    return replace(one, queries=table, losses=losses)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_equals_that_of_scipy(better: int, worse: int) -> None:
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)


def test_a_step_is_better_for_queries_of_which_it_loses_less_gold() -> None:
    before = lose([1] * 9 + [FOUND] * 2 + [2] * 4 + [0] * 5)
    after = lose([FOUND] * 9 + [1] * 2 + [2] * 4 + [FOUND] * 3 + [NOT_COUNTED] * 2)
    changes = {change.step: change for change in compare_steps(before, after)}
    fusion, cutoff, retrieved = changes["fusion"], changes["cutoff"], changes["not retrieved"]
    assert (fusion.before, fusion.after, fusion.better, fusion.worse) == (9, 2, 9, 2)
    assert (cutoff.before, cutoff.after, cutoff.better, cutoff.worse) == (4, 4, 0, 0)
    assert (retrieved.before, retrieved.after, retrieved.better) == (3, 0, 3)  # two queries failed after
    assert fusion.p == pytest.approx(3 * binomtest(2, 11).pvalue)  # Holm: the smallest of three


def test_variants_of_a_query_count_as_one() -> None:
    before, after = lose([1] * 8), lose([FOUND] * 8)
    (change,) = compare_steps(before, after, np.array([0, 0, 0, 0, 1, 1, 2, 2]))
    assert (change.better, change.worse, change.before) == (3, 0, 8)


def test_steps_of_only_one_result_are_compared_with_no_losses() -> None:
    changes = compare_steps(lose([0, 1, 1]), lose([0, 0, 0], ("reranker",)))
    assert [(change.step, change.before, change.after) for change in changes] == [
        ("not retrieved", 1, 0), ("fusion", 2, 0), ("reranker", 0, 3),
    ]  # fmt: skip


def test_results_at_other_cutoffs_or_without_losses_are_not_compared() -> None:
    one = lose([0, 1])
    assert compare_steps(one, lose([0, 1], cutoff=5)) == []
    assert compare_steps(one, replace(one, losses=None)) == []


def test_the_command_shows_how_losses_by_step_differ(
    tracking: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    common = ["dataset=golden", "tracking.background=false"]
    runs, losses = [], []
    for retriever in (["retriever=bm25", "retriever.k1=0.1", "retriever.b=1"], ["retriever=hybrid", "encoder=lsa"]):
        capsys.readouterr()
        assert main([*retriever, *common, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        runs.append(document["run"])
        losses.append(document["result"]["losses"]["counts"])
    words = ["compare", f"baseline={runs[0]}", f"candidate={runs[1]}", "gate=none", "output=report"]
    assert main([*words, "--json"]) == 0
    (steps,) = json.loads(capsys.readouterr().out)["steps"].values()
    for change in steps:
        assert (change["before"], change["after"]) == tuple(counts.get(change["step"], 0) for counts in losses)
    assert sum(change["before"] for change in steps) == sum(losses[0].values()) > 9
    (one,) = (change for change in steps if change["step"] == "cutoff")
    assert one["better"] + one["worse"] > 3 and one["p"] >= sign_test(one["better"], one["worse"])
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    row = f"cutoff {one['before']} {one['after']} {one['better']} {one['worse']} "
    assert "Gold lost by step: hybrid" in out and row in out
    page = (tmp_path / "report" / "comparison.html").read_text(encoding="utf-8")
    markdown = (tmp_path / "report" / "comparison.md").read_text(encoding="utf-8")
    assert "Gold lost by step" in page
    assert f"| cutoff | {one['before']} | {one['after']} | {one['better']} | {one['worse']} |" in markdown


def test_a_sweep_lists_the_gold_that_each_step_of_the_best_lost(
    tracking: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-m", "retriever=bm25,hybrid", "encoder=lsa", "dataset=golden", "sweep.output=out", "tracking=none"]
    assert main(words) == 0
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    _, _, section = report.partition("Gold lost by step")
    header, _, *rows = [line for line in section.split("\n\n##")[0].splitlines() if line.startswith("|")]
    steps = [cell.strip() for cell in header.strip("| ").split("|")][3:]
    assert {"not retrieved", "fusion", "cutoff"} <= set(steps)
    for row in rows:
        missed, *lost = [cell.strip() for cell in row.strip("| ").split("|")][2:]
        assert sum(int(n) for n in lost if n.isdigit()) == int(missed) > 9
