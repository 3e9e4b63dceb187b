"""JSON too long to be held as a whole: its long lists are made, and written, one element at a time.

It knows nothing of what the elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

_HERE = b"\0"  # in JSON it stands for nothing, and in a string it is escaped


@dataclass(frozen=True, eq=False)
class Lazy:
    """A list that is made while it is gone through, each time anew."""

    made: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements."""
        return self.made()


def indented(content: Mapping[str, Any], name: str, elements: Iterable[Any]) -> Iterator[bytes]:
    """Yield an object as JSON with two spaces a level, whose list of that name has these elements.

    Wherever in it there is a `Lazy` list, that is written so too; an element holds none.
    """
    lists: list[Iterable[Any]] = []

    def told(value: object) -> orjson.Fragment:
        if not isinstance(value, Lazy):
            raise TypeError(f"{type(value).__name__} is no JSON")
        lists.append(value)
        return orjson.Fragment(_HERE)

    whole = {**content, name: Lazy(lambda: iter(elements))}
    option = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS
    *before, end = orjson.dumps(whole, default=told, option=option).split(_HERE)
    for text, each in zip(before, lists, strict=True):
        yield text
        line = text[text.rfind(b"\n") + 1 :]
        yield from _list(each, b"\n" + b" " * (len(line) - len(line.lstrip(b" "))))
    yield end


def _list(elements: Iterable[Any], line: bytes) -> Iterator[bytes]:
    """Yield a list as JSON that begins in a line; `line` ends one and indents the next as far as that is."""
    inner = line + b"  "
    before, after = b"[" + inner, b"[]"
    for element in elements:
        yield before + orjson.dumps(element, option=orjson.OPT_INDENT_2).replace(b"\n", inner)
        before, after = b"," + inner, line + b"]"
    yield after
