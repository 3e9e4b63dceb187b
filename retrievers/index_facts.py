"""Collect what the index behind a retriever reports about itself, such as its version, its size and its mapping.

The program does not have the documents of a service or of a file of rankings. These facts stand for them: they show
whether the index changed between two evaluations with the same settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Protocol, runtime_checkable

from retrievers.base import RetrieverError


@runtime_checkable
class DescribesIndex(Protocol):
    """A retriever that can report on the index that it searches."""

    def describe_index(self) -> Mapping[str, str]:
        """Return what the index reports about itself, by name; nothing if it does not answer."""
        ...


def describe_indexes(retriever: object, name: str = "") -> dict[str, str]:
    """Return what the indexes of a retriever and its parts report; names of facts begin with the name of the part.

    An index that cannot be reached reports nothing: the search raises the error. Within `remember_facts`, each index is
    asked once.
    """
    if isinstance(retriever, DescribesIndex):
        return {f"{name}{fact}": value for fact, value in _describe_one(retriever).items()}
    facts: dict[str, str] = {}
    for part, value in _iter_named_parts(retriever):
        facts |= describe_indexes(value, f"{name}{part}.")
    return facts


@contextmanager
def remember_facts() -> Iterator[None]:
    """Cache what indexes report until the block ends, in the thread that entered it."""
    token = _remembered.set({})
    try:
        yield
    finally:
        _remembered.reset(token)


_remembered: ContextVar[dict[str, Mapping[str, str]] | None] = ContextVar("_remembered", default=None)
"""What indexes have reported, by the settings of the retriever; None outside of `remember_facts`."""


def _describe_one(retriever: DescribesIndex) -> Mapping[str, str]:
    known, key = _remembered.get(), repr(retriever)
    if known is not None and key in known:
        return known[key]
    try:
        facts = retriever.describe_index()
    except RetrieverError:
        facts = {}
    if known is not None:
        known[key] = facts
    return facts


def _iter_named_parts(settings: object) -> Iterator[tuple[str, object]]:
    if is_dataclass(settings):
        yield from ((field.name, getattr(settings, field.name)) for field in fields(settings))
    elif isinstance(settings, Mapping):
        yield from ((str(name), value) for name, value in settings.items())
    elif isinstance(settings, (list, tuple)):
        yield from ((str(place), value) for place, value in enumerate(settings))
