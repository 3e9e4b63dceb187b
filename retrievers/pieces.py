"""Distinct pieces of text, numbered by compiled code: a hash table over their bytes, and the bytes themselves.

Callers find pieces in text and hash them with `FNV_PRIME`; nothing here knows what a piece is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.threads import count_threads, map_threads

Column = NDArray[Any]

FNV_PRIME = 0x100000001B3
"""The factor of FNV-1a (Fowler, Noll and Vo), of which 31 bits are used."""

_LINE_END = ord("\n")


class Pieces(NamedTuple):
    """Numbered pieces: their count, one line of text each, the start of each line, and a hash table of the numbers.

    A slot of the table is -1 or holds the hash of a piece above its number; at most half of the slots are taken.
    """

    n: int
    lines: NDArray[np.uint8]
    starts: NDArray[np.int64]
    slots: NDArray[np.int64]

    def texts(self, first: int = 0, errors: str = "surrogatepass") -> list[str]:
        """Return the pieces from number `first` on."""
        begin, end = int(self.starts[first]), int(self.starts[self.n])
        lines = self.lines[begin:end].tobytes()
        texts = lines.decode("utf-8", errors).split("\n")[:-1]
        if len(texts) == self.n - first:
            return texts
        starts = (self.starts[first : self.n + 1] - begin).tolist()  # some piece contains a line end
        return [lines[i : j - 1].decode("utf-8", errors) for i, j in pairwise(starts)]


def create_pieces() -> Pieces:
    """Return a table without pieces."""
    room = 1 << 14
    columns = np.empty(8 * room, dtype=np.uint8), np.zeros(room + 1, dtype=np.int64)
    return Pieces(0, *columns, np.full(2 * room, -1, dtype=np.int64))


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


_BLOCK = 256
"""Number of pieces that are looked up together."""


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


def merge_pieces(first: Pieces, second: Pieces) -> tuple[NDArray[np.int32], Pieces]:
    """Return the number that each of the second pieces has among both, int32, and both; `first` is used up."""
    lines = second.lines.view()
    lines.flags.writeable = False  # as text in memory-mapped files, for which `number_ranges` is compiled
    numbers, both = number_ranges(lines, second.starts[: second.n], second.starts[1 : second.n + 1] - 1, first)
    return numbers, Pieces(*both)


def number_parts(
    text: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Pieces]:
    """Return the number of each part of a read-only text, int32, and the distinct parts; in parallel."""
    limits = np.linspace(0, len(begins), count_threads() + 1).astype(np.int64).tolist()

    def number_some(some: tuple[int, int]) -> tuple[NDArray[np.int32], Pieces]:
        numbers, pieces = number_ranges(text, begins[slice(*some)], ends[slice(*some)], create_pieces())
        return numbers, Pieces(*pieces)

    (first, pieces), *others = map_threads(number_some, list(pairwise(limits)))
    columns = [first]
    for numbers, other in others:
        places, pieces = merge_pieces(pieces, other)
        columns.append(places[numbers])
    return np.concatenate(columns), pieces
