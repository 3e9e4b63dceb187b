"""Write JSON that is too large for memory: its long list is produced and written one element at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson

_PLACE = b"\0"  # never part of JSON, where strings escape it


def iter_indented(content: Mapping[str, object], name: str, elements: Iterable[object]) -> Iterator[bytes]:
    """Yield an object as JSON indented by two spaces, in which the list `name` has these elements."""
    whole = {**content, name: orjson.Fragment(_PLACE)}
    before, after = orjson.dumps(whole, option=orjson.OPT_INDENT_2).split(_PLACE)
    yield before
    yield from _iter_list(elements, b"\n  ")
    yield after


def _iter_list(elements: Iterable[object], line: bytes) -> Iterator[bytes]:
    """Yield a list as JSON; `line` is a line break and the indentation of the line in which the list starts."""
    inner = line + b"  "
    before, after = b"[" + inner, b"[]"
    for element in elements:
        yield before + orjson.dumps(element, option=orjson.OPT_INDENT_2).replace(b"\n", inner)
        before, after = b"," + inner, line + b"]"
    yield after
