"""Split documents into chunks, which are searched in their place: by heading, number of words, or sentences.

Each chunk is a document of its own. Its metadata name its document and its position there, and its text is an exact
excerpt. Nothing here depends on judgments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from runner.datasets.sections import sections
from runner.datasets.words import sentence_ends, word_starts

DOCUMENT, HEADING, START, END = "document_id", "heading", "start", "end"
"""The keys that a chunk's metadata add: the id of its document, the headings above it, and its position."""

_BETWEEN = " > "

Positions = NDArray[np.intp]
"""Character offsets in a text, ascending."""


@runtime_checkable
class Chunking(Protocol):
    """The settings of a chunking method, as a frozen value whose repr is its identity."""

    def split(self, corpus: Corpus) -> Corpus:
        """Return the chunks of all documents, in their order; ids are `DOCUMENT#0`, `DOCUMENT#1`, ..."""
        ...


@settings(frozen=True, config={"extra": "forbid"})
class Whole:
    """No chunking: documents are searched whole."""

    access: ClassVar[Access] = Access()

    def split(self, corpus: Corpus) -> Corpus:
        """Return the same corpus."""
        return corpus


@settings(frozen=True, config={"extra": "forbid"})
class _Sized:
    """A chunk has at most `size` words, and starts with the last `overlap` words of the previous one, or fewer.

    A word is a run of letters and digits; in scripts that are written without spaces, it is a character.
    """

    size: int = Field(default=256, ge=1)
    overlap: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError(
                f"overlap={self.overlap}: should be less than size={self.size}, so that each chunk starts "
                "later than the previous one"
            )
        return self


@settings(frozen=True, config={"extra": "forbid"})
class Tokens(_Sized):
    """Chunks with a fixed number of words, wherever these end; all but the last are full."""

    access: ClassVar[Access] = Access()

    def split(self, corpus: Corpus) -> Corpus:
        """Return the chunks of all documents."""
        return _chunks(corpus, self._pieces)

    def _pieces(self, text: str) -> Iterator[_Piece]:
        words = word_starts(text)
        return _pack(text, 0, len(text), words, words, self)


@settings(frozen=True, config={"extra": "forbid"})
class Sentences(_Sized):
    """Chunks of whole sentences, as many as fit in `size` words including `overlap`; longer sentences are split."""

    access: ClassVar[Access] = Access()

    def split(self, corpus: Corpus) -> Corpus:
        """Return the chunks of all documents."""
        return _chunks(corpus, self._pieces)

    def _pieces(self, text: str) -> Iterator[_Piece]:
        words = word_starts(text)
        return _pack(text, 0, len(text), words, _units(words, sentence_ends(text), self.size), self)


@settings(frozen=True, config={"extra": "forbid"})
class Headings(_Sized):
    """Chunks of the text under each heading of a Markdown document; text longer than `size` words is split.

    Headings are added to the title, after that of the document. A document without headings is split as by `Tokens`.
    """

    access: ClassVar[Access] = Access()

    def split(self, corpus: Corpus) -> Corpus:
        """Return the chunks of all documents."""
        return _chunks(corpus, self._pieces)

    def _pieces(self, text: str) -> Iterator[_Piece]:
        parts, words = sections(text), word_starts(text)
        deeper = [*(after.path[: len(part.path)] == part.path for part, after in pairwise(parts)), False]
        for section, has_parts in zip(parts, deeper, strict=True):
            empty = not text[section.body : section.end].strip()
            if empty and has_parts:
                continue  # the headings below it include its name
            start = section.start if empty else section.body
            own = words[slice(*np.searchsorted(words, (start, section.end)))]
            for piece in _pack(text, start, section.end, own, own, self):
                yield piece._replace(headings=section.path)


class _Piece(NamedTuple):
    start: int
    end: int
    headings: tuple[str, ...] = ()


def _chunks(corpus: Corpus, pieces: Callable[[str], Iterable[_Piece]]) -> Corpus:
    """Return a corpus of the pieces of each document; an empty document, which has no pieces, stays whole."""
    ids: list[str] = []
    texts: list[str] = []
    titles: list[str] = []
    metadata: list[Mapping[str, Any]] = []
    for position, (identifier, text) in enumerate(zip(corpus.ids, corpus.texts, strict=True)):
        title = corpus.titles[position] if corpus.titles else ""
        known = corpus.metadata[position] if corpus.metadata else {}
        for number, (start, end, headings) in enumerate([*pieces(text)] or [_Piece(0, len(text))]):
            ids.append(f"{identifier}#{number}")
            texts.append(text[start:end])
            titles.append(_BETWEEN.join(filter(None, (title, *(h for h in headings if h != title)))))
            metadata.append({**known, DOCUMENT: identifier, HEADING: _BETWEEN.join(headings), START: start, END: end})
    return Corpus(ids, texts, titles if any(titles) else (), metadata, corpus.filter_fields, corpus.search_fields)


def _pack(text: str, start: int, end: int, words: Positions, begins: Positions, sized: _Sized) -> Iterator[_Piece]:
    """Yield pieces of a part of a text with as many units as fit, given the starts of words and units."""
    bounds = np.concatenate(([start], begins[1:], [end]))
    counts = [*np.searchsorted(words, bounds[:-1]).tolist(), len(words)]  # the words before each unit
    at: list[int] = bounds.tolist()
    first, units = 0, len(at) - 1
    while first < units:
        after = max(bisect_right(counts, counts[first] + sized.size) - 1, first + 1)
        piece = text[at[first] : at[after]]
        if piece.strip():
            yield _Piece(at[first] + len(piece) - len(piece.lstrip()), at[first] + len(piece.rstrip()))
        if after == units:
            return
        # Repeat as much as requested, but so little that the next unit fits.
        first = bisect_left(counts, max(counts[after] - sized.overlap, counts[after + 1] - sized.size))


def _units(words: Positions, ends: Iterable[int], size: int) -> Positions:
    """Return the starts of the units that end at the given places; units of more than `size` words are split."""
    places = np.fromiter(ends, np.intp)
    begin_of = {0: 0}
    for count, end in zip(np.searchsorted(words, places).tolist(), places.tolist(), strict=True):
        begin_of.setdefault(count, end)
    begins = [
        begin_of.get(count, int(words[count]))
        for first, after in pairwise([*begin_of, len(words)])
        for count in range(first, after, size)
    ]
    return np.array(begins, dtype=np.intp)
