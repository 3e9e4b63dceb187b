"""Count what a model cuts from texts that are longer than it reads.

The counts are figures by name: of the texts of the kind that a name begins with, how many were cut, how many tokens (or
words, of passages in prompts) all have, and how many of these were not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from retrievers.encoders.base import Role
from retrievers.store import Key, Store
from retrievers.work import TEXTS_CUT

if TYPE_CHECKING:
    from retrievers.base import Corpus

RESULTS_VERSION = "cuts 1"

CutKind = Literal["documents", "queries", "pairs", "passages"]
UNITS: Mapping[CutKind, str] = {"documents": "tokens", "queries": "tokens", "pairs": "tokens", "passages": "words"}
"""What the length of each kind of text is counted in: passages in prompts are cut after a number of words."""

KINDS: Mapping[Role, CutKind] = {"document": "documents", "query": "queries"}

CUT = "_cut"
"""The end of the name of the number of texts that were cut."""

_TOGETHER = 1024
"""The number of texts whose tokens are in memory at a time."""


class Length(NamedTuple):
    """How many tokens (or words) a text has, and how many of these a model does not read."""

    tokens: int
    unread: int

    def join(self, other: Length) -> Length:
        """Return the length of two texts that are read apart."""
        return Length(self.tokens + other.tokens, self.unread + other.unread)


@dataclass(frozen=True)
class Cuts:
    """How many of some texts were cut, the tokens of all texts, and how many of these were not read."""

    cut: int = 0
    tokens: int = 0
    unread: int = 0

    @classmethod
    def of(cls, lengths: Sequence[Length]) -> Cuts:
        """Return the cuts of texts of these lengths."""
        unread = [length.unread for length in lengths]
        return cls(sum(n > 0 for n in unread), sum(length.tokens for length in lengths), sum(unread))

    def to_figures(self, kind: CutKind) -> dict[str, float]:
        """Return the counts by name."""
        unit = UNITS[kind]
        return {f"{kind}{CUT}": self.cut, f"{kind}_{unit}": self.tokens, f"{kind}_{unit}_unread": self.unread}

    @classmethod
    def from_figures(cls, figures: Mapping[str, float], kind: CutKind, part: str = "") -> Cuts:
        """Return the counts that `to_figures` named, of a part of a retriever, given with its final dot."""
        names = (f"{part}{kind}{name}" for name in (CUT, f"_{UNITS[kind]}", f"_{UNITS[kind]}_unread"))
        return cls(*(int(figures.get(name, 0)) for name in names))


@runtime_checkable
class CuttingModel(Protocol):
    """A model that counts what it cuts from documents and queries."""

    def count_cuts(self, corpus: Corpus, queries: Sequence[str], store: Store) -> dict[str, float]:
        """Return the counts by name, {} if the model does not say how many tokens it reads."""
        ...


@runtime_checkable
class SilentCutter(Protocol):
    """Settings of a service that may cut long texts without saying so."""

    def describe_silent_cuts(self) -> str:
        """Return that the service may cut texts, with a remedy; "" if it does not."""
        ...


UNKNOWN_CUTS = "the service may cut long texts without saying so, so it is unknown how many were cut"

REFUSING = (False, "NONE", "none", "false")
"""Values of `truncation` with which services refuse long texts instead of cutting them."""


def count_by_role(
    corpus: Corpus,
    queries: Sequence[str],
    build_key: Callable[[Role, Sequence[str]], Key],
    count: Callable[[Role, Sequence[str]], Cuts],
    made_by: str,
    store: Store,
) -> dict[str, float]:
    """Return the cuts of documents and queries by name; each is counted once, under a key like that of its vectors.

    `made_by` is the module that encodes.
    """
    figures: dict[str, float] = {}
    by_role: list[tuple[Role, list[str]]] = [
        ("document", list(corpus.contents())),
        ("query", [str(query) for query in queries]),
    ]
    for role, texts in by_role:
        figures |= _count_stored(role, texts, build_key, count, made_by, store)
    return figures


def _count_stored(
    role: Role,
    texts: Sequence[str],
    build_key: Callable[[Role, Sequence[str]], Key],
    count: Callable[[Role, Sequence[str]], Cuts],
    made_by: str,
    store: Store,
) -> dict[str, float]:
    like = build_key(role, texts)
    key = Key.of(TEXTS_CUT, (__name__, made_by), **dict(like.parts), vectors=like.kind.name)

    def build() -> dict[str, Any]:
        cuts = count(role, texts)
        return {name: np.array(n) for name, n in cuts.to_figures(KINDS[role]).items()} if cuts.tokens else {}

    return {name: float(n) for name, n in store.arrays(key, build).items()}


def measure_lengths(
    model: Any,  # noqa: ANN401 (any class of sentence-transformers)
    texts: Sequence[str] | Sequence[tuple[str, str]],
    role: Role = "document",
) -> list[Length]:
    """Return the tokens of texts, or of pairs of texts, and how many of them an open model does not read.

    Both are 0 if the model does not say how many it reads, or has no tokenizer that counts them.
    """
    tokenizer = getattr(model, "tokenizer", None)
    modules = model if isinstance(model, Iterable) else ()
    own = (getattr(module, f"{role}_length", None) for module in modules)  # late interaction has one for each role
    limit = next(filter(None, own), getattr(model, "max_seq_length", None))
    if not callable(tokenizer) or not isinstance(limit, int):
        return [Length(0, 0)] * len(texts)
    lengths: list[Length] = []
    for start in range(0, len(texts), _TOGETHER):
        block = list(texts[start : start + _TOGETHER])
        ids = tokenizer(block, truncation=False, verbose=False)["input_ids"]
        lengths += [Length(len(own), max(len(own) - limit, 0)) for own in ids]
    return lengths
