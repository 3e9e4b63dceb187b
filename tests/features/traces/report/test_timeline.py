"""The way of an agent through the files is drawn as it was, within the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.report.timeline import (
    LEFT,
    MAX_LISTED,
    MAX_MISSED,
    MAX_ROWS,
    WIDTH,
    Timeline,
    build_timeline,
    shorten,
)
from tests.features.traces.documents import document, read, search, write
from tests.strategies.artifacts import documents


def drawn(*events: Mapping[str, Any], gold: Sequence[str] = ()) -> Timeline:
    return build_timeline("c/t", document(events, gold))


def rows(build_timeline: Timeline) -> dict[str, list[str]]:
    return {row.name: [mark.kind for mark in row.marks] for row in build_timeline.rows}


def test_files_stand_in_order_of_first_sight_with_what_was_done() -> None:
    line = drawn(search("b.py", "a.py"), read("a.py"), write("a.py"), read("c.py"))
    assert rows(line) == {"b.py": ["search"], "a.py": ["search", "read", "write"], "c.py": ["read"]}
    xs = [mark.x for mark in line.rows[1].marks]
    assert xs == sorted(xs)
    assert [mark.tooltip for mark in line.rows[1].marks] == ["step 1: Tool", "step 2: Tool", "step 3: Tool"]


def test_gold_is_marked_where_it_is_first_seen_and_what_was_never_seen_stands_last() -> None:
    line = drawn(read("x.py"), read("a.py", elapsed_seconds=12.0), gold=["m.py", "a.py"])
    assert [(row.name, row.gold, bool(row.marks)) for row in line.rows] == [
        ("x.py", False, True),
        ("a.py", True, True),
        ("m.py", True, False),
    ]
    assert line.first is not None
    assert line.first.tooltip == "gold at step 2, 12.0 s"
    assert line.first.x == line.rows[1].marks[0].x


def test_a_subagent_is_marked_and_named() -> None:
    (row,) = drawn(read("a.py", is_subagent=True)).rows
    assert row.marks[0].subagent
    assert row.marks[0].tooltip == "step 1: Tool (subagent)"


def test_rows_go_to_gold_and_to_what_was_opened_and_the_rest_share_one() -> None:
    shown = [f"s{number:02}.py" for number in range(2 * MAX_ROWS)]
    missed = [f"m{number:02}.py" for number in range(MAX_MISSED + 3)]
    line = drawn(search(*shown), read("r.py"), write("w.py"), search("gold.py"), gold=["gold.py", *missed])
    named = [row.name for row in line.rows]
    assert {"gold.py", "r.py", "w.py"} <= set(named)
    assert named[: MAX_ROWS - 3] == shown[: MAX_ROWS - 3]
    assert named[MAX_ROWS] == f"{2 * MAX_ROWS - (MAX_ROWS - 3)} other files"
    assert named[MAX_ROWS + 1 :] == [*missed[:MAX_MISSED], "3 more gold files"]
    assert line.rows[MAX_ROWS].tooltip.split("\n") == shown[MAX_ROWS - 3 :]
    assert line.rows[-1].tooltip.split("\n") == ["never seen:", *missed[MAX_MISSED:]]


def test_files_that_share_a_row_are_listed_as_far_as_there_is_room() -> None:
    shown = [f"s{number:03}.py" for number in range(MAX_ROWS + MAX_LISTED + 7)]
    listed = drawn(search(*shown)).rows[-1].tooltip.split("\n")
    assert listed == [*shown[MAX_ROWS:-7], "and 7 more"]


@given(documents(), st.integers(0, 10**6))
def test_whatever_was_done_is_drawn_within_the_picture_and_in_bounds(content: dict[str, Any], skipped: int) -> None:
    for event in content["events"]:
        event["step_index"] += skipped
    line = build_timeline("c/t", content)
    assert len(line.rows) <= MAX_ROWS + MAX_MISSED + 2
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
    assert shorten("a/b.py", 10) == "a/b.py"
    assert shorten("folder/within/file.py", 10) == "\N{HORIZONTAL ELLIPSIS}n/file.py"
