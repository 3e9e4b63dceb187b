"""Read lines of a TREC run: see `retrievers.runs.trec_runs`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from retrievers.compiled.byte_words import count_low_zeros, load_word
from retrievers.compiled.pieces import number_ranges
from retrievers.pieces import Column, Pieces

_NEW_LINE, _SPACE, _TAB, _RETURN, _PLUS, _MINUS, _POINT, _ZERO, _E = b"\n \t\r+-.0e"
_LOWER_CASE = 32
"""The bit that distinguishes a lower-case letter from its upper-case one."""

_BEYOND_ASCII = 128

_LONGEST_ID = 65_535
"""The most bytes of an id whose length fits in 16 bits."""

_POWERS = 10.0 ** np.arange(23)
"""The powers of ten that are exact in 64 bits."""

_DIGITS = 19
"""The number of digits that fit in a 64-bit integer."""

_EXACT_DIGITS = 15
"""The number of digits that are exact in a 64-bit float; divided by an exact power of ten, it rounds as in Python."""

_ERROR = 2.0**-50
"""A bound on the relative error of a product or quotient of two 64-bit floats, one of which is rounded."""


_ONE = np.uint64(1)
"""The step of a place in the text. Places are unsigned, so that compiled code does not check for negative ones."""


@njit(cache=True, nogil=True)
def read_lines(
    text: Column, first: int, limit: int, begins: Column, lengths: Column, scores: Column, query_ids: Pieces
) -> Any:  # noqa: ANN401 (compiled)
    """Read the lines from `first` to `limit` into columns, and return a `retrievers.runs.trec_runs._Chunk`.

    Most lines begin and end like the line before: these are read a word at a time, all others byte by byte. Columns
    have a fixed size, because growing them within the loop would slow down every line.
    """
    room = len(scores)
    group_begins, group_ends = np.empty(room, np.int64), np.empty(room, np.int64)  # the query of successive lines
    starts = np.empty(room, np.int64)  # the first line of each group
    n, n_groups, bits, at, end = 0, 0, 0, np.uint64(first), np.uint64(limit)
    certain_scores, falling, longest, latest_score = True, True, np.uint64(0), np.float32(np.inf)
    latest, size = at, np.uint64(0)  # the place and the length of the latest query
    head, head_size = at, np.uint64(0)  # the latest line up to the document
    tail, tail_size = at, np.uint64(len(text))  # and from the score to the next line
    gap = _SPACE  # what separates the columns of the latest line
    while at < end:
        if n == room:
            return 0, starts[:0], starts[:0].astype(np.int32), query_ids, True, True, False, True
        if head_size:
            begin, stop, score, certain, score_end, characters = _read_like(text, at, head, head_size, gap)
            rest = _measure_tail(text, score_end, end, tail, tail_size, gap) if score_end else np.uint64(0)
            if rest:
                tail, tail_size = score_end, rest
                at = score_end + rest
                longest = max(longest, stop - begin)
                begins[n], lengths[n] = begin, stop - begin
                scores[n] = score + np.float32(0) if certain else np.float32(np.nan)  # -0 is 0
                certain_scores = certain_scores and certain
                falling = falling and score <= latest_score
                latest_score = score
                bits |= characters
                n += 1
                continue
        line = at
        line_end, text_end, separator, is_blank = _scan_line(text, line, end)
        at = line_end + _ONE
        if is_blank:
            continue
        if separator != gap:
            gap, tail, tail_size = separator, line, np.uint64(len(text))
        query, query_end, _ = _find_field(text, line, text_end, gap)
        _, stop, _ = _find_field(text, query_end + _ONE, text_end, gap)
        begin, stop, characters = _find_field(text, stop + _ONE, text_end, gap)
        document, document_end = begin, stop
        _, stop, _ = _find_field(text, stop + _ONE, text_end, gap)
        begin, stop, _ = _find_field(text, stop + _ONE, text_end, gap)
        if query >= query_end or document >= document_end or begin >= stop or not _is_tail(text, stop, text_end, gap):
            return 0, starts[:0], starts[:0].astype(np.int32), query_ids, False, False, False, False
        if query_end - query != size or not _is_same(text, latest, query, size):
            latest, size = query, query_end - query
            group_begins[n_groups], group_ends[n_groups], starts[n_groups] = query, query_end, n
            latest_score = np.float32(np.inf)
            n_groups += 1
        longest = max(longest, document_end - document)
        begins[n], lengths[n] = document, document_end - document
        bits |= characters
        head, head_size = line, document - line
        score, score_end, certain = _parse_score(text, begin, stop)
        certain = certain and score_end == stop
        scores[n] = score + np.float32(0) if certain else np.float32(np.nan)
        certain_scores = certain_scores and certain
        falling = falling and score <= latest_score
        latest_score = score
        n += 1
    numbers, query_ids = number_ranges(text, group_begins[:n_groups], group_ends[:n_groups], query_ids)
    is_valid = longest <= np.uint64(_LONGEST_ID)
    return n, starts[:n_groups], numbers, query_ids, is_valid, bits < _BEYOND_ASCII, certain_scores and falling, False


_FARTHEST = np.uint64(1 << 20)
"""The most bytes to read in search of the end of a query's lines."""


