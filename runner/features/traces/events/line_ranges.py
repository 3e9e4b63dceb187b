"""Find the lines of a file that a call shows, from the line numbers in its result or from its arguments.

A range is an approximation where a result has no line numbers: nothing shows where a harness cut it short.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class LineRange(NamedTuple):
    """Lines of a file, counted from 1, both ends included; an `end` of None is the end of the file."""

    start: int
    end: int | None = None


WHOLE = (LineRange(1),)

_STARTS = ("offset", "start_line", "startLine")
_ENDS = ("end_line", "endLine")
_ESCAPED = re.compile(r"\\+(n|t|u2192)")
_PLAIN = {"n": "\n", "t": "\t", "u2192": "→"}
_NUMBERED = re.compile(r'(?:^|")[ ]*L?(\d{1,7})(?:→|\t|\||: )', re.MULTILINE)
"""A line number as agents print it: `12→`, `12<tab>`, `00012| `, `L12: `, `12: `."""
_IN_ORDER = 0.9  # the least share of line numbers that follow the one before
_NUMBERED_SHARE = 0.5  # the least share of lines that have a number
_MAX_LINE = 10**9  # a greater number is no line, and JSON may not have room for it

_PASS_ON = frozenset(("cat", "less", "more", "nl", "tac", "tee", "bat", "batcat", "get-content", "gc"))
_VALUE = re.compile("[+-]?[0-9]{1,9}")
_COUNT = re.compile(f"(?:--lines=|-n|-)({_VALUE.pattern})")
_PRINT = re.compile(r"([0-9]{1,9})(?:,([0-9]{1,9}|\$))?p")
_QUIT = re.compile("([0-9]{0,9})q")
_AWK = re.compile(
    r"""(?: NR>=?(?P<from>[0-9]{1,9})&&NR<(?P<below>=?)(?P<to>[0-9]{1,9})
        | NR==(?P<first>[0-9]{1,9})(?:,NR==(?P<last>[0-9]{1,9}))?)
        (?:\{print(?:NR"[^"]*")?(?:\$0)?;?\})?""",
    re.VERBOSE,
)
_BAT_RANGE = re.compile("([0-9]{1,9})?:([0-9]{1,9})?")


def find_ranges(arguments: Mapping[str, object], result: str | None) -> tuple[LineRange, ...]:
    """Return the lines that a call of a file reader shows of its one file, in order; () if they are unknown.

    The arguments count from 1, and a call without such arguments reads the whole file, as far as the result is long.
    """
    if result and (numbered := _parse_numbers(result)):
        return numbered
    view = arguments.get("view_range")
    if isinstance(view, list) and len(view) == 2:
        start, end = map(_parse_number, view)
    else:
        start = next((number for name in _STARTS if (number := _parse_number(arguments.get(name))) is not None), 1)
        end = next((number for name in _ENDS if (number := _parse_number(arguments.get(name))) is not None), None)
        limit = _parse_number(arguments.get("limit"))
        start = max(start, 1)
        end = start + limit - 1 if end is None and limit and limit > 0 else end
    if start is None or start < 1:
        return ()
    lines = LineRange(start, end if end and end > 0 else None)  # -1 is the end of the file
    return () if lines.end and lines.end < start else shorten((lines,), result)


def shorten(ranges: Sequence[LineRange], result: str | None) -> tuple[LineRange, ...]:
    """Return ranges of which none has more lines than the result; a result in JSON may have any number of lines."""
    if result is None or result.lstrip()[:1] in ("{", "["):
        return tuple(ranges)
    longest = result.count("\n") + (not result.endswith("\n"))
    limited = ((start, start + longest - 1, end) for start, end in ranges)
    return tuple(LineRange(start, last if end is None else min(last, end)) for start, last, end in limited if longest)


def select_lines(shown: Sequence[LineRange], chosen: Sequence[LineRange]) -> tuple[LineRange, ...]:
    """Return the lines of a file that a second program prints if it chooses from those that a first one prints."""
    if tuple(chosen) == WHOLE:
        return tuple(shown)
    if len(shown) != 1:
        return ()
    start, end = shown[0]
    moved = [LineRange(start + first - 1, None if last is None else start + last - 1) for first, last in chosen]
    kept = [lines for lines in moved if end is None or lines.start <= end]
    return tuple(LineRange(first, end if last is None or (end and last > end) else last) for first, last in kept)


def parse_selection(program: str, arguments: Sequence[str]) -> tuple[LineRange, ...]:
    """Return the lines that a program prints of the text that it reads; () if they are unknown."""
    if program == "head":
        count = _parse_count(arguments)
        return (LineRange(1, int(count)),) if count[:1] not in ("", "+", "-") and int(count) else ()
    if program == "tail":
        count = _parse_count(arguments)
        return (LineRange(max(1, int(count))),) if count.startswith("+") else ()
    if program == "sed":
        return _parse_sed(arguments)
    if program in ("awk", "gawk", "mawk"):
        return _parse_awk(arguments)
    if program in ("bat", "batcat"):
        return _parse_bat(arguments)
    selects = program.lower() in ("get-content", "gc") and any(word.startswith("-") for word in arguments)
    return WHOLE if program.lower() in _PASS_ON and not selects else ()


def _parse_numbers(result: str) -> tuple[LineRange, ...]:
    """Return the ranges of the line numbers in a result; () if it has none, or if its numbers are other text."""
    text = _ESCAPED.sub(lambda escape: _PLAIN[escape[1]], result) if result.lstrip()[:1] in ("{", "[") else result
    numbers = [int(number) for number in _NUMBERED.findall(text)]
    steps = [after - before for before, after in pairwise(numbers)]
    ordered = steps.count(1) >= _IN_ORDER * len(steps) and all(step > 0 for step in steps)
    if not (numbers and numbers[0] and ordered and len(numbers) >= _NUMBERED_SHARE * (text.count("\n") + 1)):
        return ()
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after - before > 1)]
    ends = [*(before for before, after in pairwise(numbers) if after - before > 1), numbers[-1]]
    return tuple(map(LineRange, starts, ends))


