"""Turn texts into term ids, chunk by chunk in parallel: the fast way to the terms of an analyzer.

Compiled code splits the bytes of texts into pieces, at the ASCII characters that occur in no word, and numbers the
distinct pieces; the analyzer sees each of these once. A piece is a word, or several words not separated by an ASCII
character. The terms of a text are those of its pieces, in order: Unicode normalisation never joins an ASCII character
with the one before it, and of those between words only < = > with the one after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.compiled.layouts import BEYOND, DOCUMENT_END, END, JOINT, LETTER, LINE_END, SEPARATOR, Pieces
from retrievers.lexical.analyzer import Analyzer
from retrievers.pieces import create_pieces, list_texts
from retrievers.threads import map_threads

CHUNK_CHARACTERS = 8 << 20
"""The size of a chunk. Larger chunks need more memory, smaller ones have more pieces in common."""


@dataclass(frozen=True, eq=False)
class TermIds:
    """The number of terms of each document, and the term ids of all documents, concatenated; both int32."""

    lengths: NDArray[np.int32]
    terms: NDArray[np.int32]


def iter_term_ids(contents: Iterable[str], analyzer: Analyzer, number: Callable[[str], int]) -> Iterator[TermIds]:
    """Yield the term ids of documents, in chunks; `number` gets terms in the order of their first occurrence."""
    from retrievers.compiled.term_ids import number_pieces, replace_pieces

    analyse = analyzer.once()
    known, terms, begins = create_pieces(), array("i", [-1]), array("q", [1])  # an empty array has no buffer
    for cut in map_threads(partial(_cut, analyzer), _split_chunks(contents)):
        seen = known
        places, _, known = number_pieces(cut.pieces.lines[: cut.pieces.starts[cut.pieces.n]], _IN_LINES, seen)
        for piece in list_texts(known, seen.n):
            terms.extend(map(number, analyse(piece)))
            begins.append(len(terms))
        chunk = replace_pieces(
            cut.numbers, cut.lengths, places, np.frombuffer(begins, np.int64), np.frombuffer(terms, "i")
        )
        yield TermIds(*chunk)


def _split_chunks(contents: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for content in contents:
        chunk.append(content)
        size += len(content)
        if size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _Cut(NamedTuple):
    """Documents split into pieces: the number of each piece, the count per document (both int32), and the pieces."""

    numbers: NDArray[np.int32]
    lengths: NDArray[np.int32]
    pieces: Pieces


_IN_LINES = np.where(np.arange(256) == LINE_END, SEPARATOR, LETTER).astype(np.uint8)
"""The kinds of bytes in text whose pieces are lines."""


def _cut(analyzer: Analyzer, chunk: Sequence[str]) -> _Cut:
    from retrievers.compiled.term_ids import number_pieces

    kinds = np.full(256, BEYOND, dtype=np.uint8)
    kinds[DOCUMENT_END] = END
    for byte in range(128):
        letter, joint = chr(byte).isalnum() or chr(byte) == "_", chr(byte) in analyzer.joints
        kinds[byte] = LETTER if letter else JOINT if joint else SEPARATOR
    if analyzer.folds:
        as_bytes = analyzer.folds_ascii_alike  # lowercased below in one step
        chunk = [text if as_bytes and text.isascii() else analyzer.lower(text) for text in chunk]
    text = bytearray([DOCUMENT_END]).join(text.encode("utf-8", "surrogatepass") for text in [*chunk, ""])
    return _Cut(
        *number_pieces(np.frombuffer(text.lower() if analyzer.folds else text, np.uint8), kinds, create_pieces())
    )
