"""Read eight bytes of a text at a time in compiled code: a word is a 64-bit integer with the first byte lowest."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WORD = 8
"""The bytes of a word."""


@intrinsic
def load_word(context: Any, text: Any, at: Any) -> Any:  # noqa: ANN401 (compiled)
    """Return the word that begins at a place of a text (uint8) as uint64; the text must have eight bytes from there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401 (compiled)
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), cgutils.ir.IntType(64).as_pointer())
        word = builder.load(place)
        word.align = 1
        return builder.bswap(word) if sys.byteorder == "big" else word

    return types.uint64(text, at), generate


@njit(cache=True, nogil=True, inline="always")
def load_bytes(text: Any, at: int, size: int) -> Any:  # noqa: ANN401 (compiled)
    """Return up to eight bytes of a text as a word; the remaining bytes are 0."""
    if at + 8 <= len(text):
        word = load_word(text, at)
        return word if size >= 8 else word & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    word = np.uint64(0)
    for i in range(min(size, 8)):
        word |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return word
