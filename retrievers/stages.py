"""The stages of a composed retriever: what each does, and which rankings of other retrievers it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Retriever, iter_parts
from retrievers.capabilities import is_retriever


@dataclass(frozen=True, eq=False)
class Input:
    """A ranking that a stage reads: the `depth` best hits of a retriever for the same queries.

    `unused` (queries,) marks the queries for which the stage leaves it out; None if there are none.
    """

    retriever: Retriever
    depth: int
    unused: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """The step of a composed retriever in a word, such as `fusion`, and its inputs by name.

    It is not `complete` if it makes other searches too, such as those for expansions of a query.
    """

    step: str
    inputs: Mapping[str, Input]
    complete: bool = True


@runtime_checkable
class Staged(Protocol):
    """A composed retriever that says what it reads, so that reports can name the step that lost a document."""

    def describe_stage(self, queries: Sequence[str], k: int) -> Stage:
        """Return the step and the inputs of a search for k hits; its inputs may be composed themselves."""
        ...


def describe_stage(retriever: Retriever, queries: Sequence[str], k: int) -> Stage | None:
    """Return the last stage of a retriever; None for one that searches itself.

    That of a retriever with others within, which does not describe it, has no inputs and is not complete.
    """
    if isinstance(retriever, Staged):
        return retriever.describe_stage(queries, k)
    return Stage("", {}, complete=False) if any(map(_has_retriever, iter_parts(retriever))) else None


def _has_retriever(value: object) -> bool:
    return is_retriever(value) or any(map(_has_retriever, iter_parts(value)))
