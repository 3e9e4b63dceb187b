"""The lines that a call shows: those that real programs print, and those that the results of agents' tools number."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events.line_ranges import WHOLE, LineRange, find_ranges, parse_selection, select_lines
from runner.features.traces.events.sightings import create_observer
from runner.features.traces.trace import ToolCall
from tests.strategies.traces import line_ranges

N = 40
TEXT = "".join(f"line {number} of the file\n" for number in range(1, N + 1))


def shown(name: str, result: str | None = None, **arguments: Any) -> set[int]:
    """Return the lines that a call shows of its files."""
    views = create_observer()(ToolCall(name, arguments, result)).views
    ranges = [lines for view in views for _, lines in view.lines]
    return {number for start, end in ranges for number in range(start, (N if end is None else min(end, N)) + 1)}


@pytest.mark.parametrize(
    "command",
    [
        "cat a.py",
        "cat -n a.py",
        "nl a.py",
        "tac a.py",
        "head a.py",
        "head -7 a.py",
        "head -n 7 a.py",
        "head -n7 a.py",
        "head --lines=7 a.py",
        "tail -n +31 a.py",
        "sed -n 5p a.py",
        "sed -n '5,9p' a.py",
        "sed -n '5,9 p;20,22p' a.py",
        "sed -n -e '5,9p' -e '20p' a.py",
        "sed -ne '38,$p' a.py",
        "sed -n '5,9p;9q' a.py",
        "sed -n '9,5p' a.py",
        "sed 6q a.py",
        "awk 'NR>=5 && NR<=9' a.py",
        "awk 'NR>5 && NR<9 {print}' a.py",
        "awk 'NR==5,NR==9 {print NR\": \"$0}' a.py",
        "awk 'NR==5' a.py",
        "cat a.py | head -7",
        "cat -n a.py | sed -n '5,9p'",
        "tail -n +31 a.py | head -3",
        "sed -n '5,20p' a.py | sed -n '3,4p;6p'",
        "sed -n '5,9p' a.py | head -30",
        "head -20 a.py | tail -n +18",
        "nl -ba a.py | sed -n '35,60p'",
        "sed -n '5,9p' a.py | cat",
        "cat missing.py; head -3 a.py",
        "for f in a.py; do sed -n '5,9p' $f; done",
    ],
)
def test_the_lines_of_a_command_are_those_that_it_prints(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    printed = {number for number in range(1, N + 1) if f"line {number} of the file" in done.stdout}
    assert printed
    assert shown("Bash", done.stdout + done.stderr, command=command) == printed


@pytest.mark.parametrize(
    "command",
    [
        "tail -5 a.py",
        "head -c 100 a.py",
        "head -n -5 a.py",
        "sed 's/a/b/' a.py",
        "sed -n '/def/p' a.py",
        "sed -n '1~3p' a.py",
        "awk '{print $2}' a.py",
        "awk 'NR==5 {print $2}' a.py",
        "sort a.py",
        "cat a.py | grep x",
        "cat a.py | wc -l",
        "cat a.py | tail -3",
        "cat a.py b.py | head -5",
        "sed -n '5,9p;20p' a.py | head -3",
        "sed -n 5,9p a.py b.py",
        "cat a.py > b.py",
        "tail -n +x a.py",
        "tail -n + a.py",
        "head -n ² a.py",
        f"head -n {'9' * 5000} a.py",
        f"sed -n 1,{'9' * 5000}p a.py",
        f"awk 'NR=={'9' * 5000}' a.py",
        "grep -n x a.py",
    ],
)
def test_lines_that_a_command_does_not_tell_are_unknown(command: str) -> None:
    assert shown("Bash", "line 1 of the file\n", command=command) == set()


def number_lines(pattern: str, start: int, end: int) -> str:
    return "\n".join(pattern.format(n=number, text=f"x = {number}") for number in range(start, end + 1))


@pytest.mark.parametrize("pattern", ["{n:>6}→{text}", "{n}\t{text}", "{n:05}| {text}", "L{n}: {text}", "{n}: {text}"])
def test_line_numbers_in_a_result_take_precedence_over_the_arguments(pattern: str) -> None:
    result = number_lines(pattern, 11, 20)
    assert shown("Read", result, file_path="a.py", offset=1, limit=30) == {*range(11, 21)}
    reminded = f"{result}\n\n<system-reminder>\nConsider the content.\n</system-reminder>"
    assert shown("Read", reminded, file_path="a.py") == {*range(11, 21)}
    for text in (json.dumps({"content": result}), json.dumps({"content": [{"text": json.dumps({"text": result})}]})):
        assert shown("read_file", text, path="a.py") == {*range(11, 21)}
    cut = f"{result}\n[20 lines omitted]\n{number_lines(pattern, 31, 35)}"
    assert shown("Read", cut, file_path="a.py") == {*range(11, 21), *range(31, 36)}


@pytest.mark.parametrize(
    "result",
    ["3\tthree\n1\tone\n2\ttwo", "0\tzero\n1\tone", "7: x\n" + "no number\n" * 9, "10\tx\n20\ty\n30\tz\n40\tq"],
)
def test_numbers_that_do_not_count_lines_are_content(result: str) -> None:
    assert shown("Read", result, file_path="a.tsv") == {*range(1, result.count("\n") + 2)} - {
        result.count("\n") + 2
    } - ({result.count("\n") + 1} if result.endswith("\n") else set())


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, {*range(1, 41)}),
        ({"offset": 11, "limit": 10}, {*range(11, 21)}),
        ({"offset": "11", "limit": "10"}, {*range(11, 21)}),
        ({"offset": 31}, {*range(31, 41)}),
        ({"limit": 10}, {*range(1, 11)}),
        ({"offset": 0, "limit": 10}, {*range(1, 11)}),
        ({"startLine": 5, "endLine": 9}, {*range(5, 10)}),
        ({"start_line": 5, "end_line": 9}, {*range(5, 10)}),
        ({"endLine": 9}, {*range(1, 10)}),
        ({"view_range": [5, 9]}, {*range(5, 10)}),
        ({"view_range": [31, -1]}, {*range(31, 41)}),
        ({"view_range": ["a", None]}, set()),
        ({"startLine": 9, "endLine": 5}, set()),
        ({"offset": 2**63 - 1, "limit": 2**63 - 1}, {*range(1, 41)}),
    ],
)
def test_without_line_numbers_the_arguments_tell_the_lines(arguments: dict[str, Any], lines: set[int]) -> None:
    assert shown("Read", file_path="a.py", **arguments) == lines
    assert shown("Read", TEXT, file_path="a.py", **arguments) == lines


def test_no_more_lines_were_shown_than_the_result_has() -> None:
    assert shown("Read", "a\nb\nc", file_path="a.py") == {1, 2, 3}
    assert shown("Read", "a\nb\nc\n", file_path="a.py", offset=11, limit=10) == {11, 12, 13}
    assert shown("Read", "a", file_path="a.py", offset=11, limit=10) == {11}
    assert shown("Bash", "a\nb\n", command="cat a.py") == {1, 2}
    assert shown("Read", json.dumps({"text": "a"}), file_path="a.py", limit=10) == {*range(1, 11)}


def test_a_call_that_failed_or_that_lists_a_folder_shows_no_lines() -> None:
    assert shown("Read", "File does not exist.", file_path="a.py") == set()
    assert shown("Bash", "cat: a.py: No such file or directory", command="cat a.py") == set()
    assert shown("Grep", "a.py:3:x", pattern="x", path="a.py") == set()
    assert shown("Edit", "Done", file_path="a.py", offset=3) == set()


def test_each_of_several_files_is_read_as_a_whole() -> None:
    views = create_observer()(ToolCall("read_many_files", {"paths": ["a.py", "b.py"]}, None)).views
    assert [(file.path, lines) for view in views for file, lines in view.lines] == [("a.py", *WHOLE), ("b.py", *WHOLE)]


@given(line_ranges(N), st.lists(line_ranges(N), min_size=1, max_size=3))
def test_a_selection_of_a_selection_has_the_lines_of_both(first: LineRange, second: list[LineRange]) -> None:
    whole = [*range(1, N + 1)]

    def take(lines: list[int], ranges: list[LineRange]) -> set[int]:
        return {line for start, end in ranges for line in lines[start - 1 : end]}

    passed = [line for line in whole if line in take(whole, [first])]
    assert take(whole, list(select_lines([first], second))) == take(passed, second)


@given(
    st.dictionaries(
        st.sampled_from(["offset", "limit", "view_range", "startLine", "endLine"]),
        st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3) | st.none(),
    ),
    st.none() | st.text(),
)
def test_ranges_are_valid_whatever_a_trace_contains(arguments: dict[str, Any], result: str | None) -> None:
    ranges = find_ranges(arguments, result)
    assert all(start >= 1 and (end is None or end >= start) for start, end in ranges)


@given(
    st.sampled_from(["head", "tail", "sed", "awk", "bat", "cat", "gc", "x"]),
    st.lists(st.text("-n0123456789+,p;$:eq ", max_size=8)),
)
def test_a_selection_is_valid_whatever_a_command_contains(program: str, arguments: list[str]) -> None:
    ranges = parse_selection(program, arguments)
    assert all(start >= 1 and (end is None or end >= start) for start, end in ranges)
