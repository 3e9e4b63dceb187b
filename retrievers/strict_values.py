"""Read what other programs write, alike in every reader: ids, numbers, JSON and the columns of a line.

Python converts more than a file means: `float` takes `1_0` and digits of any script, `json` keeps the last of two equal
keys, and `str` makes an id of anything. Errors are `ValueError`; callers add the place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from numbers import Integral, Real
from typing import Any

import orjson

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_TEXT_OR_END = re.compile(r'"(?:[^"\\]|\\.)*"|\}', re.DOTALL)
"""A text of JSON, in which a brace ends nothing, or the end of an object."""

_KEY_END, _ESCAPED_KEY_END = re.compile(rb'"[ \t\n\r]*:'), re.compile(rb'\\"[ \t\n\r]*:')

_BLANKS = " \t\n\v\f\r"
"""ASCII white space, which separates columns; any other white space belongs to an id."""

_LARGEST_EXACT = 2**53
"""The number up to which every whole number is exact in a 64-bit float."""

_LARGEST_COUNT = 2**31
"""The highest count that a reply may have; the ledger adds up counts and their costs in 64 bits."""

_LINE_BREAKING = re.compile("[\t\n\v\f\r\0\x1c-\x1e\x85\u2028\u2029]")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def show_value(value: object) -> str:
    """Return a value as messages show it, shortened; None is null, as in JSON."""
    shown = "null" if value is None else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def parse_id(value: object) -> str:
    """Return an id as text: a non-empty text, or a whole number, also of numpy or SQL, or written as 7.0 by pandas."""
    if isinstance(value, str) and value:
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (Real, Decimal)) and not isinstance(value, bool):
        number = float(value)
        if abs(number) < _LARGEST_EXACT and number.is_integer():
            return str(int(number))
    raise ValueError(f"{show_value(value)} is not an id; an id must be text or a whole number")


def parse_number(value: object) -> float:
    """Return a finite number, or one written in ASCII digits, as a float; blanks around it are ignored."""
    is_number = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and _NUMBER.fullmatch(value.strip(_BLANKS))):
        with suppress(OverflowError):
            number = float(value)  # type: ignore[arg-type]  # the types are those above
            if math.isfinite(number):
                return number
    raise ValueError(f"{show_value(value)} is not a number")


def parse_whole(value: object) -> int:
    """Return a whole number, or one written in ASCII digits without an exponent (2, 2.0), as an integer."""
    if isinstance(value, str):
        plain = value.strip(_BLANKS)
        if _WHOLE.fullmatch(plain) and len(plain) < 4_000:  # Python refuses to convert more digits
            return int(plain.partition(".")[0])
    elif (number := parse_number(value)).is_integer():
        return int(value) if isinstance(value, Integral) else int(number)
    raise ValueError(f"{show_value(value)} is not a whole number")


def parse_json(content: bytes) -> Any:  # noqa: ANN401 (any JSON)
    """Return the value of a JSON text; raises `ValueError`, also for an object with the same key twice."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"invalid JSON ({error})") from None
    # Each key is followed by a colon, so equal counts mean that no key was lost.
    if rb"\\" in content or _count_written_keys(content) != _count_keys(value):
        _parse_checking_keys(content)
    return value


def parse_reply(content: bytes | str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the JSON of a service's reply, in which texts may have lone surrogates; raises `ValueError`.

    An object with the same key twice is refused.
    """
    try:
        return _parse_checking_keys(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_count(value: object) -> int:
    """Return a number that a reply counts, such as tokens, rounded; raises `ValueError` for one that is impossible."""
    if isinstance(value, str) or not 0 <= (number := parse_number(value)) <= _LARGEST_COUNT:
        raise ValueError(f"{show_value(value)} is not a number from 0 to {_LARGEST_COUNT:,}")
    return round(number)


def split_columns(line: bytes) -> list[bytes]:
    """Return the columns of a line without its line end: between tabs if it has any, else between ASCII white space."""
    return line.split(b"\t") if b"\t" in line else line.split()


def find_line_break(identifier: str) -> str | None:
    """Return the first character of an id that would end a column or a line in some reader, or None."""
    character = _LINE_BREAKING.search(identifier)
    return character[0] if character else None


def fits_columns(identifier: str) -> bool:
    """Return whether an id can stand in a column of any file: it is not empty and ends neither a column nor a line."""
    return bool(identifier) and find_line_break(identifier) is None


def _parse_checking_keys(content: bytes | str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the value of a JSON text; raises `ValueError` for a repeated key, with its line if there are several."""
    ended = 0

    def build(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
        nonlocal ended
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            repeated = next(key for place, key in enumerate(keys) if key in keys[:place])
            where = _locate_object_end(content, ended)
            raise ValueError(f"the key {show_value(repeated)} occurs twice in an object{where}; keep one")
        ended += 1
        return value

    return json.loads(content, object_pairs_hook=build)


def _locate_object_end(content: bytes | str, before: int) -> str:
    """Return on which of several lines the object ends that has so many ends of objects before it."""
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    ends = (part.start() for part in _TEXT_OR_END.finditer(text) if part[0] == "}")
    line = text.count("\n", 0, next(islice(ends, before, None))) + 1
    return f" that ends on line {line}" if "\n" in text.strip() else ""


def _count_written_keys(content: bytes) -> int:
    """Return how many colons follow a quote that is not escaped: at least the number of keys in a JSON text.

    An escaped quote follows a single backslash: the text has no two in a row.
    """
    return len(_KEY_END.findall(content)) - len(_ESCAPED_KEY_END.findall(content))


def _count_keys(value: object) -> int:
    """Return the number of keys in all objects of a JSON value."""
    count, waiting = 0, [value]
    for item in waiting:  # which grows
        parts: Iterable[object] = item if type(item) is list else ()
        if type(item) is dict:
            count, parts = count + len(item), item.values()
        for part in parts:
            if type(part) is dict or type(part) is list:
                waiting.append(part)
    return count
