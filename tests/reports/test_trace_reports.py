"""Reports of agents' runs: the way through the files is drawn as it was, and whatever data holds stays data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.agents.measures.stages import Artifact, artifact
from runner.agents.runs.outcomes import Outcome
from runner.reports import trace_comparisons as compared
from runner.reports import trace_tables as told
from runner.reports.markdown import escaped
from runner.reports.tables import Table
from runner.reports.trace_markdown import trace_markdown
from runner.reports.trace_page import trace_page
from runner.reports.trace_report import TraceReport, baseline_among, report_json, trace_report, worth_a_look
from runner.reports.trace_timeline import (
    LEFT,
    MOST_MISSED,
    MOST_ROWS,
    WIDTH,
    Timeline,
    shortened,
    timeline,
)
from tests.agents.documents import OUTCOMES, document, documents, done, read, search, write
from tests.reports.test_page import EVIL, Page


def drawn(*events: Mapping[str, Any], gold: Sequence[str] = ()) -> Timeline:
    return timeline("c/t", document(events, gold))


def rows(timeline: Timeline) -> dict[str, list[str]]:
    return {row.name: [mark.kind for mark in row.marks] for row in timeline.rows}


def report(documents: Mapping[str, Mapping[str, Any]], timelines: int = 40, **failures: str) -> TraceReport:
    """Return the report of documents by the names of their artifacts."""
    said = {name: {"summary": {"total_events": len(each["events"])}, **each} for name, each in documents.items()}
    artifacts = [(name, artifact(each, Outcome(reward=0.5))) for name, each in said.items()]
    baseline = baseline_among(each["provenance"]["config_name"] for each in documents.values())
    return trace_report(artifacts, failures, baseline, lambda name: dict(said[name]), timelines)


def several(n: int = 4) -> dict[str, dict[str, Any]]:
    """Return documents of two configurations on the same tasks, of which one finds more."""
    found: dict[str, dict[str, Any]] = {}
    for task in (f"t{number}" for number in range(n)):
        for config, seen in (("baseline", ["x.py", "a.py"]), ("mcp", ["a.py", "b.py"])):
            whose = {"task_name": task, "config_name": config}
            found[f"{config}/{task}"] = document([read(*seen)], ["a.py", "b.py"], **whose)
    return found


# The timeline


def test_files_stand_in_order_of_first_sight_with_what_was_done() -> None:
    line = drawn(search("b.py", "a.py"), read("a.py"), write("a.py"), read("c.py"))
    assert rows(line) == {"b.py": ["search"], "a.py": ["search", "read", "write"], "c.py": ["read"]}
    xs = [mark.x for mark in line.rows[1].marks]
    assert xs == sorted(xs)
    assert [mark.told for mark in line.rows[1].marks] == ["step 1: Tool", "step 2: Tool", "step 3: Tool"]


def test_gold_is_marked_where_it_is_first_seen_and_what_was_never_seen_stands_last() -> None:
    line = drawn(read("x.py"), read("a.py", elapsed_seconds=12.0), gold=["m.py", "a.py"])
    assert [(row.name, row.gold, bool(row.marks)) for row in line.rows] == [
        ("x.py", False, True),
        ("a.py", True, True),
        ("m.py", True, False),
    ]
    assert line.first is not None
    assert line.first.told == "gold at step 2, 12.0 s"
    assert line.first.x == line.rows[1].marks[0].x


def test_a_subagent_is_marked_and_named() -> None:
    (row,) = drawn(read("a.py", is_subagent=True)).rows
    assert row.marks[0].subagent
    assert row.marks[0].told == "step 1: Tool (subagent)"


def test_rows_go_to_gold_and_to_what_was_opened_and_the_rest_share_one() -> None:
    shown = [f"s{number:02}.py" for number in range(2 * MOST_ROWS)]
    missed = [f"m{number:02}.py" for number in range(MOST_MISSED + 3)]
    line = drawn(search(*shown), read("r.py"), write("w.py"), search("gold.py"), gold=["gold.py", *missed])
    named = [row.name for row in line.rows]
    assert {"gold.py", "r.py", "w.py"} <= set(named)
    assert named[: MOST_ROWS - 3] == shown[: MOST_ROWS - 3]
    assert named[MOST_ROWS] == f"{2 * MOST_ROWS - (MOST_ROWS - 3)} other files"
    assert named[MOST_ROWS + 1 :] == [*missed[:MOST_MISSED], "3 more gold files"]


@settings(max_examples=40)
@given(documents(), st.integers(0, 10**6))
def test_whatever_was_done_is_drawn_within_the_picture_and_in_bounds(content: dict[str, Any], skipped: int) -> None:
    for event in content["events"]:
        event["step_index"] += skipped
    line = timeline("c/t", content)
    assert len(line.rows) <= MOST_ROWS + MOST_MISSED + 2
    places = [mark.x for row in line.rows for mark in row.marks] + list(line.calls) + [x for x, _ in line.ticks]
    assert all(LEFT <= x < WIDTH for x in places)
    assert all(len({round(mark.x) for mark in row.marks}) == len(row.marks) for row in line.rows)


def test_a_long_trace_takes_no_more_room_than_the_picture_has() -> None:
    line = drawn(*(read("a.py") if step % 2 else search("a.py") for step in range(5000)))
    (row,) = line.rows
    assert len(row.marks) <= WIDTH - LEFT
    assert {mark.kind for mark in row.marks} == {"read"}
    assert len(line.ticks) <= 10


def test_a_name_that_is_too_long_keeps_its_end() -> None:
    assert shortened("a/b.py", 10) == "a/b.py"
    assert shortened("folder/within/file.py", 10) == "\N{HORIZONTAL ELLIPSIS}n/file.py"


# The report


def test_what_differs_most_comes_first_then_what_was_missed_and_last_what_was_not_measured() -> None:
    artifacts = {
        "b/none": done("none", "a.py", gold=()),
        "b/found": done("found", "a.py", "b.py"),
        "b/missed": done("missed", "x.py"),
        "b/apart": done("apart", "x.py"),
        "c/apart": done("apart", "a.py", "b.py", config_name="c"),
    }
    assert worth_a_look(artifacts) == ["b/apart", "c/apart", "b/missed", "b/found", "b/none"]


def test_the_first_that_is_called_a_baseline_is_one() -> None:
    assert baseline_among(["agent", "zero-baseline", "baseline-b"]) == "baseline-b"
    assert baseline_among(["b", "a"]) == "a"
    assert baseline_among([]) == ""


def test_means_say_of_how_many_tasks_they_are() -> None:
    content = several() | {"mcp/t9": document([read("a.py")], task_name="t9", config_name="mcp")}
    table = told.configurations_table(report(content))
    shown = [dict(zip([column.title for column in table.columns], row, strict=True)) for row in table.texts()]
    assert [(row["configuration"], row["measured"], row["recall"]) for row in shown] == [
        ("baseline", "4 of 4", "0.500"),
        ("mcp", "4 of 5", "1.000"),
    ]


def row(table: Table) -> dict[str, str]:
    """Return the texts of a table with one row, by column."""
    (texts,) = table.texts()
    return dict(zip([column.title for column in table.columns], texts, strict=True))


def test_a_comparison_says_what_differs_or_that_there_is_too_little() -> None:
    assert row(compared.comparisons_table(report(several(2))))["surely differs in"] == (
        "too few to compare: 3 are needed"
    )
    found = report(several(12))
    told_of = row(compared.comparisons_table(found))
    assert "recall +0.500" in told_of["surely differs in"]
    assert told_of["perhaps in"] == "nothing"
    assert told_of["recall differs most on"].startswith("t0 0.5 \N{RIGHTWARDS ARROW} 1, t1 ")
    recall = next(line for line in compared.comparison_table(found.comparisons[0]).texts() if line[0] == "recall")
    assert recall[1:3] == ["12", "+0.500"]
    assert recall[-1] == "12/0/0"


def test_a_figure_that_differs_only_without_the_correction_perhaps_differs() -> None:
    found = report(several(6))
    assert row(compared.comparisons_table(found))["surely differs in"] == "nothing"
    assert "recall +0.500" in row(compared.comparisons_table(found))["perhaps in"]


def test_the_verdict_says_who_finds_more_by_how_much_and_whether_it_may_be_luck() -> None:
    (sure,) = compared.verdicts(report(several(12)))
    assert sure.startswith("mcp finds more of the gold than baseline: recall 1.000 against 0.500 on 12 matched tasks")
    assert "luck" not in sure
    assert sure.endswith("more on 12, the same on 0, less on 0.")
    (luck,) = compared.verdicts(report(several(6)))
    assert "which may be luck" in luck
    (few,) = compared.verdicts(report(several(1)))
    assert few == ("Whether mcp finds more of the gold than baseline can't be said: 1 matched task, and 3 are needed.")
    swapped = {
        name: {**each, "provenance": each["provenance"] | {"config_name": other}}
        for name, each in several(12).items()
        for other in [{"mcp": "baseline", "baseline": "mcp"}[each["provenance"]["config_name"]]]
    }
    (less,) = compared.verdicts(report(swapped))
    assert less.startswith("mcp finds less of the gold than baseline: recall 0.500 against 1.000")
    alike = {
        f"{config}/t{n}": document([read("a.py")], ["a.py"], task_name=f"t{n}", config_name=config)
        for n in range(3)
        for config in ("baseline", "mcp")
    }
    (same,) = compared.verdicts(report(alike))
    assert same == "mcp finds as much of the gold as baseline, on 3 matched tasks, on every one."


def test_the_verdict_is_in_the_page_and_in_the_markdown_before_any_figure() -> None:
    made = report(several(12))
    (verdict,) = compared.verdicts(made)
    page, markdown = trace_page(made), trace_markdown(made)
    assert page.index(escape(verdict)) < page.index("<table")
    assert markdown.index(f"**{escaped(verdict)}**") < markdown.index("| --- |")


def test_figures_of_several_configurations_together_stand_for_none() -> None:
    assert told.tiles(report(several())) == []
    alone = {name: each for name, each in several().items() if name.startswith("mcp")}
    assert told.tiles(report(alone))[0] == ("recall", "1.000", "of 4")


def test_degradations_are_grouped_by_what_was_lost() -> None:
    content = several(2)
    content["mcp/t0"]["coverage"]["degraded_reason"] = "lines that are cut (3); calls without a result (1)"
    content["mcp/t1"]["coverage"]["degraded_reason"] = "lines that are cut (1)"
    content["baseline/t0"]["coverage"]["ground_truth_problems"] = ["tests/ground_truth.json: not valid JSON"]
    assert told.degraded_table(report(content)).texts() == [
        ["lines that are cut", "2", "mcp/t0, mcp/t1"],
        ["calls without a result", "1", "mcp/t0"],
        ["tests/ground_truth.json: not valid JSON", "1", "baseline/t0"],
    ]


@pytest.mark.parametrize("timelines", [0, 3, 40])
def test_the_page_draws_so_many_timelines_and_says_so(timelines: int) -> None:
    html = trace_page(report(several(), timelines))
    page = Page(html)
    assert html.count('aria-label="Timeline of') == min(timelines, 8)
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") for link in page.links)
    assert ("timelines=100" in html or "timelines=8" in html) == (timelines == 3)


def test_the_page_lists_the_first_tasks_and_says_where_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "TASKS", 2)
    assert "The first 2 of 8; report.json has all." in trace_page(report(several()))


def test_what_data_holds_stays_data() -> None:
    whose = {"task_name": EVIL, "config_name": EVIL, "benchmark": EVIL}
    content = document([read(EVIL, tool_name=EVIL), search("a.py")], [EVIL, f"{EVIL}2"], **whose)
    content["coverage"]["degraded_reason"] = EVIL
    made = report({f"c/{EVIL}": content}, **{"c/x": EVIL})
    page = Page(trace_page(made))
    assert page.tags["script"] == 1
    assert not page.tags["img"]
    assert any("<script>alert('x')</script>" in text for text in page.texts)
    markdown = trace_markdown(made)
    assert "<script>" not in markdown.replace("\\<script>", "")
    assert "<img" not in markdown.replace("\\<img", "")


def test_there_is_a_report_of_nothing_but_failures() -> None:
    made = report({}, **{"c/x": "RuntimeError: why"})
    assert "RuntimeError: why" in trace_page(made)
    assert "RuntimeError: why" in trace_markdown(made)
    assert orjson.loads(report_json(made))["failures"] == {"c/x": "RuntimeError: why"}


@settings(max_examples=15)
@given(st.lists(st.tuples(documents(), OUTCOMES), max_size=6))
def test_any_artifacts_make_the_same_reports_whatever_their_order(
    drawn: list[tuple[dict[str, Any], Outcome | None]],
) -> None:
    content = {f"c/{place}": each for place, (each, _) in enumerate(drawn)}
    made: list[tuple[str, Artifact]] = [
        (f"c/{place}", artifact({**each, "summary": {"total_events": len(each["events"])}}, outcome))
        for place, (each, outcome) in enumerate(drawn)
    ]
    one, other = (trace_report(order, {}, "baseline", content.__getitem__, 2) for order in (made, made[::-1]))
    assert report_json(one) == report_json(other)
    assert trace_markdown(one) == trace_markdown(other)
    assert trace_page(one) == trace_page(other)
    assert not {"NaN", "Infinity"} & set(report_json(one).decode().split())
