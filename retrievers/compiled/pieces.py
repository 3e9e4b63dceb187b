"""A hash table of distinct pieces of text: see `retrievers.pieces`."""

from __future__ import annotations

import numpy as np
from numba import njit

from retrievers.pieces import FNV_PRIME, Column, Pieces

_LINE_END = ord("\n")

_BLOCK = 256
"""Number of pieces that are looked up together."""


@njit(cache=True, nogil=True)
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
    lines[start + end - begin] = _LINE_END
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


@njit(cache=True, nogil=True)
def number_ranges(text: Column, begins: Column, ends: Column, pieces: Pieces) -> tuple[Column, Pieces]:
    """Return the number of the piece between each begin and end of a text, int32, and all pieces including new ones.

    What the pieces of a block are compared with is touched first: the processor then waits for all of it at once.
    """
    n, lines, starts, slots = pieces
    numbers = np.empty(len(begins), dtype=np.int32)
    hashes, entries, touched = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64), 0
    for first in range(0, len(begins), _BLOCK):
        size = min(_BLOCK, len(begins) - first)
        for i in range(size):
            hashed = 0
            for at in range(begins[first + i], ends[first + i]):
                hashed = (hashed ^ text[at]) * FNV_PRIME
            hashes[i] = (hashed ^ hashed >> 32) & 0x7FFFFFFF
        for i in range(size):
            entries[i] = slots[hashes[i] & (len(slots) - 1)]
        for i in range(size):
            entries[i] = starts[entries[i] & 0xFFFFFFFF] if entries[i] >= 0 else 0
        for i in range(size):
            touched ^= lines[entries[i]]
        for i in range(size):
            begin, end = begins[first + i], ends[first + i]
            slot = find_slot(hashes[i], slots, lines, starts, text, begin, end)
            if slots[slot] < 0:
                slots[slot] = hashes[i] << 32 | n
                lines = append_line(lines, starts[n], text, begin, end)
                starts[n + 1] = starts[n] + end - begin + 1
                n += 1
            numbers[first + i] = slots[slot] & 0xFFFFFFFF
            if 2 * n == len(slots):
                slots, starts = spread(slots), double(starts)
    entries[0] = touched  # so that the compiler keeps it
    return numbers, Pieces(n, lines, starts, slots)
