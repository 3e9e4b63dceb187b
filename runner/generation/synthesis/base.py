"""The words of synthesis: chunks, bundles of them, what is wanted of a bundle, and the query that came of it."""

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
"""Why there is no comparison."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks in columns; a chunk's key is its document's id and its own. `vectors` (n x d, float32) have length 1."""

    doc_ids: Sequence[str]
    chunk_ids: Sequence[str]
    texts: Sequence[str]
    titles: Sequence[str] = ()
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Bundle:
    """Positions of the chunks that answer a query, each enough by itself, and of those that only look like them."""

    goldens: tuple[int, ...]
    distractors: tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """A query to be made of a bundle. `seed` decides all that chance does; so its place in the work decides nothing."""

    bundle: Bundle
    query_type: str
    seed: int


@dataclass(frozen=True)
class Draft:
    """A query that was made, or "" with why there is none in `reason`, a word or two that rejections are counted by."""

    query: str
    reason: str = ""


@runtime_checkable
class Generator(Protocol):
    """What makes queries: a language model, or arithmetic on text."""

    @property
    def types(self) -> tuple[str, ...] | None:
        """Return the types that are asked for, None for all that are possible."""
        ...

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it can make."""
        ...

    def drafts(self, chunks: Chunks, wanted: Iterable[Wanted], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield each wanted query's position with its draft, in any order; the journal keeps what is paid for."""
        ...


def check_types(generator: Generator, types: Iterable[str]) -> None:
    """Raise `ConfigError` for the first type that is unknown, or that the generator cannot make."""
    for name in types:
        if name not in QUERY_TYPES:
            raise ConfigError(f"generator.types: there is no query type {name!r}: {suggestion(name, QUERY_TYPES)}")
        if name not in generator.possible_types:
            able = ", ".join(each for each in QUERY_TYPES if each in generator.possible_types)
            raise ConfigError(
                f"generator.types: {type(generator).__name__} cannot make {name} queries; it can make {able}"
            )
