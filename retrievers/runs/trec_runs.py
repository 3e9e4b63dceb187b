"""Read TREC runs: lines of query, iteration, document, rank, score and tag.

Columns are separated by tabs if a line has any, and otherwise by ASCII white space; other white space belongs to an id.

Large files are read by compiled code, in chunks of lines in parallel. Small files are read line by line, as are files
with a mistake, so that the error can name the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.id_table import IdTable
from retrievers.pieces import Column, Pieces, create_pieces, merge_pieces
from retrievers.runs.run_columns import Columns, IdRanges, OrderedColumns, collect_rows
from retrievers.runs.trec_tokens import MARK
from retrievers.strict_values import BYTE_ORDER_MARK, parse_number, split_columns
from retrievers.threads import count_threads, map_threads

SMALL_BYTES = 1 << 20
"""The size up to which loading compiled code takes longer than reading line by line."""

_LINE_END = ord("\n")

_SHORTEST_LINE = 10
"""The fewest bytes of a line of five columns."""

_SAMPLE_BYTES = 1 << 14
"""How much of a text is read to estimate its number of lines."""


def read_trec(content: memoryview, path: Path, small: int = SMALL_BYTES) -> Columns | OrderedColumns:
    """Read the hits of a TREC run; raises `RetrieverError`, which names the line.

    The scores of files of more than `small` bytes are rounded to 32 bits.
    """
    if b"\n" not in bytes(content[:_SAMPLE_BYTES]) and b"\n" not in bytes(content):
        content = memoryview(bytes(content).replace(b"\r", b"\n"))  # the line ends of old Macs
    columns = _read_chunks(content) if len(content) > small else None
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


class _Chunk(NamedTuple):
    """The number of lines read, the first line and the query of each group of successive lines, and all query ids.

    `valid` is whether all lines have enough columns, `ascii` whether all ids of documents are ASCII, and `falling`
    whether no score rises within a group; it is false if only Python can read some score, which is then NaN. `full` is
    whether the room was too small for all lines.
    """

    n: int
    starts: NDArray[np.int64]
    queries: NDArray[np.int32]
    query_ids: Pieces
    valid: bool
    ascii: bool
    falling: bool
    full: bool


def _read_chunks(content: memoryview) -> Columns | OrderedColumns | None:
    """Return the hits of a run, None if a line has a mistake."""
    text = np.frombuffer(content, np.uint8)
    begin = len(BYTE_ORDER_MARK) if bytes(content[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK else 0
    limits = list(_split_lines(text, begin))
    chunks, offsets, documents, scores = _read_lines(text, limits, _estimate_line(content, begin))
    if any(chunk.full for chunk in chunks):
        chunks, offsets, documents, scores = _read_lines(text, limits, _SHORTEST_LINE)
    if not chunks or not all(chunk.valid for chunk in chunks):
        return None
    try:
        return _merge_chunks(content, chunks, offsets, documents, scores)
    except ValueError:  # a score is not a number, or an id is not UTF-8
        return None


def _read_lines(
    text: Column, limits: Sequence[tuple[int, int]], shortest: int
) -> tuple[list[_Chunk], list[int], IdRanges, NDArray[np.float32]]:
    """Read each part of a text, of lines of so many bytes on average, into its own rows; return where these begin."""
    from retrievers.compiled.trec_runs import read_lines

    offsets = list(accumulate(((end - begin) // shortest + 1 for begin, end in limits), initial=0))
    place = np.uint32 if len(text) < 1 << 32 else np.int64  # searchers stay in memory
    begins: NDArray[np.integer[Any]] = np.empty(offsets[-1], place)
    lengths, scores = np.empty(offsets[-1], np.uint16), np.empty(offsets[-1], np.float32)

    def read(part: int) -> _Chunk:
        rows = slice(offsets[part], offsets[part + 1])
        return _Chunk(*read_lines(text, *limits[part], begins[rows], lengths[rows], scores[rows], create_pieces()))

    return list(map_threads(read, range(len(limits)))), offsets, IdRanges(text, begins, lengths), scores


def _merge_chunks(
    content: memoryview,
    chunks: Sequence[_Chunk],
    offsets: Sequence[int],
    documents: IdRanges,
    scores: NDArray[np.float32],
) -> Columns | OrderedColumns:
    """Return the hits of all chunks, which begin at the offsets; raises `ValueError` if only Python can read one."""
    query_ids = chunks[0].query_ids
    queries = [chunks[0].queries]
    for chunk in chunks[1:]:
        places, query_ids = merge_pieces(query_ids, Pieces(*chunk.query_ids))
        queries.append(places[chunk.queries])
    numbers, names = np.concatenate(queries), Pieces(*query_ids).texts(errors="strict")
    bounds = [np.append(chunk.starts, chunk.n) + offset for chunk, offset in zip(chunks, offsets, strict=False)]
    starts, ends = np.concatenate([b[:-1] for b in bounds]), np.concatenate([b[1:] for b in bounds])
    ordered = OrderedColumns(names, starts, ends, scores, documents)
    is_ascii, is_ordered = all(c.ascii for c in chunks), all(c.falling for c in chunks) and len(numbers) == len(names)
    if is_ascii and is_ordered:
        return ordered
    rows = ordered.list_rows()
    if not is_ascii:
        _, ids = documents.number(rows)
        IdTable.of(ids).to_arrow()
    if is_ordered:
        return ordered
    for row in rows[np.isnan(scores[rows])].tolist():
        begin = int(documents.begins[row])
        line = bytes(content[begin : _find_line_end(content, begin)])
        scores[row] = _round(parse_number(split_columns(line)[2].decode()))
    return Columns(np.repeat(numbers, ends - starts), scores[rows], names, documents.reorder(rows))


def _find_line_end(content: memoryview, begin: int) -> int:
    size = 1 << 8
    while (end := bytes(content[begin : begin + size]).find(_LINE_END)) < 0 and begin + size < len(content):
        size *= 2
    return len(content) if end < 0 else begin + end


def _round(score: float) -> np.float32:
    """Return a score in 32 bits; raises `ValueError` if it does not fit."""
    with np.errstate(over="ignore"):
        rounded = np.float32(score)
    if not np.isfinite(rounded):
        raise ValueError("does not fit in 32 bits")
    return rounded


def _estimate_line(content: memoryview, begin: int) -> int:
    """Estimate the average bytes of a line from the first lines, rather too few than too many."""
    sample = bytes(content[begin : begin + _SAMPLE_BYTES])
    return max(len(sample) * 9 // (10 * (sample.count(b"\n") + 1)), _SHORTEST_LINE)


def _split_lines(text: Column, begin: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of about equal parts of the text, which have whole lines and, if possible, queries."""
    from retrievers.compiled.trec_runs import find_next_query

    for limit in np.linspace(begin, len(text), count_threads() + 1).astype(np.int64)[1:].tolist():
        end = int(find_next_query(text, max(begin, limit)))
        if begin < end:
            yield begin, end
            begin = end
