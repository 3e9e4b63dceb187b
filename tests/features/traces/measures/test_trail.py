"""The files of a task under one name each, in order of first sight."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from runner.features.traces.events.records import check_document
from runner.features.traces.measures.trail import GoldLines, build_trail
from tests.features.traces.documents import document, read, search, write
from tests.strategies.artifacts import documents


def test_files_are_in_order_of_first_sight_and_each_once() -> None:
    trail = build_trail(document([search("b.py", "a.py"), read("a.py", "c.py"), write("b.py")], ["a.py"]))
    assert trail.retrieved == ("b.py", "a.py", "c.py")
    assert (trail.read, trail.written) == ({"a.py": 1, "c.py": 1}, {"b.py": 2})
    assert trail.first_gold == trail.events[0]


def test_a_gold_file_is_called_as_the_ground_truth_calls_it() -> None:
    trail = build_trail(
        document([read("core/A.java"), read("kafka::core/a.java", "zk::core/A.java")], ["kafka::core/A.java"])
    )
    assert trail.retrieved[0] == "kafka::core/A.java"
    assert "zk::core/A.java" in trail.retrieved


def test_of_gold_files_that_are_named_twice_one_counts() -> None:
    assert build_trail(document([], ["src/a.py", "src/A.py"])).gold == ["src/a.py"]


def test_case_tells_no_two_files_apart() -> None:
    assert build_trail(document([read("src/X.py"), write("src/x.py")], ["a.py"])).retrieved == ("src/X.py",)


def test_edits_and_chunks_are_the_gold_files_that_they_mean_or_files_of_their_own() -> None:
    trail = build_trail(
        document(
            [write("lib/new.py", "src/a.py")],
            ["app::src/a.py"],
            edits=["src/a.py", "lib/New.py"],
            chunks=["src/a.py", "lib/New.py", "src/a.py"],
        )
    )
    assert trail.edits == ("app::src/a.py", "lib/New.py")
    assert trail.chunks == tuple(GoldLines(file, 1, 9) for file in ("app::src/a.py", "lib/New.py", "app::src/a.py"))
    assert trail.visited == ("lib/New.py", "app::src/a.py")


def test_what_the_agent_wrote_before_it_saw_it_is_not_retrieved() -> None:
    trail = build_trail(
        document(
            [search("b.py"), write("a.py", "b.py", "report.md"), search("A.py", "report.md"), read("c.py")],
            ["a.py", "c.py"],
        )
    )
    assert trail.retrieved == ("b.py", "c.py")
    assert trail.first_gold == trail.events[3]
    assert trail.visited == ("b.py", "a.py", "report.md", "c.py")


def test_files_are_the_gold_that_the_document_says_they_are() -> None:
    made = document([read("k/core/A.java")], ["kafka::core/A.java"])
    assert build_trail(made).retrieved == ("kafka::core/A.java",)
    made["ground_truth"]["matches"] = {}
    assert build_trail(made).retrieved == ("k/core/A.java",)


def test_without_ground_truth_nothing_is_gold() -> None:
    trail = build_trail(document([read("a.py")]))
    assert (trail.gold, trail.first_gold) == ([], None)


@given(documents())
def test_any_document_has_a_trail_of_the_files_that_it_names(made: dict[str, Any]) -> None:
    check_document(made)
    trail = build_trail(made)
    assert len(trail.visits) == sum(len(event["target_files"]) for event in made["events"])
    assert {*trail.read, *trail.written, *trail.retrieved} <= {*trail.visited}
    assert len({name.lower() for name in trail.visited}) == len(trail.visited)
    hits = {name for event in made["events"] for name in event["matched_ground_truth_files"]}
    assert hits <= {*trail.visited}
    assert {*trail.visited} - {*trail.retrieved} <= {*trail.written}
