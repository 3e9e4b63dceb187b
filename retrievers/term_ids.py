"""From texts to term ids, chunk by chunk in parallel: the fast way to the terms of an analyzer.

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
from numba import njit
from numpy.typing import NDArray

from retrievers.analyzer import Analyzer
from retrievers.pieces import FNV_PRIME, Column, Pieces, append_line, create_pieces, double, find_slot, spread
from retrievers.threads import map_threads

CHUNK_CHARACTERS = 8 << 20
"""Size of a chunk. Larger chunks need more memory, smaller ones have more pieces in common."""


@dataclass(frozen=True, eq=False)
class TermIds:
    """The number of terms of each document, and the term ids of all documents, concatenated; both int32."""

    lengths: NDArray[np.int32]
    terms: NDArray[np.int32]


def iter_term_ids(contents: Iterable[str], analyzer: Analyzer, number: Callable[[str], int]) -> Iterator[TermIds]:
    """Yield the term ids of documents, in chunks; `number` gets terms in the order of their first occurrence."""
    analyse = analyzer.once()
    known, terms, begins = create_pieces(), array("i", [-1]), array("q", [1])  # an empty array has no buffer
    for cut in map_threads(partial(_cut, analyzer), _split_chunks(contents)):
        seen = known
        places, _, known = _number_pieces(cut.pieces.lines[: cut.pieces.starts[cut.pieces.n]], _IN_LINES, seen)
        for piece in known.texts(seen.n):
            terms.extend(map(number, analyse(piece)))
            begins.append(len(terms))
        chunk = _replace_pieces(
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


_END, _SEPARATOR, _JOINT, _LETTER, _BEYOND = range(5)
"""Kinds of bytes: the end of a document, between words, between parts of a word, in a word, beyond ASCII."""

_DOCUMENT_END, _LINE_END, _LESS, _GREATER = b"\xff\n<>"
"""The end of a document, a byte that UTF-8 does not use; the end of a piece; the first and the last of < = >."""

_IN_LINES = np.where(np.arange(256) == _LINE_END, _SEPARATOR, _LETTER).astype(np.uint8)
"""The kinds of bytes in text whose pieces are lines."""


def _cut(analyzer: Analyzer, chunk: Sequence[str]) -> _Cut:
    kinds = np.full(256, _BEYOND, dtype=np.uint8)
    kinds[_DOCUMENT_END] = _END
    for byte in range(128):
        letter, joint = chr(byte).isalnum() or chr(byte) == "_", chr(byte) in analyzer.joints
        kinds[byte] = _LETTER if letter else _JOINT if joint else _SEPARATOR
    if analyzer.folds:
        as_bytes = analyzer.folds_ascii_alike  # lowercased below, all at once
        chunk = [text if as_bytes and text.isascii() else analyzer.lower(text) for text in chunk]
    text = bytearray([_DOCUMENT_END]).join(text.encode("utf-8", "surrogatepass") for text in [*chunk, ""])
    return _Cut(
        *_number_pieces(np.frombuffer(text.lower() if analyzer.folds else text, np.uint8), kinds, create_pieces())
    )


@njit(cache=True, nogil=True)
def _number_pieces(text: Column, kinds: Column, pieces: Pieces) -> tuple[Column, Column, Pieces]:
    """Return the number of each piece of a text, the count per document, and all pieces including new ones.

    The hash is 31 bits of FNV-1a (Fowler, Noll and Vo).
    """
    n, lines, starts, slots = pieces
    numbers, n_numbers = np.empty(len(text) // 2 + 1, dtype=np.int32), 0
    lengths, n_documents, n_before = np.empty(np.sum(text == _DOCUMENT_END), dtype=np.int32), 0, 0
    begin, end, hashed, kept = -1, 0, 0, 0
    for at in range(len(text)):
        kind = kinds[text[at]]
        if kind >= _LETTER:
            if begin < 0:
                composed = kind == _BEYOND and at > 0 and _LESS <= text[at - 1] <= _GREATER
                begin, hashed = at - int(composed), 0
            hashed = (hashed ^ text[at]) * FNV_PRIME
            end, kept = at + 1, hashed
            continue
        if kind == _JOINT:  # ignored at the ends of a piece
            hashed = (hashed ^ text[at]) * FNV_PRIME
            continue
        if begin >= 0:
            kept = (kept ^ kept >> 32) & 0x7FFFFFFF
            slot = find_slot(kept, slots, lines, starts, text, begin, end)
            if slots[slot] < 0:
                slots[slot] = kept << 32 | n
                lines = append_line(lines, starts[n], text, begin, end)
                starts[n + 1] = starts[n] + end - begin + 1
                n += 1
            numbers[n_numbers] = slots[slot] & 0xFFFFFFFF
            begin, n_numbers = -1, n_numbers + 1
            if 2 * n == len(slots):
                slots, starts = spread(slots), double(starts)
        if kind == _END:
            lengths[n_documents] = n_numbers - n_before
            n_documents, n_before = n_documents + 1, n_numbers
    return numbers[:n_numbers], lengths, Pieces(n, lines, starts, slots)


@njit(cache=True, nogil=True)
def _replace_pieces(
    numbers: Column, lengths: Column, places: Column, begins: Column, terms: Column
) -> tuple[Column, Column]:
    """Return the number of terms of each document, and the terms that replace the numbers of pieces.

    The number n stands for the terms from `begins[places[n]]` to the next.
    """
    size = 0
    for number in numbers:
        size += begins[places[number] + 1] - begins[places[number]]
    replaced, n_terms = np.empty(size, dtype=np.int32), np.empty(len(lengths), dtype=np.int32)
    at, size = 0, 0
    for document in range(len(lengths)):
        before = size
        for number in numbers[at : at + lengths[document]]:
            for term in terms[begins[places[number]] : begins[places[number] + 1]]:
                replaced[size] = term
                size += 1
        at += lengths[document]
        n_terms[document] = size - before
    return n_terms, replaced
