"""The types of synthesis: chunks, bundles of chunks, requests for queries, and drafts of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from runner.config.objects import ConfigError, suggestion
from runner.llm.journal import Journal

COMPARISON = "comparison"

QUERY_TYPES = (
    "concept_seeking", "exact_snippet", "web_search_like", "low_overlap", "fact_seeking", "keyword", "misspellings",
    "long", "medium", "short", COMPARISON,
)  # fmt: skip

NO_SECOND = "needs two goldens"
"""The reason for a missing comparison."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks in columns; a chunk is identified by its document's id and its own. `vectors` (n x d) have length 1."""

    doc_ids: Sequence[str]
    chunk_ids: Sequence[str]
    texts: Sequence[str]
    titles: Sequence[str] = ()
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Bundle:
    """Positions of the chunks that answer a query, each on its own, and of chunks that only resemble them."""

    goldens: tuple[int, ...]
    distractors: tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """A query to generate from a bundle. `seed` determines all random draws, so the order of work does not matter."""

    bundle: Bundle
    query_type: str
    seed: int


@dataclass(frozen=True)
class Draft:
    """A generated query, or "" with a short `reason`, by which rejections are counted.

    `intended` is the query without its typing errors, "" if it was written without them.
    """

    query: str
    reason: str = ""
    intended: str = ""


@runtime_checkable
class Generator(Protocol):
    """Generates queries, with a language model or with rules."""

    @property
    def types(self) -> tuple[str, ...] | None:
        """Return the requested types, None for all possible ones."""
        ...

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it can generate."""
        ...

    def drafts(self, chunks: Chunks, requests: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield the position of each request with its draft, in any order; the journal keeps paid replies."""
        ...


def check_types(generator: Generator, types: Iterable[str]) -> None:
    """Raise `ConfigError` for the first type that is unknown or that the generator cannot generate."""
    for name in types:
        if name not in QUERY_TYPES:
            raise ConfigError(f"generator.types: {name!r} is not a query type; {suggestion(name, QUERY_TYPES)}")
        if name not in generator.possible_types:
            able = ", ".join(possible for possible in QUERY_TYPES if possible in generator.possible_types)
            raise ConfigError(
                f"generator.types: {type(generator).__name__} cannot generate {name} queries; choose from {able}, or "
                "have a language model write them with generator=llm llm=openai llm.model=MODEL"
            )


def check_names(names: Iterable[str]) -> None:
    """Raise `ValueError` for the first name that is not a query type."""
    for name in names:
        if name not in QUERY_TYPES:
            raise ValueError(f"{name!r} is not a query type; {suggestion(name, QUERY_TYPES)}")
