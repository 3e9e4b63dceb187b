"""Read TREC runs: lines of query, iteration, document, rank, score and tag.

Columns are separated by tabs if a line has any, and otherwise by ASCII white space; other white space belongs to an id.

Large files are read in blocks of lines, by operations on all bytes of a block. Small files are read line by line, as
are files with a mistake, so that the error can name the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.compiled.layouts import Column
from retrievers.id_table import IdTable
from retrievers.pieces import list_texts, number_parts
from retrievers.runs.run_columns import Columns, IdRanges, OrderedColumns, collect_rows
from retrievers.runs.trec_tokens import MARK
from retrievers.strict_values import BYTE_ORDER_MARK, parse_number, split_columns
from retrievers.threads import map_threads

SMALL_BYTES = 1 << 20
"""The size up to which a file is read line by line, which needs no compiled code."""

_BLOCK_BYTES = 1 << 21
"""How much is read at a time; a block takes some twenty times as much memory."""

_LINE_END, _TAB, _RETURN = b"\n\t\r"

_BEYOND_ASCII = 128

_LONGEST_ID = 65_535
"""The most bytes of an id whose length fits in 16 bits."""

_LONGEST_SCORE = 64
"""The most bytes of a score: a block takes as many for each of its scores."""

_SAMPLE_BYTES = 1 << 14
"""How much of a text is read to find a first line."""


def read_trec(content: memoryview, path: Path, small: int = SMALL_BYTES) -> Columns | OrderedColumns:
    """Read the hits of a TREC run; raises `RetrieverError`, which names the line.

    The scores of files of more than `small` bytes are rounded to 32 bits.
    """
    if b"\n" not in bytes(content[:_SAMPLE_BYTES]) and b"\n" not in bytes(content):
        content = memoryview(bytes(content).replace(b"\r", b"\n"))  # the line ends of old Macs
    columns = _read_blocks(content) if len(content) > small else None
    return columns or collect_rows(_iter_lines(content, path))


def has_encoded_ids(content: memoryview) -> bool:
    """Return whether the tag of the first line says that the ids are encoded (`retrievers.runs.trec_tokens`)."""
    lines = bytes(content[:_SAMPLE_BYTES]).removeprefix(BYTE_ORDER_MARK).splitlines()
    words = split_columns(next((line for line in lines if line.strip()), b""))
    return len(words) == 6 and words[5].startswith(MARK.encode())


def _iter_lines(content: memoryview, path: Path) -> Iterator[tuple[str, str, float]]:
    for number, line in enumerate(bytes(content).removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1):
        if not line.strip():
            continue
        words = split_columns(line.rstrip(b"\r"))
        if len(words) not in (5, 6):
            remedy = "; separate them by tabs if an id or the tag contains white space" if len(words) > 6 else ""
            raise RetrieverError(
                f"{path}:{number}: expected 6 columns (query, Q0, document, rank, score, tag), found {len(words)}"
                f"{remedy}"
            )
        if b"\r" in line.rstrip(b"\r") and b"\t" in line:
            raise RetrieverError(f"{path}:{number}: a carriage return within the line; end every line with LF or CRLF")
        try:
            query, document, score = (words[place].decode() for place in (0, 2, 4))
        except UnicodeDecodeError:
            raise RetrieverError(f"{path}:{number}: not UTF-8 text; save it as UTF-8") from None
        if not query or not document:
            raise RetrieverError(f"{path}:{number}: the id of the {'document' if query else 'query'} is empty")
        try:
            yield query, document, parse_number(score)
        except ValueError:
            raise RetrieverError(f"{path}:{number}: the score {score!r} is not a finite number") from None


class _Block(NamedTuple):
    """The hits of some lines, in columns: the places of query and document in the text, their lengths, and the scores.

    `ascii` is whether all of it is ASCII.
    """

    queries: NDArray[np.int64]
    query_ends: NDArray[np.int64]
    documents: NDArray[np.integer[Any]]
    lengths: NDArray[np.uint16]
    scores: NDArray[np.float32]
    ascii: bool


def _read_blocks(content: memoryview) -> Columns | OrderedColumns | None:
    """Return the hits of a run; None if `_iter_lines` has to read it, as for lines with a mistake."""
    text = np.frombuffer(content, np.uint8)
    begin = len(BYTE_ORDER_MARK) if bytes(content[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK else 0
    try:
        blocks = map_threads(lambda limits: _read_block(text, *limits), list(_list_blocks(content, begin)))
        return _merge_blocks(text, list(blocks))
    except ValueError:
        return None


def _list_blocks(content: memoryview, begin: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of parts of the text that have whole lines."""
    while begin < len(content):
        end = min(_find_line_end(content, begin + _BLOCK_BYTES) + 1, len(content))
        yield begin, end
        begin = end


