"""Number the distinct pieces of text by compiled code: a hash table over their bytes, and the bytes themselves.

Callers decide what a piece is, find the pieces in text and hash them with `FNV_PRIME` of `retrievers.compiled.layouts`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrievers.compiled.layouts import Pieces
from retrievers.id_table import IdTable
from retrievers.threads import count_threads, map_threads


def list_texts(pieces: Pieces, first: int = 0, errors: str = "surrogatepass") -> list[str]:
    """Return the pieces from number `first` on."""
    begin, end = int(pieces.starts[first]), int(pieces.starts[pieces.n])
    lines = pieces.lines[begin:end].tobytes()
    texts = lines.decode("utf-8", errors).split("\n")[:-1]
    if len(texts) == pieces.n - first:
        return texts
    starts = (pieces.starts[first : pieces.n + 1] - begin).tolist()  # some piece contains a line end
    return [lines[i : j - 1].decode("utf-8", errors) for i, j in pairwise(starts)]


def build_id_table(pieces: Pieces) -> IdTable:
    """Return the pieces as a table of ids, which can be searched."""
    from retrievers.compiled.pieces import strip_line_ends

    text, starts = strip_line_ends(pieces.n, pieces.lines, pieces.starts)
    return IdTable(text, starts, pieces)


def create_pieces(room: int = 1 << 14) -> Pieces:
    """Return an empty table with room for about `room` pieces before it grows."""
    room = 1 << max(room - 1, 1).bit_length()
    columns = np.empty(8 * room, dtype=np.uint8), np.zeros(room + 1, dtype=np.int64)
    return Pieces(0, *columns, np.full(2 * room, -1, dtype=np.int64))


def merge_pieces(first: Pieces, second: Pieces) -> tuple[NDArray[np.int32], Pieces]:
    """Return the number of each second piece in the merged pieces, int32, and the merged pieces; reuses `first`."""
    from retrievers.compiled.pieces import number_ranges

    lines = second.lines.view()
    lines.flags.writeable = False  # as text in memory-mapped files, for which `number_ranges` is compiled
    numbers, both = number_ranges(lines, second.starts[: second.n], second.starts[1 : second.n + 1] - 1, first)
    return numbers, Pieces(*both)


def find_ids(ids: IdTable, table: IdTable) -> NDArray[np.int32]:
    """Return the place of each id in a table of distinct ones, int32; -1 for an id that is not there."""
    from retrievers.compiled.pieces import find_ranges

    pieces = table.pieces or number_parts(table.text, table.starts[:-1], table.starts[1:])[1]
    places: NDArray[np.int32] = find_ranges(ids.text, ids.starts, pieces)
    return places


_PARALLEL = 1 << 18
"""The number of pieces from which several threads are faster, although their tables have to be merged."""


def number_parts(
    text: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64], parallel: int = _PARALLEL
) -> tuple[NDArray[np.int32], Pieces]:
    """Return the number of each part of a read-only text, int32, and the distinct parts; parallel for many parts."""
    from retrievers.compiled.pieces import number_ranges

    threads = count_threads() if len(begins) >= parallel else 1
    limits = np.linspace(0, len(begins), threads + 1).astype(np.int64).tolist()

    def number_some(some: tuple[int, int]) -> tuple[NDArray[np.int32], Pieces]:
        table = create_pieces(some[1] - some[0])
        numbers, pieces = number_ranges(text, begins[slice(*some)], ends[slice(*some)], table)
        return numbers, Pieces(*pieces)

    (first, pieces), *others = map_threads(number_some, list(pairwise(limits)), threads)
    columns = [first]
    for numbers, other in others:
        places, pieces = merge_pieces(pieces, other)
        columns.append(places[numbers])
    return np.concatenate(columns) if others else first, pieces
