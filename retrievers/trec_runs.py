"""Read TREC runs: lines of query, iteration, document, rank, score and tag, between white space.

Large files are read by compiled code, in chunks of lines in parallel; small ones, and those with a mistake, which has
to be named, line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.pieces import Column, Pieces, create_pieces, merge_pieces, number_ranges
from retrievers.run_columns import Columns, IdRanges, collect_rows
from retrievers.threads import count_threads, map_threads

SMALL_BYTES = 1 << 20
"""Size up to which loading compiled code takes longer than reading line by line."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_trec(content: memoryview, path: Path, small: int = SMALL_BYTES) -> Columns:
    """Read the hits of a TREC run; raises `RetrieverError`, which names the line.

    The scores of files of more than `small` bytes are rounded to 32 bits.
    """
    columns = _read_chunks(content) if len(content) > small else None
    return columns or collect_rows(_iter_lines(content, path))


def _iter_lines(content: memoryview, path: Path) -> Iterator[tuple[str, str, float]]:
    for number, line in enumerate(bytes(content).removeprefix(_BYTE_ORDER_MARK).split(b"\n"), start=1):
        words = line.split(maxsplit=5)
        if not words:
            continue
        if len(words) < 5:
            raise RetrieverError(
                f"{path}:{number}: expected 6 columns (query, Q0, document, rank, score, tag), found {len(words)}"
            )
        try:
            query, document, score = (words[place].decode() for place in (0, 2, 4))
        except UnicodeDecodeError:
            raise RetrieverError(f"{path}:{number}: not UTF-8 text; save it as UTF-8") from None
        try:
            yield query, document, float(score)
        except ValueError:
            raise RetrieverError(f"{path}:{number}: the score {score!r} is not a number") from None


class _Chunk(NamedTuple):
    """Some lines of a run: the numbers of queries, where ids of documents begin, their lengths, and scores.

    `hard` are the indexes of scores that only Python reads, as 32 bits, and where these begin and end in the text.
    `valid` is whether all lines have enough columns, `ascii` whether all ids of documents are ASCII.
    """

    queries: NDArray[np.int32]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int32]
    scores: NDArray[np.float32]
    hard: NDArray[np.int64]
    query_ids: Pieces
    valid: bool
    ascii: bool


def _read_chunks(content: memoryview) -> Columns | None:
    """Return the hits of a run, None if a line has a mistake."""
    text = np.frombuffer(content, np.uint8)
    begin = len(_BYTE_ORDER_MARK) if bytes(content[: len(_BYTE_ORDER_MARK)]) == _BYTE_ORDER_MARK else 0
    chunks = list(map_threads(partial(_read_chunk, text), _split_lines(text, begin)))
    if not chunks or not all(chunk.valid for chunk in chunks):
        return None
    try:
        for chunk in chunks:
            for i, first, last in chunk.hard.tolist():
                chunk.scores[i] = _round(float(bytes(content[first:last]).decode()))
        query_ids = chunks[0].query_ids
        for chunk in chunks[1:]:
            places, query_ids = merge_pieces(query_ids, chunk.query_ids)
            chunk.queries[:] = places[chunk.queries]
        names = query_ids.texts(errors="strict")
        queries, begins, lengths, scores = (np.concatenate(parts) for parts in list(zip(*chunks, strict=True))[:4])
        documents = IdRanges(text, begins, lengths)
        if not all(chunk.ascii for chunk in chunks):
            documents.number(np.arange(len(begins)))
    except ValueError:  # a score is not a number, or an id not UTF-8
        return None
    return Columns(queries, scores, names, documents)


def _round(score: float) -> np.float32:
    """Return a score in 32 bits; raises `ValueError` if it does not fit."""
    with np.errstate(over="ignore"):
        rounded = np.float32(score)
    if not np.isfinite(rounded):
        raise ValueError("does not fit in 32 bits")
    return rounded


def _read_chunk(text: Column, limits: tuple[int, int]) -> _Chunk:
    queries, begins, lengths, scores, hard, query_ids, valid, is_ascii = _read_lines(text, *limits, create_pieces())
    return _Chunk(queries, begins, lengths, scores, hard, Pieces(*query_ids), valid, is_ascii)


def _split_lines(text: Column, begin: int) -> Iterator[tuple[int, int]]:
    """Yield where about equal parts of the text, of whole lines, begin and end."""
    for limit in np.linspace(begin, len(text), count_threads() + 1).astype(np.int64)[1:].tolist():
        end = limit
        while end < len(text) and text[end - 1] != _NEW_LINE:
            end += 1
        if begin < end:
            yield begin, end
            begin = end