def _find_line_end(content: memoryview, begin: int) -> int:
    size = 1 << 8
    while (end := bytes(content[begin : begin + size]).find(_LINE_END)) < 0 and begin + size < len(content):
        size *= 2
    return len(content) if end < 0 else begin + end


def _read_block(text: Column, begin: int, end: int) -> _Block:
    """Find the columns of lines; raises `ValueError` for a mistake, an empty column, or tabs in only some lines.

    A column begins where a separator is followed by another character, and ends where it is the other way round.
    """
    block = text[begin:end]
    tabs = np.count_nonzero(block == _TAB)
    is_separator = np.ones(len(block) + 2, np.bool_)
    is_separator[1:-1] = (_BETWEEN_TABS if tabs else _BLANK)[block]
    edges = np.flatnonzero(is_separator[1:] != is_separator[:-1])
    begins, ends = edges[::2], edges[1::2]
    line_ends = np.flatnonzero(block == _LINE_END)
    first = np.searchsorted(begins, np.append(0, line_ends))  # the first column of each line
    columns = np.diff(first, append=len(begins))
    first = first[columns > 0]
    if not {*columns.tolist()} <= {0, 5, 6} or (tabs and tabs != len(begins) - len(first)):
        raise ValueError("not 5 or 6 columns, or an empty one")
    if tabs and np.count_nonzero(block == _RETURN) != np.count_nonzero(block[line_ends - 1] == _RETURN):
        raise ValueError("a carriage return within a line")
    (query, query_end), (document, document_end), score = ((begins[first + n], ends[first + n]) for n in (0, 2, 4))
    lengths = document_end - document
    if np.max(lengths, initial=0) > _LONGEST_ID:
        raise ValueError("an id is too long")
    return _Block(
        queries=query + begin,
        query_ends=query_end + begin,
        documents=(document + begin).astype(np.uint32 if len(text) < 1 << 32 else np.int64),  # searchers stay in memory
        lengths=lengths.astype(np.uint16),
        scores=_parse_scores(block, *score),
        ascii=bool(block.max() < _BEYOND_ASCII),
    )


def _parse_scores(block: Column, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return scores in 32 bits; raises `ValueError` for one that is not a number in ASCII digits, or does not fit."""
    width = int(np.max(ends - begins, initial=1))
    if width > _LONGEST_SCORE:
        raise ValueError("a score is too long")
    is_own = np.arange(width) < (ends - begins)[:, None]
    words = block[np.minimum(begins[:, None] + np.arange(width), len(block) - 1)]
    if not _NUMERIC[words[is_own]].all():
        raise ValueError("a score is not a number")
    words[~is_own] = 0
    with np.errstate(over="ignore"):
        scores: NDArray[np.float32] = words.view(f"S{width}")[:, 0].astype(np.float64).astype(np.float32)
    if not np.isfinite(scores).all():
        raise ValueError("a score does not fit in 32 bits")
    scores += np.float32(0)  # -0 is 0
    return scores


def _merge_blocks(text: Column, blocks: Sequence[_Block]) -> Columns | OrderedColumns:
    """Return the hits of all blocks; raises `ValueError` for an id that is not UTF-8."""
    queries, query_ends, begins, lengths, scores, is_ascii = zip(*blocks, strict=True)
    numbers, pieces = number_parts(text, np.concatenate(queries), np.concatenate(query_ends))
    names, all_scores = list_texts(pieces, errors="strict"), np.concatenate(scores)
    documents = IdRanges(text, np.concatenate(begins), np.concatenate(lengths))
    if not all(is_ascii):
        _, ids = documents.number(np.arange(len(numbers)))
        IdTable.of(ids).to_arrow()
    is_first = np.diff(numbers, prepend=-1) != 0
    starts = np.flatnonzero(is_first)
    rises = np.diff(all_scores, prepend=np.float32(np.inf)) > 0
    if len(starts) == len(names) and not (rises & ~is_first).any():
        return OrderedColumns(names, starts, np.append(starts[1:], len(numbers)), all_scores, documents)
    return Columns(numbers, all_scores, names, documents)


def _mark_bytes(some: bytes) -> NDArray[np.bool_]:
    """Return for each byte whether it is one of some."""
    return np.isin(np.arange(256), list(some))


_BLANK, _BETWEEN_TABS, _NUMERIC = map(_mark_bytes, (b" \t\n\v\f\r", b"\t\n\r", b"0123456789+-.eE"))
