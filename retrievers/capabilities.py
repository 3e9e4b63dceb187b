"""What a retriever can do, as its class declares it, and the checks that queries fit it.

A composed retriever has what follows from its parts; `Capabilities.of_parts` is the one rule for that.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NoReturn

from retrievers.base import Retriever, RetrieverError, iter_parts, list_filters

_ROOMS = ("lexical", "vectors", "engines")
"""The rooms of the retrievers that search documents themselves. Each is in a module with the name of its choice."""


@dataclass(frozen=True)
class Capabilities:
    """What a retriever can do and what its rankings depend on; raises `RetrieverError` for a value of another type.

    A class declares them as `capabilities`, a class attribute, or a property if its settings decide. A class without a
    declaration has the defaults.
    """

    filters: bool = False
    """Applies the filters of queries. Other retrievers are not given queries with filters."""

    texts: bool = True
    """Reads the texts of queries. Only a retriever that does not is given queries whose texts are unknown."""

    ids: bool = False
    """Rankings depend on the ids of queries, which are then part of the key of cached rankings."""

    types: bool = False
    """Rankings depend on the types of queries, which are then part of the key of cached rankings."""

    live: bool = False
    """Searches an index that may change without the settings, such as that of a service. Rankings are not cached."""

    scans: bool = True
    """The time of a search grows with the number of documents, not with that of queries alone."""

    search_type: str = ""
    """The name by which a dataset may have judgments of its own for this search; "" for the retriever's name."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            if not isinstance(value, kind):
                wanted = "True or False" if kind is bool else "a string"
                raise RetrieverError(f"Capabilities: {field.name}={value!r} should be {wanted}")

    @classmethod
    def of_parts(cls, parts: Iterable[object]) -> Capabilities:
        """Return what a search with all these parts can do: it filters if all do, and has the rest if any does."""
        derived = list(map(derive_capabilities, parts))
        return cls(
            filters=all(part.filters for part in derived),
            texts=any(part.texts for part in derived),
            ids=any(part.ids for part in derived),
            types=any(part.types for part in derived),
            live=any(part.live for part in derived),
            scans=any(part.scans for part in derived),
        )


def read_declaration(settings: object) -> Capabilities:
    """Return what settings declare about themselves, without their parts; raises `RetrieverError` for another type."""
    declared = getattr(settings, "capabilities", None)
    if isinstance(declared, Capabilities):
        return declared
    if declared is not None and is_retriever(settings):
        raise RetrieverError(
            f"{type(settings).__name__}.capabilities: expected retrievers.capabilities.Capabilities, "
            f"found {type(declared).__name__}"
        )
    return Capabilities()


def derive_capabilities(settings: object) -> Capabilities:
    """Return what settings declare; they are live, and depend on ids or types, also if anything within them does."""
    own, within = read_declaration(settings), Capabilities.of_parts(iter_parts(settings))
    return replace(own, ids=own.ids or within.ids, types=own.types or within.types, live=own.live or within.live)


def is_live(settings: object) -> bool:
    """Return whether results come from an index that may change, here or in a part; these are not cached."""
    return derive_capabilities(settings).live


def is_retriever(value: object) -> bool:
    """Return whether a value is a retriever; text and lists have a method `index` too."""
    return isinstance(value, Retriever) and not isinstance(value, (str, list, tuple))


def check_texts(retriever: Retriever, queries: Sequence[str]) -> None:
    """Raise `RetrieverError` if the queries have only ids, and the retriever or a part of it reads their texts."""
    if derive_capabilities(retriever).texts and not all(getattr(query, "is_known", True) for query in queries):
        raise RetrieverError(
            f"{type(retriever).__name__} reads the texts of queries, but the dataset has only their ids; set "
            "dataset.queries to a file of queries, or choose rankings from a file (retriever=run)"
        )


def check_filters(retriever: Retriever, queries: Sequence[str]) -> None:
    """Raise `RetrieverError` if queries have filters and the retriever, or a part of it, does not apply them."""
    if any(list_filters(queries)) and (name := _find_unfiltered(retriever)):
        refuse_filters(name, queries, f"choose {', '.join(iter_filtering())} or a hybrid of these")


def refuse_filters(name: str, queries: Sequence[str], remedy: str) -> NoReturn:
    """Raise `RetrieverError`: a retriever does not apply the filters of queries."""
    n = sum(own is not None for own in list_filters(queries))
    raise RetrieverError(
        f"{name} does not apply filters, but {n:,} of {len(queries):,} queries have one; {remedy}, or set "
        "dataset.filter_field=null to ignore filters"
    )


def iter_filtering() -> Iterator[str]:
    """Yield the names of the retrievers whose class declares that it applies filters, or that its settings decide."""
    for room in _ROOMS:
        package = importlib.import_module(f"retrievers.{room}")
        for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
            module = importlib.import_module(f"{package.__name__}.{name}")
            declared = [
                vars(value).get("capabilities")
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == module.__name__
            ]
            if any(isinstance(own, property) or (isinstance(own, Capabilities) and own.filters) for own in declared):
                yield name


def _find_unfiltered(retriever: object) -> str | None:
    """Return the class of the innermost part of a retriever that does not apply filters, None if all do."""
    if derive_capabilities(retriever).filters:
        return None
    parts = [value for part in iter_parts(retriever) for value in (part.values() if isinstance(part, dict) else [part])]
    inner = filter(is_retriever, parts)
    return next(filter(None, map(_find_unfiltered, inner)), type(retriever).__name__)
