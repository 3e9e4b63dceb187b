"""A hash table of distinct pieces of text: see `retrievers.pieces`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from retrievers.compiled.byte_words import load_bytes, load_word
from retrievers.compiled.layouts import LINE_END, Column, Pieces

_BLOCK = 256
"""The number of pieces that are looked up together."""


@njit(cache=True, nogil=True, inline="always")
def find_slot(hashed: int, slots: Column, lines: Column, starts: Column, text: Column, begin: int, end: int) -> int:
    """Return the slot of a piece of the text, or the empty one where it belongs."""
    slot = hashed & (len(slots) - 1)
    while slots[slot] >= 0:
        if slots[slot] >> 32 == hashed:
            line, line_end = starts[slots[slot] & 0xFFFFFFFF], starts[(slots[slot] & 0xFFFFFFFF) + 1] - 1
            at = begin
            while at < end and line < line_end and lines[line] == text[at]:
                line, at = line + 1, at + 1
            if at == end and line == line_end:
                break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@njit(cache=True, nogil=True)
def append_line(lines: Column, start: int, text: Column, begin: int, end: int) -> Column:
    """Return lines with a piece of the text at `start`, in a larger array if necessary."""
    while start + end - begin >= len(lines):
        lines = double(lines)
    for i in range(end - begin):
        lines[start + i] = text[begin + i]
    lines[start + end - begin] = LINE_END
    return lines


@njit(cache=True, nogil=True)
def double(column: Column) -> Column:
    """Return a column of twice the length that begins with the given one."""
    larger = np.empty(2 * len(column), dtype=column.dtype)
    for i in range(len(column)):
        larger[i] = column[i]
    return larger


@njit(cache=True, nogil=True)
def spread(slots: Column) -> Column:
    """Return a hash table of twice the size with the same entries."""
    larger = np.full(2 * len(slots), -1, dtype=np.int64)
    for entry in slots:
        if entry >= 0:
            slot = (entry >> 32) & (len(larger) - 1)
            while larger[slot] >= 0:
                slot = (slot + 1) & (len(larger) - 1)
            larger[slot] = entry
    return larger


_FACTOR, _MIXED_BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
"""The factor of Fibonacci hashing (Knuth, volume 3, 6.4), and the number of bits by which products are folded."""


@njit(cache=True, nogil=True, inline="always")
def _hash(text: Column, begin: int, end: int) -> Any:  # noqa: ANN401 (compiled)
    """Return a hash of 31 bits of a piece of the text."""
    hashed = np.uint64(end - begin)
    at = begin
    while at + 8 <= end:
        hashed = (hashed ^ load_word(text, at)) * _FACTOR
        hashed ^= hashed >> _MIXED_BITS
        at += 8
    if at < end:
        hashed = (hashed ^ load_bytes(text, at, end - at)) * _FACTOR
        hashed ^= hashed >> _MIXED_BITS
    return np.int64(hashed & np.uint64(0x7FFFFFFF))


@njit(cache=True, nogil=True)
def number_ranges(text: Column, begins: Column, ends: Column, pieces: Pieces) -> tuple[Column, Pieces]:
    """Return the number of the piece between each begin and end of a text, int32, and all pieces including new ones.

    For each block, the memory that its pieces are compared with is touched first, so that the processor waits for all
    of it at once.
    """
    n, lines, starts, slots = pieces
    numbers = np.empty(len(begins), dtype=np.int32)
    hashes, entries, touched = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64), 0
    for first in range(0, len(begins), _BLOCK):
        size = min(_BLOCK, len(begins) - first)
        length = starts[n] + size
        for i in range(size):
            hashes[i] = _hash(text, begins[first + i], ends[first + i])
            length += ends[first + i] - begins[first + i]
        while 2 * (n + size) > len(slots):
            slots, starts = spread(slots), double(starts)
        while length > len(lines):
            lines = double(lines)
        for i in range(size):
            entries[i] = slots[hashes[i] & (len(slots) - 1)]
        for i in range(size):
            entries[i] = starts[entries[i] & 0xFFFFFFFF] if entries[i] >= 0 else 0
        for i in range(size):
            touched ^= lines[entries[i]]
        places = slice(first, first + size)
        n = _number_block(text, begins[places], ends[places], hashes, numbers[places], n, lines, starts, slots)
    entries[0] = touched  # so that the compiler keeps it
    return numbers, Pieces(n, lines, starts, slots)


@njit(cache=True, nogil=True)
def _number_block(
    text: Column, begins: Column, ends: Column, hashes: Column, numbers: Column, n: int, lines: Column, starts: Column,
    slots: Column,
) -> int:  # fmt: skip
    """Fill in the numbers of pieces with these hashes; return the count of all pieces. All arrays must have room."""
    for i in range(len(begins)):
        slot = find_slot(hashes[i], slots, lines, starts, text, begins[i], ends[i])
        if slots[slot] < 0:
            slots[slot] = hashes[i] << 32 | n
            at = starts[n]
            for place in range(begins[i], ends[i]):
                lines[at] = text[place]
                at += 1
            lines[at] = LINE_END
            starts[n + 1] = at + 1
            n += 1
        numbers[i] = slots[slot] & 0xFFFFFFFF
    return n


@njit(cache=True, nogil=True)
def strip_line_ends(n: int, lines: Column, starts: Column) -> tuple[Column, Column]:
    """Return the text of the first n lines without line ends, the start of each, and the end of the last."""
    text, places = np.empty(starts[n] - n, dtype=np.uint8), np.empty(n + 1, dtype=np.int64)
    at = 0
    for i in range(n):
        places[i] = at
        for line in range(starts[i], starts[i + 1] - 1):
            text[at] = lines[line]
            at += 1
    places[n] = at
    return text, places


@njit(cache=True, nogil=True)
def find_ranges(text: Column, starts: Column, pieces: Pieces) -> Column:
    """Return the number of the piece between each start and the next one of a text, int32; -1 for unknown pieces."""
    _, lines, line_starts, slots = pieces
    numbers = np.empty(len(starts) - 1, dtype=np.int32)
    hashes, touched = np.empty(_BLOCK, dtype=np.int64), 0
    for first in range(0, len(numbers), _BLOCK):
        size = min(_BLOCK, len(numbers) - first)
        for i in range(size):
            hashes[i] = _hash(text, starts[first + i], starts[first + i + 1])
        for i in range(size):  # the processor waits for all slots of a block at once
            touched ^= slots[hashes[i] & (len(slots) - 1)]
        for i in range(size):
            begin, end = starts[first + i], starts[first + i + 1]
            entry = slots[find_slot(hashes[i], slots, lines, line_starts, text, begin, end)]
            numbers[first + i] = entry & 0xFFFFFFFF if entry >= 0 else -1
    hashes[0] = touched  # so that the compiler keeps it
    return numbers
