"""JSON too long to be held as a whole: an object with one list whose elements are written one at a time.

It knows nothing of what the elements are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson


def indented(content: Mapping[str, Any], name: str, elements: Iterable[Any]) -> Iterator[bytes]:
    """Yield an object as JSON with two spaces a level, whose list of that name has these elements."""
    around = orjson.dumps({**content, name: []}, option=orjson.OPT_INDENT_2)
    before, found, after = around.partition(f'\n  "{name}": []'.encode())  # no deeper one is indented so
    yield before + found[:-1]
    comma, end = b"", b""
    for element in elements:
        text = orjson.dumps(element, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n    ")  # in a string, it is escaped
        yield comma + b"\n    " + text
        comma, end = b",", b"\n  "
    yield end + b"]" + after
