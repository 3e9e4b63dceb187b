"""The layouts and constants that compiled code shares with its callers; without numba, so they import it freely."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

FNV_PRIME = 0x100000001B3
"""The factor of FNV-1a (Fowler, Noll and Vo), of which 31 bits are used."""

END, SEPARATOR, JOINT, LETTER, BEYOND = range(5)
"""Kinds of bytes: the end of a document, between words, between parts of a word, in a word, beyond ASCII."""

DOCUMENT_END, LINE_END, LESS, GREATER = b"\xff\n<>"
"""The end of a document, a byte that UTF-8 does not use; the end of a piece; the first and the last of < = >."""


class Pieces(NamedTuple):
    """Numbered pieces: their count, one line of text each, the start of each line, and a hash table of the numbers.

    A slot of the table is -1, or has the hash of a piece in its high bits and the number of the piece in its low bits.
    At most half of the slots are taken.
    """

    n: int
    lines: NDArray[np.uint8]
    starts: NDArray[np.int64]
    slots: NDArray[np.int64]


LANE, BLOCK_SIZE = 64, 4
"""How many scores are checked together, and how many documents have one bound."""


class DocumentBlocks(NamedTuple):
    """Blocks of `BLOCK_SIZE` documents: the largest values of frequent terms in each, and the values of all documents.

    Term t has the row `rows[t]` of `maxima` (uint8), in units of `units[t]`, rounded up; the row of a rare term is -1.
    The number of columns is a multiple of `LANE`. Document d has the ascending `terms` and their `values` from
    `starts[d]` to `starts[d + 1]`.
    """

    rows: NDArray[np.int32]
    units: NDArray[np.float32]
    maxima: NDArray[np.uint8]
    starts: NDArray[np.int64]
    terms: NDArray[np.unsignedinteger]
    values: NDArray[np.float32]