def _parse_number(value: object) -> int | None:
    number = int(value) if isinstance(value, str) and _VALUE.fullmatch(value) else value
    return number if isinstance(number, int) and not isinstance(number, bool) and number < _MAX_LINE else None


def _parse_count(arguments: Sequence[str]) -> str:
    """Return the number of lines of `head` or `tail` as written; "" for a number of bytes, or if it is no number."""
    for word, value in pairwise((*arguments, "")):
        if word.startswith(("-c", "--bytes")):
            return ""
        if word in ("-n", "--lines"):
            return value if _VALUE.fullmatch(value) else ""
        if hit := _COUNT.fullmatch(word):
            return hit[1]
    return "10"


def _parse_sed(arguments: Sequence[str]) -> tuple[LineRange, ...]:
    options = [word for word in arguments if word.startswith("-")]
    quiet = any(word in ("--quiet", "--silent") or (word[1:2] != "-" and "n" in word) for word in options)
    given = [script for option, script in pairwise(arguments) if option in ("-e", "-ne", "--expression")]
    scripts = given or [word for word in arguments if not word.startswith("-")][:1]
    commands = [command.replace(" ", "") for script in scripts for command in re.split("[;\n]", script)]
    commands = [command for command in commands if command]
    if not quiet:
        last = _QUIT.fullmatch(commands[0]) if len(commands) == 1 else None
        return (LineRange(1, int(last[1])),) if last and last[1] else ()
    printed = [_PRINT.fullmatch(command) for command in commands if not _QUIT.fullmatch(command)]
    if not printed or None in printed:
        return ()
    bounds = [(int(hit[1]), hit[2]) for hit in printed if hit]
    return tuple(
        LineRange(start, None if end == "$" else max(start, int(end or start))) for start, end in bounds if start
    )


def _parse_awk(arguments: Sequence[str]) -> tuple[LineRange, ...]:
    script = next((word for word in arguments if not word.startswith("-")), "")
    hit = _AWK.fullmatch(re.sub(r"\s+", "", script))
    if hit is None:
        return ()
    if hit["first"]:
        return (LineRange(int(hit["first"]), int(hit["last"] or hit["first"])),)
    start = int(hit["from"]) + (">=" not in hit[0])
    end = int(hit["to"]) - (not hit["below"])
    return (LineRange(start, end),) if 1 <= start <= end else ()


def _parse_bat(arguments: Sequence[str]) -> tuple[LineRange, ...]:
    values = [value for option, value in pairwise(arguments) if option in ("-r", "--line-range")]
    values += [word.partition("=")[2] for word in arguments if word.startswith("--line-range=")]
    hits = [_BAT_RANGE.fullmatch(value) for value in values]
    if None in hits:
        return ()
    return tuple(LineRange(int(hit[1] or 1), int(hit[2]) if hit[2] else None) for hit in hits if hit) or WHOLE
