"""Write JSON that is too large for memory: its long lists are produced and written one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import orjson

_PLACE = b"\0"  # never part of JSON, where strings escape it
Element = TypeVar("Element")


@dataclass(frozen=True, eq=False)
class Lazy(Generic[Element]):
    """A list whose elements are created again on each iteration."""

    create: Callable[[], Iterator[Element]]

    def __iter__(self) -> Iterator[Element]:
        """Yield the elements."""
        return self.create()


def iter_indented(content: Mapping[str, object], name: str, elements: Iterable[object]) -> Iterator[bytes]:
    """Yield an object as JSON indented by two spaces, in which the list `name` has these elements.

    Other `Lazy` lists within the object are written in the same way; an element may not contain one.
    """
    lists: list[Iterable[object]] = []

    def defer(value: object) -> orjson.Fragment:
        if not isinstance(value, Lazy):
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")
        lists.append(value)
        return orjson.Fragment(_PLACE)

    whole = {**content, name: Lazy(lambda: iter(elements))}
    option = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS
    *before, end = orjson.dumps(whole, default=defer, option=option).split(_PLACE)
    for text, deferred in zip(before, lists, strict=True):
        yield text
        line = text[text.rfind(b"\n") + 1 :]
        yield from _iter_list(deferred, b"\n" + b" " * (len(line) - len(line.lstrip(b" "))))
    yield end


def _iter_list(elements: Iterable[object], line: bytes) -> Iterator[bytes]:
    """Yield a list as JSON; `line` is a line break and the indentation of the line in which the list starts."""
    inner = line + b"  "
    before, after = b"[" + inner, b"[]"
    for element in elements:
        yield before + orjson.dumps(element, option=orjson.OPT_INDENT_2).replace(b"\n", inner)
        before, after = b"," + inner, line + b"]"
    yield after
