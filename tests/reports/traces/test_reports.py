"""Reports of agents' runs: the way through the files is drawn as it was, and whatever data holds stays data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.agents.measures.stages import Artifact, artifact
from runner.agents.runs.outcomes import Outcome
from runner.metrics.settings import MetricSettings
from runner.reports.rendering.markdown import escaped
from runner.reports.rendering.tables import Table
from runner.reports.traces import comparisons as compared
from runner.reports.traces import tables as told
from runner.reports.traces.markdown import trace_markdown
from runner.reports.traces.page import trace_page
from runner.reports.traces.report import TraceReport, baseline_among, report_json, trace_report, worth_a_look
from runner.reports.traces.timeline import (
    LEFT,
    MOST_LISTED,
    MOST_MISSED,
    MOST_ROWS,
    WIDTH,
    Timeline,
    shortened,
    timeline,
)
from tests.agents.documents import OUTCOMES, document, documents, done, read, search, write
from tests.reports.reading import EVIL, Page


def drawn(*events: Mapping[str, Any], gold: Sequence[str] = ()) -> Timeline:
    return timeline("c/t", document(events, gold))


def rows(timeline: Timeline) -> dict[str, list[str]]:
    return {row.name: [mark.kind for mark in row.marks] for row in timeline.rows}


def report(documents: Mapping[str, Mapping[str, Any]], timelines: int = 40, **failures: str) -> TraceReport:
    """Return the report of documents by the names of their artifacts."""
    said = {name: {"summary": {"total_events": len(each["events"])}, **each} for name, each in documents.items()}
    artifacts = {name: artifact(each, Outcome(reward=0.5)) for name, each in said.items()}
    baseline = baseline_among(each["provenance"]["config_name"] for each in documents.values())
    return trace_report(artifacts, failures, baseline, lambda name: dict(said[name]), timelines, MetricSettings())


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
    assert line.rows[MOST_ROWS].told.split("\n") == shown[MOST_ROWS - 3 :]
    assert line.rows[-1].told.split("\n") == ["never seen:", *missed[MOST_MISSED:]]


def test_files_that_share_a_row_are_listed_as_far_as_there_is_room() -> None:
    shown = [f"s{number:03}.py" for number in range(MOST_ROWS + MOST_LISTED + 7)]
    listed = drawn(search(*shown)).rows[-1].told.split("\n")
    assert listed == [*shown[MOST_ROWS:-7], "and 7 more"]


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


def test_artifacts_are_never_in_memory_together() -> None:
    made = {name: artifact(each, Outcome(reward=0.5)) for name, each in several(20).items()}
    alive: set[int] = set()
    most = 0

    class Counted(dict[str, Any]):
        def __init__(self, content: Mapping[str, Any]) -> None:
            nonlocal most
            super().__init__(content)
            alive.add(id(self))
            most = max(most, len(alive))

        def __del__(self) -> None:
            alive.discard(id(self))

    class Anew(Mapping[str, Artifact]):
        def __getitem__(self, name: str) -> Artifact:
            return Counted(made[name])

        def __iter__(self) -> Iterator[str]:
            return iter(made)

        def __len__(self) -> int:
            return len(made)

    found = trace_report(Anew(), {}, "baseline", lambda name: {}, 0, MetricSettings())
    written = b"".join(report_json(found)), trace_page(found), trace_markdown(found)
    assert most <= 3
    same = trace_report(made, {}, "baseline", lambda name: {}, 0, MetricSettings())
    assert written == (b"".join(report_json(same)), trace_page(same), trace_markdown(same))


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


def finding(config: str, recalls: Sequence[float], **said: Any) -> dict[str, Artifact]:
    """Return the artifacts of tasks by name, of whose ten gold files such a share was found."""
    gold = [f"{number}.py" for number in range(10)]
    return {
        f"{config}/t{task}": done(
            f"t{task}",
            *gold[: round(10 * recall)],
            gold=gold,
            config_name=config,
            **{"reward": 0.5, "model": "m"} | said,
        )
        for task, recall in enumerate(recalls)
    }


def told_of(*configurations: Mapping[str, Artifact], **settings: Any) -> TraceReport:
    artifacts = {name: each for some in configurations for name, each in some.items()}
    return trace_report(artifacts, {}, "baseline", lambda name: {}, 0, MetricSettings(**settings))


def test_a_comparison_says_first_what_decides_then_what_else_differs_or_that_there_is_too_little() -> None:
    few = row(compared.comparisons_table(report(several(2))))
    assert (few["recall"], few["measured"]) == ("\N{EN DASH}", "2")
    assert few["surely differs in"] == "too few to compare: 3 are needed"
    found = report(several(12))
    said = row(compared.comparisons_table(found))
    assert (said["recall"], said["p"], said["tasks needed"]) == ("+0.500", "<0.001", "2")
    assert said["surely differs in"].startswith("MRR +0.500, MAP +0.750")
    assert (said["perhaps in"], "corrected" in said) == ("nothing", False)
    first, second, *_ = compared.comparison_table(found.comparisons[0]).texts()
    assert first == [
        "recall",
        "12",
        "0.500",
        "1.000",
        "+0.500",
        "[+0.500, +0.500]",
        "<0.001",
        "\N{EN DASH}",
        "12/0/0",
        "2",
    ]
    assert second[:2] == ["MRR", "12"]
    assert second[-3] != "\N{EN DASH}"
    assert compared.comparison_note(found.comparisons[0]).startswith(
        "Recall decides, by a test of its own; the others are secondary, and corrected for 6 figures. "
        "Differences are paired, task by task; p by random flips of their signs, with Holm's correction. "
    )


def test_a_secondary_figure_that_differs_only_without_the_correction_perhaps_differs() -> None:
    said = row(compared.comparisons_table(report(several(6))))
    assert said["surely differs in"] == "nothing"
    assert said["perhaps in"].startswith("MRR +0.500, ")
    assert "recall +" not in said["perhaps in"]


def test_of_several_configurations_the_correction_for_their_number_is_told() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    found = told_of(finding("baseline", lower), finding("one", higher), finding("two", higher))
    texts = compared.comparisons_table(found).texts()
    assert [line[5:7] for line in texts] == [["0.031", "0.062"]] * 2
    assert "p = 0.031 (0.062 corrected for 2 configurations), which may be luck;" in compared.verdicts(found)[0]


def test_the_verdict_says_who_finds_more_by_how_much_and_whether_it_may_be_luck() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    first, second = finding("baseline", lower, cost=2.0), finding("mcp", higher, cost=1.5)
    (sure,) = compared.verdicts(told_of(first, second))
    assert sure.startswith(
        "mcp finds more of the gold than baseline: recall 0.500 against 0.250 on 6 matched tasks (95%"
    )
    assert sure.endswith("), p = 0.031: more on 6, the same on 0, less on 0; $1.50 a task against $2.00.")
    (less,) = compared.verdicts(told_of(finding("baseline", higher), finding("mcp", lower)))
    assert less.startswith("mcp finds less of the gold than baseline: recall 0.250 against 0.500")
    (luck,) = compared.verdicts(told_of(first, finding("mcp", [0.3, 0.5, 0.1, 0.5, 0.0, 0.5])))
    assert "p = 0.500, which may be luck; to see such a difference takes some 57 tasks: more on 3, the same" in luck
    (same,) = compared.verdicts(told_of(first, finding("mcp", lower)))
    assert same == "mcp finds as much of the gold as baseline, on 6 matched tasks, on every one."


def test_the_verdict_says_how_soon_and_at_what_price_of_the_tasks_that_tell() -> None:
    before = {f"c/t{n}": document([read("x.py"), read("a.py", elapsed_seconds=8.0)], ["a.py"]) for n in range(4)}
    after = {f"d/t{n}": document([read("a.py", elapsed_seconds=n or None)], ["a.py"]) for n in range(4)}
    content = {
        name: {**each, "provenance": each["provenance"] | {"config_name": config, "task_name": name[2:]}}
        for config, some in (("baseline", before), ("mcp", after))
        for name, each in some.items()
    }
    (verdict,) = compared.verdicts(report(content))
    assert verdict.endswith("on every one; first gold after 2.0 s against 8.0 s (on 3).")


def test_differences_are_tested_and_told_as_the_settings_say() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    sides = finding("baseline", lower), finding("mcp", higher)
    made = told_of(*sides, alpha=0.03, test="t", confidence=0.8, seed=7)
    of = made.comparisons[0]["deltas"]["file_recall"]
    assert of["p_value"] == pytest.approx(float(stats.ttest_rel(higher, lower).pvalue))
    assert of["significant"]
    assert "(80% interval of the difference " in compared.verdicts(made)[0]
    assert "80% interval" in row(compared.comparisons_table(made))
    tables = compared.comparison_table(made.comparisons[0]), compared.associations_table(made)
    assert all("80% interval" in [column.title for column in table.columns] for table in tables)
    assert "p by Student's t-test, with Holm's correction." in compared.comparison_note(made.comparisons[0])
    assert "which may be luck" in compared.verdicts(told_of(*sides, alpha=0.03))[0]
    said = orjson.loads(b"".join(report_json(made)))
    assert {"test": "t", "alpha": 0.03, "confidence": 0.8, "seed": 7}.items() <= said["comparisons"][0][
        "statistics"
    ].items()
    assert said["associations"]["confidence"] == 0.8


def test_a_secondary_figure_perhaps_differs_by_the_alpha_that_is_asked_for() -> None:
    artifacts = {name: artifact(each, Outcome(reward=0.5)) for name, each in several(6).items()}
    strict = trace_report(artifacts, {}, "baseline", lambda name: {}, 0, MetricSettings(alpha=0.02))
    assert row(compared.comparisons_table(strict))["perhaps in"] == "nothing"


def test_without_a_correction_none_is_told() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    found = told_of(finding("baseline", lower), finding("a", higher), finding("b", higher), correction="none")
    assert "corrected" not in compared.verdicts(found)[0]
    assert "corrected" not in [column.title for column in compared.comparisons_table(found).columns]
    note = compared.comparison_note(found.comparisons[0])
    assert note.startswith("Recall decides, by a test of its own; the others are secondary. ")
    assert "with no correction" in note


def test_of_what_nothing_can_be_said_one_sentence_says_so_and_why() -> None:
    first = finding("baseline", [0.5] * 4)
    found = told_of(first, finding("few", [0.5]), finding("none", [0.5] * 4, model="n"), finding("same", [0.5] * 4))
    assert compared.verdicts(found) == [
        "same finds as much of the gold as baseline, on 4 matched tasks, on every one.",
        "Whether few (1), none (0; left out: 4 different models) finds more of the gold than baseline can't be said: "
        "that takes 3 matched tasks with ground truth (in brackets those that there are).",
    ]


def test_the_verdict_is_in_the_page_and_in_the_markdown_before_any_figure() -> None:
    made = report(several(12))
    (verdict,) = compared.verdicts(made)
    page, markdown = trace_page(made), trace_markdown(made)
    assert page.index(escape(verdict)) < page.index("<table")
    assert markdown.index(f"**{escaped(verdict)}**") < markdown.index("| --- |")


def test_of_one_comparison_the_tiles_say_what_is_held_against_what_and_what_may_be_luck() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    first, second = finding("baseline", lower, cost=2.0, seconds=60), finding("mcp", higher, cost=1.5, seconds=60)
    assert compared.tiles(told_of(first, second)) == [
        ("recall", "0.500", "against 0.250"),
        ("reward", "0.500", "against 0.500"),
        ("cost, $", "1.50", "against 2.00, which may be luck"),
        ("time", "1 min 0 s", "against 1 min 0 s"),
    ]
    assert compared.tiles(told_of(first, second, finding("other", higher))) == []
    assert compared.tiles(told_of(first, finding("mcp", higher[:2]))) == []
    assert "against 2.00, which may be luck" in trace_page(told_of(first, second))


def test_figures_of_several_configurations_together_stand_for_none() -> None:
    assert told.tiles(report(several())) == []
    alone = {name: each for name, each in several().items() if name.startswith("mcp")}
    assert told.tiles(report(alone))[0] == ("recall", "1.000", "of 4")


def test_rewards_beyond_1_are_said_to_be_on_scales_of_their_own() -> None:
    usual = finding("baseline", [0.5, 0.5], reward=1.0)
    assert told.rewards_note(told_of(usual)) == ""
    made = told_of(usual, finding("mcp", [0.5], reward=3.17))
    note = told.rewards_note(made)
    assert note.startswith("Each reward is on the scale of its verifier: 1 of 3 is beyond 1, up to 3.17, such as")
    assert escape(note) in trace_page(made)
    assert escaped(note) in trace_markdown(made)


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
    assert orjson.loads(b"".join(report_json(made)))["failures"] == {"c/x": "RuntimeError: why"}


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
    one, other = (
        trace_report(dict(order), {}, "baseline", content.__getitem__, 2, MetricSettings())
        for order in (made, made[::-1])
    )
    assert b"".join(report_json(one)) == b"".join(report_json(other))
    assert trace_markdown(one) == trace_markdown(other)
    assert trace_page(one) == trace_page(other)
    assert not {"NaN", "Infinity"} & set(b"".join(report_json(one)).decode().split())
