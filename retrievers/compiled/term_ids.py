"""Splits text into pieces, and replaces pieces by terms: see `retrievers.lexical.term_ids`."""

from __future__ import annotations

import numpy as np
from numba import njit

from retrievers.compiled.layouts import (
    BEYOND,
    DOCUMENT_END,
    END,
    FNV_PRIME,
    GREATER,
    JOINT,
    LESS,
    LETTER,
    Column,
    Pieces,
)  # fmt: skip
from retrievers.compiled.pieces import append_line, double, find_slot, spread


@njit(cache=True, nogil=True)
def number_pieces(text: Column, kinds: Column, pieces: Pieces) -> tuple[Column, Column, Pieces]:
    """Return the number of each piece of a text, the count per document, and all pieces including new ones.

    The hash is 31 bits of FNV-1a (Fowler, Noll and Vo).
    """
    n, lines, starts, slots = pieces
    numbers, n_numbers = np.empty(len(text) // 2 + 1, dtype=np.int32), 0
    lengths, n_documents, n_before = np.empty(np.sum(text == DOCUMENT_END), dtype=np.int32), 0, 0
    begin, end, hashed, kept = -1, 0, 0, 0
    for at in range(len(text)):
        kind = kinds[text[at]]
        if kind >= LETTER:
            if begin < 0:
                composed = kind == BEYOND and at > 0 and LESS <= text[at - 1] <= GREATER
                begin, hashed = at - int(composed), 0
            hashed = (hashed ^ text[at]) * FNV_PRIME
            end, kept = at + 1, hashed
            continue
        if kind == JOINT:  # does not count at the ends of a piece
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
        if kind == END:
            lengths[n_documents] = n_numbers - n_before
            n_documents, n_before = n_documents + 1, n_numbers
    return numbers[:n_numbers], lengths, Pieces(n, lines, starts, slots)


@njit(cache=True, nogil=True)
def replace_pieces(
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
