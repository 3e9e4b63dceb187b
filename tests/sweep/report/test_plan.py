"""What a terminal shows of a plan: works with their times, calls with their prices, and the total."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from runner.sweep.report.printing import show_plan
from runner.sweep.work import Plan, PlannedCalls, PlannedStage

PLAN = Plan(
    name="sweep over k1, b",
    datasets=["scifact (test): 5,183 documents, 300 queries"],
    combinations=1002,
    finished=2,
    to_do=[f"k1={k1}" for k1 in range(1000)],
    stages=[
        PlannedStage("count terms", 1, 1, 0, 0.0, 0.0),
        PlannedStage("embed", 22, 2, 20, 312.4, 31_000_000.0),
        PlannedStage("search", 1002, 2, 1000, 40.0, 0.0, rough=True),
        PlannedStage("score", 1002, 2, 1000, 47.0, 0.0, rough=True),
    ],
    wall_seconds=400.0,
    workers=1,
    store="mlruns/cache",
)


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_nothing_is_wider_than_the_terminal_and_what_is_to_do_stays(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_plan(PLAN)
    out = capsys.readouterr().out
    assert max(map(cell_len, out.splitlines())) <= columns
    row = next(line for line in out.splitlines() if line.startswith("embed"))
    assert all(word in row for word in ("20", "5 min 12 s"))
    assert ("31.0 MB" in row) == (columns > 40)
    assert "~40 s" in out


def test_a_plan_ends_with_the_total_time_and_space(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show_plan(PLAN)
    out = capsys.readouterr().out
    assert "1,002 combinations on scifact (test): 5,183 documents, 300 queries; 2 already finished, 1,000 to do" in out
    assert "to do: k1=0; k1=1; k1=2; and 997 more" in out
    assert "about 6 min 40 s of work with 1 worker; 31.0 MB more in mlruns/cache" in out
    assert "~ from earlier work that was less than a tenth as large" in out
    assert "nothing was computed or logged" in out


def test_planned_calls_to_language_models_are_shown_with_their_price(capsys: pytest.CaptureFixture[str]) -> None:
    calls = [PlannedCalls("grade", "m", 128, 92_691, 131_072, 0.0925, rough=True), PlannedCalls("expand", "m", 64)]
    calls.append(PlannedCalls("agent", "n", 192, 70_000, 196_608, 0.1284, most=True))
    show_plan(replace(PLAN, calls=calls))
    out = capsys.readouterr().out
    assert re.search(r"grade +m +128 +~92,691 +~131,072 +~0\.0925", out)
    assert re.search(r"expand +m +64 +– +– +–", out)
    assert "calls are upper bounds without retries" in out
    assert re.search(r"agent +n +192 +≤70,000 +≤196,608 +≤0\.1284", out)
    assert "~ estimated from typical text lengths, with tokens out at most" in out
    assert "≤ upper bound from the longest texts that may be sent and llm.max_tokens" in out
    assert "no price for m; set llm.price_in and llm.price_out to see a cost" in out


def test_the_price_of_embeddings_is_exact_an_estimate_or_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    exact = PlannedCalls("embed", "e", 9, 1_234, None, 0.25, price_settings="encoder.price_in")
    calls = [exact, replace(exact, model="f", rough=True), replace(exact, model="g", most=True, cost=None)]
    show_plan(replace(PLAN, calls=calls))
    out = capsys.readouterr().out
    assert re.search(r"embed +e +9 +1,234 +– +0\.25", out)
    assert re.search(r"embed +f +9 +~1,234 +– +~0\.25", out)
    assert re.search(r"embed +g +9 +≤1,234 +– +–", out)
    assert "~ estimated from the tokens per byte of earlier calls" in out
    assert "≤ upper bound with a token for each byte" in out
    assert "no price for g; set encoder.price_in to see a cost" in out
    assert "llm." not in out


def test_what_has_no_estimate_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    stages = [PlannedStage("search", 3, 0, 3, 2.0, 0.0, unknown=1), PlannedStage("fuse", 1, 0, 1, 0.0, 0.0, unknown=1)]
    show_plan(replace(PLAN, stages=stages))
    out = capsys.readouterr().out
    assert "2.0 s or more" in out
    assert "at least 6 min 40 s" in out
    assert "not measured yet, and not included: search, fuse" in out


def test_where_all_is_finished_nothing_is_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(replace(PLAN, finished=1002, to_do=[], stages=[PlannedStage("search", 9, 2, 0, 0.0, 0.0)]))
    out = capsys.readouterr().out
    assert "1,002 already finished, 0 to do" in out
    assert "Nothing to do." in out
    assert "~" not in out