_NEW_LINE, _SPACE, _TAB, _RETURN, _PLUS, _MINUS, _POINT, _ZERO, _E = b"\n \t\r+-.0e"
_LOWER_CASE = 32
"""The bit that distinguishes a lower-case letter from its upper-case one."""

_BEYOND_ASCII = 128

_SHORTEST_LINE = 10
"""The fewest bytes of a line of five columns."""

_POWERS = 10.0 ** np.arange(23)
"""The powers of ten that are exact in 64 bits."""

_DIGITS = 19
"""As many digits fit in an integer of 64 bits."""

_ERROR = 2.0**-50
"""A bound of the relative error of a product or quotient of two numbers of 64 bits, one of them rounded."""


@njit(cache=True, nogil=True)
def _read_lines(text: Column, at: int, end: int, query_ids: Pieces) -> Any:  # noqa: ANN401 (compiled)
    """Return the fields of a `_Chunk`, for the lines from `at` to `end`."""
    room = (end - at) // _SHORTEST_LINE + 1
    queries, begins, lengths = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int32)
    scores, hard = np.empty(room, np.float32), np.empty((64, 3), np.int64)
    n, n_hard, query, query_begin, query_end, bits = 0, 0, -1, 0, 0, 0
    while at < end:
        begin, stop = _find_token(text, at, end)
        if begin == stop:  # a blank line
            at = stop + 1
            continue
        if query < 0 or not _is_same(text, query_begin, query_end, begin, stop):
            numbers, query_ids = number_ranges(text, np.array([begin]), np.array([stop]), query_ids)
            query, query_begin, query_end = numbers[0], begin, stop
        begin, stop = _find_token(text, stop, end)
        begin, stop = _find_token(text, stop, end)
        for i in range(begin, stop):
            bits |= text[i]
        queries[n], begins[n], lengths[n] = query, begin, stop - begin
        begin, stop = _find_token(text, stop, end)
        begin, stop = _find_token(text, stop, end)
        if begin == stop:
            return queries[:0], begins[:0], lengths[:0], scores[:0], hard[:0], query_ids, False, False
        scores[n], certain = _parse_score(text, begin, stop)
        if not certain:
            if n_hard == len(hard):
                hard = np.concatenate((hard, np.empty_like(hard)))
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = n, begin, stop
            n_hard += 1
        n += 1
        at = stop
        while at < end and text[at] != _NEW_LINE:
            at += 1
        at += 1
    return queries[:n], begins[:n], lengths[:n], scores[:n], hard[:n_hard], query_ids, True, bits < _BEYOND_ASCII


@njit(cache=True, nogil=True)
def _find_token(text: Column, at: int, end: int) -> tuple[int, int]:
    """Return where the next token of the line begins and ends, twice where the line ends if it has no more."""
    while at < end and (text[at] == _SPACE or (_TAB <= text[at] <= _RETURN and text[at] != _NEW_LINE)):
        at += 1
    begin = at
    while at < end and text[at] != _SPACE and not _TAB <= text[at] <= _RETURN:
        at += 1
    return begin, at


@njit(cache=True, nogil=True)
def _is_same(text: Column, begin: int, end: int, other: int, other_end: int) -> bool:
    if end - begin != other_end - other:
        return False
    for i in range(end - begin):  # noqa: SIM110 (compiled code has no generators)
        if text[begin + i] != text[other + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _parse_score(text: Column, at: int, end: int) -> tuple[np.float32, bool]:
    """Return a decimal number rounded to 64 bits and then to 32, and whether it is certain."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa, exponent, digits, there = np.uint64(0), 0, 0, False
    for part in range(2):
        while at < end and 0 <= text[at] - _ZERO <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - _ZERO)
            digits += int(mantissa > 0)
            exponent -= part
            at, there = at + 1, True
        if part == 1 or at == end or text[at] != _POINT:
            break
        at += 1
    if not there or digits > _DIGITS:
        return np.float32(0), False
    if at < end and text[at] | _LOWER_CASE == _E:
        at += 1
        falls = at < end and text[at] == _MINUS
        at += falls or (at < end and text[at] == _PLUS)
        power, begin = 0, at
        while at < min(end, begin + 4) and 0 <= text[at] - _ZERO <= 9:
            power, at = 10 * power + text[at] - _ZERO, at + 1
        if at == begin:
            return np.float32(0), False
        exponent += -power if falls else power
    if at < end or not -len(_POWERS) < exponent < len(_POWERS):
        return np.float32(0), False
    value = float(mantissa) * _POWERS[exponent] if exponent > 0 else float(mantissa) / _POWERS[-exponent]
    rounded = np.float32(value)
    certain = np.isfinite(rounded) and np.float32(value * (1 - _ERROR)) == np.float32(value * (1 + _ERROR))
    return -rounded if negative else rounded, certain
