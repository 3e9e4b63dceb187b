"""Reports of agents' runs: the same whatever their order, and whatever data holds stays data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.findings import compute_findings
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.report import tables
from runner.features.traces.report.page import render_page
from runner.features.traces.report.report import build_report, report_json
from runner.features.traces.report.sections import render_markdown
from runner.features.traces.runs.outcomes import RunOutcome
from runner.pages.markdown import escape as escape_markdown
from runner.statistics.settings import Statistics
from tests.features.traces.documents import document, read, search
from tests.features.traces.report.factory import finding, report, several, told_of
from tests.pages.reading import EVIL, Page, read_explorer_data
from tests.strategies.artifacts import OUTCOMES, documents
from tests.strategies.settings import at_most


def test_artifacts_are_never_in_memory_together() -> None:
    made = {name: build_artifact(each, RunOutcome(reward=0.5)) for name, each in several(20).items()}
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

    found = build_report(compute_findings(Anew(), {}, FigureNames(), Statistics()), lambda name: {}, 0)
    written = b"".join(report_json(found)), render_page(found), render_markdown(found)
    assert most <= 3
    same = build_report(compute_findings(made, {}, FigureNames(), Statistics()), lambda name: {}, 0)
    assert written == (b"".join(report_json(same)), render_page(same), render_markdown(same))


def test_means_say_of_how_many_tasks_they_are() -> None:
    content = several() | {"mcp/t9": document([read("a.py")], task_name="t9", config_name="mcp")}
    content["baseline/again"] = content["baseline/t0"]
    table = tables.configurations_table(report(content))
    shown = [dict(zip([column.title for column in table.columns], row, strict=True)) for row in table.texts()]
    assert [(row["configuration"], row["tasks"], row["measured traces"], row["recall"]) for row in shown] == [
        ("baseline", "4", "5 of 5", "0.500"),
        ("mcp", "4", "4 of 5", "1.000"),
    ]


def test_low_confidence_is_shown_beside_the_means_without_it() -> None:
    content = several(6)
    assert tables.confidence_note(report(content)) == ""
    for name, each in content.items():
        each["coverage"]["ground_truth_confidence"] = "low" if name.endswith(("t0", "t1")) else "high"
        if name == "mcp/t0":
            each["events"] = []
    made = report(content)
    table = tables.configurations_table(made)
    shown = [dict(zip([column.title for column in table.columns], row, strict=True)) for row in table.texts()]
    assert [(row["configuration"], row["gold confidence"], row["recall"]) for row in shown] == [
        ("baseline", "4 high, 2 low", "0.500"),
        ("baseline, without low confidence", "4 high", "0.500"),
        ("mcp", "4 high, 2 low", "0.833"),
        ("mcp, without low confidence", "4 high", "1.000"),
    ]
    for shown_text in (render_page(made), render_markdown(made)):
        assert "The gold of 4 of 12 measured traces has low confidence" in shown_text


def test_cutoffs_of_the_settings_are_those_of_the_tables() -> None:
    made = {name: build_artifact(each, RunOutcome(reward=0.5), (2, 7)) for name, each in several().items()}
    found = build_report(compute_findings(made, {}, FigureNames((2, 7)), Statistics()), lambda name: {}, 0)
    titles = [column.title for column in tables.configurations_table(found).columns]
    assert {"nDCG@7", "P@2"} < {*titles}
    assert "nDCG@7" in render_page(found)


def test_associations_have_the_confidence_and_the_test_of_the_settings() -> None:
    recalls = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4]
    artifacts = finding("mcp", recalls)
    for artifact, reward in zip(artifacts.values(), (0.2, 0.1, 0.6, 0.5, 0.3, 0.4), strict=True):
        artifact["outcome"] = {**artifact["outcome"], "reward": reward}
    table = tables.associations_table(told_of(artifacts, confidence=0.8))
    titles = [column.title for column in table.columns]
    (row,) = [dict(zip(titles, texts, strict=True)) for texts in table.texts() if texts[:2] == ["recall", "reward"]]
    expected = stats.spearmanr(recalls, [0.2, 0.1, 0.6, 0.5, 0.3, 0.4])
    assert (row["tasks"], row["Spearman's rho"]) == ("6", f"{expected.statistic:.2f}")
    assert re.fullmatch(r"\[[+-]0\.\d{3}, \+0\.\d{3}\]", row["80% interval"])


def test_figures_of_several_configurations_together_stand_for_none() -> None:
    assert tables.tiles(report(several())) == []
    alone = {name: each for name, each in several().items() if name.startswith("mcp")}
    assert tables.tiles(report(alone))[0] == ("recall", "1.000", "of 4")


def test_rewards_beyond_1_are_said_to_be_on_scales_of_their_own() -> None:
    usual = finding("baseline", [0.5, 0.5], reward=1.0)
    assert tables.rewards_note(told_of(usual)) == ""
    made = told_of(usual, finding("mcp", [0.5], reward=3.17))
    note = tables.rewards_note(made)
    assert note.startswith("Each reward is on the scale of its verifier: 1 of 3 is above 1, up to 3.17, such as")
    assert escape(note) in render_page(made)
    assert escape_markdown(note) in render_markdown(made)


def test_degradations_are_grouped_by_what_was_lost() -> None:
    content = several(2)
    content["mcp/t0"]["coverage"]["degraded_reason"] = "lines that are cut (3); calls without a result (1)"
    content["mcp/t1"]["coverage"]["degraded_reason"] = "lines that are cut (1)"
    content["baseline/t0"]["coverage"]["ground_truth_problems"] = ["tests/ground_truth.json: invalid JSON"]
    assert tables.unreadable_table(report(content)).texts() == [
        ["lines that are cut", "2", "mcp/t0, mcp/t1"],
        ["calls without a result", "1", "mcp/t0"],
        ["tests/ground_truth.json: invalid JSON", "1", "baseline/t0"],
    ]


def test_an_opened_task_has_its_files_its_missed_gold_and_its_tool_calls() -> None:
    calls = [search("x.py", "a.py", arguments={"query": "where is a", "api_key": "sk-1234567890abcdef"}), read("a.py")]
    of = document(calls, ["a.py", "b.py"], task_name="t", config_name="mcp")
    data = read_explorer_data(render_page(report({"mcp/t": of, "mcp/u": document([read("c.py")])}, timelines=1)))
    task, other = data["tasks"]
    assert (task["files"], task["missed"]) == ([["x.py", 0], ["a.py", 1]], ["b.py"])
    assert [(event["step"], event["kind"], event["files"]) for event in task["events"]] == [
        (1, "search", [["x.py", 0], ["a.py", 1]]),
        (2, "read", [["a.py", 1]]),
    ]
    assert task["events"][0]["text"].startswith("query=where is a")
    assert "sk-1234567890abcdef" not in str(data)
    assert (other["missed"], other["events"]) == ([], None), "it has no gold, and only one timeline was asked for"


def test_the_runs_of_a_task_share_a_number_and_the_columns_have_their_figures() -> None:
    data = read_explorer_data(render_page(report(several(3))))
    columns = {column["name"]: column["values"] for column in data["columns"]}
    assert data["clusters"] == [0, 0, 1, 1, 2, 2]
    assert columns["configuration"] == ["baseline", "mcp"] * 3
    assert columns["recall"] == [0.5, 1.0] * 3
    assert columns["reward"] == [0.5] * 6


@pytest.mark.parametrize("timelines", [0, 3, 40])
def test_the_page_draws_so_many_timelines_and_says_so(timelines: int) -> None:
    html = render_page(report(several(), timelines))
    page = Page(html)
    assert html.count('aria-label="Timeline of') == min(timelines, 8)
    assert len(page.ids) == len(set(page.ids))
    assert page.loaded == []
    assert ("timelines=100" in html or "timelines=8" in html) == (timelines == 3)


def test_the_page_lists_the_first_tasks_and_says_where_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "TASKS", 2)
    assert "The first 2 of 8; report.json has all." in render_page(report(several()))


def test_what_data_holds_stays_data() -> None:
    whose = {"task_name": EVIL, "config_name": EVIL, "benchmark": EVIL}
    content = document([read(EVIL, tool_name=EVIL), search("a.py")], [EVIL, f"{EVIL}2"], **whose)
    content["coverage"]["degraded_reason"] = EVIL
    made = report({f"c/{EVIL}": content}, **{"c/x": EVIL})
    page = Page(render_page(made))
    assert page.scripts == 1
    assert not page.tags["img"]
    assert any("<script>alert('x')</script>" in text for text in page.texts)
    markdown = render_markdown(made)
    assert "<script>" not in markdown.replace("\\<script>", "")
    assert "<img" not in markdown.replace("\\<img", "")


def test_there_is_a_report_of_nothing_but_failures() -> None:
    made = report({}, **{"c/x": "RuntimeError: why"})
    assert "RuntimeError: why" in render_page(made)
    assert "RuntimeError: why" in render_markdown(made)
    assert orjson.loads(b"".join(report_json(made)))["failures"] == {"c/x": "RuntimeError: why"}


@settings(max_examples=at_most(15))
@given(st.lists(st.tuples(documents(), OUTCOMES), max_size=6))
def test_any_artifacts_make_the_same_reports_whatever_their_order(
    drawn: list[tuple[dict[str, Any], RunOutcome | None]],
) -> None:
    content = {f"c/{place}": each for place, (each, _) in enumerate(drawn)}
    made: list[tuple[str, Artifact]] = [
        (f"c/{place}", build_artifact({**each, "summary": {"total_events": len(each["events"])}}, outcome))
        for place, (each, outcome) in enumerate(drawn)
    ]
    one, other = (
        build_report(compute_findings(dict(order), {}, FigureNames(), Statistics()), content.__getitem__, 2)
        for order in (made, made[::-1])
    )
    assert b"".join(report_json(one)) == b"".join(report_json(other))
    assert render_markdown(one) == render_markdown(other)
    assert render_page(one) == render_page(other)
    assert not {"NaN", "Infinity"} & set(b"".join(report_json(one)).decode().split())