@njit(cache=True, nogil=True)
def find_next_query(text: Column, limit: int) -> Any:  # noqa: ANN401 (compiled)
    """Return the start of the first line from `limit` on that has another query than the line before, or one nearby."""
    at, end = np.uint64(limit), np.uint64(len(text))
    farthest = min(end, at + _FARTHEST)
    latest, size = at, np.uint64(0)
    while at < end:
        while at > 0 and at < end and text[at - _ONE] != _NEW_LINE:
            at += _ONE
        begin, stop, _ = _find_token(text, at, end)
        if begin < stop:
            if size and (stop - begin != size or not _is_same(text, latest, begin, size)):
                return at
            latest, size = begin, stop - begin
        at = stop + _ONE
        if at >= farthest:
            break
    while at < end and text[at - _ONE] != _NEW_LINE:
        at += _ONE
    return min(at, end)


_ONES = np.uint64(0x0101010101010101)
_HIGH_BITS, _LOW_BITS = np.uint64(0x80) * _ONES, np.uint64(0x7F) * _ONES
_ABOVE_SPACE, _ZEROS, _ABOVE_NINE = np.uint64(0x21) * _ONES, np.uint64(0x30) * _ONES, np.uint64(0x76) * _ONES
_BITS, _WORD, _BYTE = np.uint64(64), np.uint64(8), np.uint64(3)
"""The bits and bytes of a word, and the shift from bits to bytes."""

_MARGIN = np.uint64(64)
"""An upper bound on the bytes that are read beyond the end of an id."""

_UNLIKE = np.uint64(0), np.uint64(0), np.float32(0), False, np.uint64(0), 0


@njit(cache=True, nogil=True, inline="always")
def _read_like(text: Column, at: np.uint64, head: np.uint64, head_size: np.uint64, gap: int) -> Any:  # noqa: ANN401 (compiled)
    """Read a line that is the same as another line up to its document; columns are separated by one `gap`.

    Return the start and end of the document, the score and whether it is certain, the end of the score, and the high
    bits of the document. The end is 0 for a line that has to be read byte by byte. Methods: Lemire, "Number parsing at
    a gigabyte per second" (2021), doi:10.1002/spe.2984.
    """
    size = np.uint64(len(text))
    if at + head_size + _MARGIN > size or not _is_equal(text, at, head, head_size):
        return _UNLIKE
    begin = stop = at + head_size
    bits = np.uint64(0)
    while True:
        if stop + _MARGIN > size:
            return _UNLIKE
        word = load_word(text, stop)
        spaces = (word - _ABOVE_SPACE) & ~word & _HIGH_BITS  # the lowest bit is that of the first space
        if spaces:
            break
        bits |= word
        stop += _WORD
    bits |= word & (spaces ^ (spaces - np.uint64(1)))
    stop += count_low_zeros(spaces) >> _BYTE
    word = load_word(text, stop + _ONE)
    spaces = (word - _ABOVE_SPACE) & ~word & _HIGH_BITS
    rank_end = stop + _ONE + (count_low_zeros(spaces) >> _BYTE)
    if begin == stop or not spaces or text[stop] != gap or text[rank_end] != gap or rank_end == stop + _ONE:
        return _UNLIKE
    place = rank_end + _ONE
    negative = text[place] == _MINUS
    place += np.uint64(negative)
    mantissa, digits = _read_digits(text, place)
    if not 0 < digits < _WORD:
        return _UNLIKE
    place += digits
    decimals = np.uint64(0)
    if text[place] == _POINT:
        part, decimals = _read_digits(text, place + _ONE)
        mantissa = mantissa * _WHOLE_POWERS[decimals] + part
        if decimals == _WORD:
            part, more = _read_digits(text, place + _ONE + _WORD)
            mantissa = mantissa * _WHOLE_POWERS[more] + part
            decimals += more
        place += _ONE + decimals
    if not _is_space(text[place]) or digits + decimals > _DIGITS or decimals == _WORD + _WORD:
        return _UNLIKE
    value = float(mantissa) / _POWERS[decimals]
    rounded = np.float32(value)
    certain = digits + decimals <= _EXACT_DIGITS or (
        np.isfinite(rounded) and np.float32(value * (1 - _ERROR)) == np.float32(value * (1 + _ERROR))
    )
    return begin, stop, -rounded if negative else rounded, certain, place, int(bits & _HIGH_BITS != 0) * _BEYOND_ASCII


