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
from retrievers.compiled.pieces import number_ranges
from retrievers.id_table import IdTable
from retrievers.pieces import Column, Pieces, create_pieces, merge_pieces
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

    A score is NaN where only Python can read it. `valid` is whether all lines have enough columns, `ascii` whether all
    ids of documents are ASCII.
    """

    queries: NDArray[np.int32]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int32]
    scores: NDArray[np.float32]
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
            for i in np.flatnonzero(np.isnan(chunk.scores)).tolist():
                begin, *end = chunk.begins[i : i + 2].tolist()
                _, _, score, *_ = bytes(content[begin : end[0] if end else None]).split(maxsplit=3)
                chunk.scores[i] = _round(float(score.decode()))
        query_ids = chunks[0].query_ids
        for chunk in chunks[1:]:
            places, query_ids = merge_pieces(query_ids, chunk.query_ids)
            chunk.queries[:] = places[chunk.queries]
        names = query_ids.texts(errors="strict")
        place: np.dtype[np.integer[Any]] = np.dtype(np.int64)
        if len(text) < 1 << 32:
            place = np.dtype(np.uint32)  # searchers stay in memory
        begins = np.concatenate([chunk.begins for chunk in chunks], dtype=place, casting="unsafe")
        documents = IdRanges(text, begins, np.concatenate([chunk.lengths for chunk in chunks]))
        if not all(chunk.ascii for chunk in chunks):
            _, ids = documents.number(np.arange(len(begins)))
            IdTable.of(ids).to_arrow()
        queries = np.concatenate([chunk.queries for chunk in chunks])
        scores = np.concatenate([chunk.scores for chunk in chunks])
    except ValueError:  # a score is not a number, or an id is not UTF-8
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
    queries, begins, lengths, scores, query_ids, valid, is_ascii = _read_lines(text, *limits, create_pieces())
    return _Chunk(queries, begins, lengths, scores, Pieces(*query_ids), valid, is_ascii)


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


_ONE = np.uint64(1)
"""The step of a place in the text. Places are unsigned: compiled code then need not look for negative ones."""


@njit(cache=True, nogil=True)
def _read_lines(text: Column, first: int, limit: int, query_ids: Pieces) -> Any:  # noqa: ANN401 (compiled)
    """Return the fields of a `_Chunk`, for the lines from `first` to `limit`.

    No array grows within the loop, which would slow down every line.
    """
    room = (limit - first) // _SHORTEST_LINE + 1
    queries, begins, lengths = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int32)
    scores = np.empty(room, np.float32)
    group_begins, group_ends = np.empty(room, np.int64), np.empty(room, np.int64)  # the query of successive lines
    n, n_groups, bits, at, end = 0, 0, 0, np.uint64(first), np.uint64(limit)
    latest, size = at, np.uint64(0)  # the place and the length of the latest query
    while at < end:
        stop = at + size
        if not size or stop >= end or not _is_space(text[stop]) or not _is_same(text, latest, at, size):
            latest, stop, _ = _find_token(text, at, end)
            size = stop - latest
            if not size:  # a blank line
                at = stop + _ONE
                continue
            group_begins[n_groups], group_ends[n_groups] = latest, stop
            n_groups += 1
        _, stop, _ = _find_token(text, stop, end)
        begin, stop, characters = _find_token(text, stop, end)
        queries[n], begins[n], lengths[n] = n_groups - 1, begin, stop - begin
        bits |= characters
        _, stop, _ = _find_token(text, stop, end)
        begin = _skip_space(text, stop, end)
        if begin == end or text[begin] == _NEW_LINE:
            return queries[:0], begins[:0], lengths[:0], scores[:0], query_ids, False, False
        score, at, certain = _parse_score(text, begin, end)
        scores[n] = score if certain else np.float32(np.nan)
        n += 1
        while at < end and text[at] != _NEW_LINE:
            at += _ONE
        at += _ONE
    numbers, query_ids = number_ranges(text, group_begins[:n_groups], group_ends[:n_groups], query_ids)
    for i in range(n):
        queries[i] = numbers[queries[i]]
    return queries[:n], begins[:n], lengths[:n], scores[:n], query_ids, True, bits < _BEYOND_ASCII


@njit(cache=True, nogil=True)
def _find_token(text: Column, at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64, int]:
    """Return where the next token of the line begins and ends, and all bits that are set in one of its bytes.

    If the line has no more tokens, both places are where it ends.
    """
    begin = at = _skip_space(text, at, end)
    bits = 0
    while at < end and not _is_space(text[at]):
        bits |= text[at]
        at += _ONE
    return begin, at, bits


@njit(cache=True, nogil=True)
def _skip_space(text: Column, at: np.uint64, end: np.uint64) -> np.uint64:
    """Return where the next token of the line begins, or the line ends."""
    while at < end and _is_space(text[at]) and text[at] != _NEW_LINE:
        at += _ONE
    return at


@njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte <= _SPACE and (byte == _SPACE or _TAB <= byte <= _RETURN)


@njit(cache=True, nogil=True)
def _is_same(text: Column, begin: np.uint64, other: np.uint64, size: np.uint64) -> bool:
    for i in range(size):  # noqa: SIM110 (compiled code has no generators)
        if text[begin + i] != text[other + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _parse_score(text: Column, at: np.uint64, end: np.uint64) -> tuple[np.float32, np.uint64, bool]:
    """Return a decimal number rounded to 64 bits and then to 32, where it ends, and whether it is certain."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += _ONE
    mantissa, exponent, digits, there = np.uint64(0), 0, 0, False
    for part in range(2):
        while at < end and 0 <= text[at] - _ZERO <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - _ZERO)
            digits += int(mantissa > 0)
            exponent -= part
            at, there = at + _ONE, True
        if part == 1 or at == end or text[at] != _POINT:
            break
        at += _ONE
    if not there or digits > _DIGITS:
        return np.float32(0), at, False
    if at < end and text[at] | _LOWER_CASE == _E:
        at += _ONE
        falls = at < end and text[at] == _MINUS
        at += np.uint64(falls or (at < end and text[at] == _PLUS))
        power, read = 0, 0
        while read < 4 and at < end and 0 <= text[at] - _ZERO <= 9:
            power, read, at = 10 * power + text[at] - _ZERO, read + 1, at + _ONE
        if not read:
            return np.float32(0), at, False
        exponent += -power if falls else power
    if (at < end and not _is_space(text[at])) or not -len(_POWERS) < exponent < len(_POWERS):
        return np.float32(0), at, False
    value = float(mantissa) * _POWERS[exponent] if exponent > 0 else float(mantissa) / _POWERS[-exponent]
    rounded = np.float32(value)
    certain = np.isfinite(rounded) and np.float32(value * (1 - _ERROR)) == np.float32(value * (1 + _ERROR))
    return -rounded if negative else rounded, at, certain