_WHOLE_POWERS = np.uint64(10) ** np.arange(9, dtype=np.uint64)


@njit(cache=True, nogil=True, inline="always")
def _read_digits(text: Column, at: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the number that up to eight digits form, and the count of digits."""
    word = load_word(text, at) ^ _ZEROS
    others = (((word & _LOW_BITS) + _ABOVE_NINE) | word) & _HIGH_BITS
    digits = count_low_zeros(others) >> _BYTE if others else _WORD
    if not digits:
        return np.uint64(0), digits
    word <<= _BITS - (digits << _BYTE)  # zeros before the digits
    word = word * np.uint64(10) + (word >> _WORD)
    pairs = np.uint64(0x000000FF000000FF)
    upper = (word & pairs) * np.uint64(0x000F424000000064)
    lower = ((word >> np.uint64(16)) & pairs) * np.uint64(0x0000271000000001)
    return (upper + lower) >> np.uint64(32), digits


@njit(cache=True, nogil=True, inline="always")
def _is_equal(text: Column, one: np.uint64, other: np.uint64, size: np.uint64) -> bool:
    """Return whether the text has the same bytes at two places; both must be followed by seven more bytes."""
    done = np.uint64(0)
    while done + _WORD <= size:
        if load_word(text, one + done) != load_word(text, other + done):
            return False
        done += _WORD
    if done == size:
        return True
    different = load_word(text, one + done) ^ load_word(text, other + done)
    return bool(different << (_BITS - ((size - done) << _BYTE)) == 0)


@njit(cache=True, nogil=True, inline="always")
def _measure_tail(text: Column, at: np.uint64, end: np.uint64, tail: np.uint64, size: np.uint64, gap: int) -> Any:  # noqa: ANN401 (compiled)
    """Return the number of bytes to the next line, trying the size of the latest tail first; 0 for an unusual tail."""
    if at + size + _WORD <= np.uint64(len(text)) and _is_equal(text, at, tail, size):
        return size
    line_end, text_end, separator, _ = _scan_line(text, at, end)
    if (gap == _SPACE and separator == _TAB) or not _is_tail(text, at, text_end, gap):
        return np.uint64(0)
    return line_end + _ONE - at


@njit(cache=True, nogil=True)
def _scan_line(text: Column, at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64, int, bool]:
    """Return where a line ends, where its text ends, what separates its columns, and whether it is blank."""
    stop, separator, is_blank = at, _SPACE, True
    while stop < end and text[stop] != _NEW_LINE:
        if text[stop] == _TAB:
            separator = _TAB
        is_blank = is_blank and _is_space(text[stop])
        stop += _ONE
    text_end = stop
    while text_end > at and text[text_end - _ONE] == _RETURN:
        text_end -= _ONE
    return stop, text_end, separator, is_blank


@njit(cache=True, nogil=True)
def _find_field(text: Column, at: np.uint64, end: np.uint64, gap: int) -> Any:  # noqa: ANN401 (compiled)
    """Return the start and end of the next column of a line that ends at `end`, and the bitwise or of its bytes.

    Both are equal, or the start lies behind the end, if the column is empty or missing, or contains a carriage return.
    """
    if gap == _SPACE:
        return _find_token(text, at, end)
    begin, bits = at, 0
    while at < end and text[at] != _TAB:
        if text[at] == _RETURN:
            return end, end, 0
        bits |= text[at]
        at += _ONE
    return begin, at, bits


@njit(cache=True, nogil=True)
def _is_tail(text: Column, at: np.uint64, end: np.uint64, gap: int) -> bool:
    """Return whether a score may end at this place of a line, with at most one more column behind it."""
    if at >= end:
        return True
    if gap == _SPACE:
        if not _is_space(text[at]):
            return False
        _, stop, _ = _find_token(text, at, end)
        begin, stop, _ = _find_token(text, stop, end)
        return bool(begin >= stop)
    if text[at] != _TAB:
        return False
    while at + _ONE < end:
        at += _ONE
        if text[at] in (_TAB, _RETURN):
            return False
    return True


@njit(cache=True, nogil=True)
def _find_token(text: Column, at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64, int]:
    """Return the start and end of the next token of the line, and the bitwise or of its bytes.

    If the line has no more tokens, both are the end of the line.
    """
    begin = at = _skip_space(text, at, end)
    bits = 0
    while at < end and not _is_space(text[at]):
        bits |= text[at]
        at += _ONE
    return begin, at, bits


@njit(cache=True, nogil=True)
def _skip_space(text: Column, at: np.uint64, end: np.uint64) -> np.uint64:
    """Return the start of the next token of the line, or the end of the line."""
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
    """Return a decimal number rounded to 64 bits and then to 32, its end, and whether it is certain."""
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
