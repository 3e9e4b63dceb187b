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
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.id_table import IdTable
from retrievers.pieces import Column, Pieces, create_pieces, merge_pieces
from retrievers.run_columns import Columns, IdRanges, collect_rows
from retrievers.threads import count_threads, map_threads

SMALL_BYTES = 1 << 20
"""Size up to which loading compiled code takes longer than reading line by line."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = ord("\n")


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
    begins: NDArray[np.integer[Any]]
    lengths: NDArray[np.int32]
    scores: NDArray[np.float32]
    query_ids: Pieces
    valid: bool
    ascii: bool


def _read_chunks(content: memoryview) -> Columns | None:
    """Return the hits of a run, None if a line has a mistake."""
    text = np.frombuffer(content, np.uint8)
    place = np.empty(0, np.uint32 if len(text) < 1 << 32 else np.int64)  # searchers stay in memory
    begin = len(_BYTE_ORDER_MARK) if bytes(content[: len(_BYTE_ORDER_MARK)]) == _BYTE_ORDER_MARK else 0
    chunks = list(map_threads(partial(_read_chunk, text, place), _split_lines(text, begin)))
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
        begins = np.concatenate([chunk.begins for chunk in chunks])
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


def _read_chunk(text: Column, place: Column, limits: tuple[int, int]) -> _Chunk:
    from retrievers.compiled.trec_runs import read_lines

    queries, begins, lengths, scores, query_ids, valid, is_ascii = read_lines(text, place, *limits, create_pieces())
    return _Chunk(queries, begins, lengths, scores, Pieces(*query_ids), valid, is_ascii)


def _split_lines(text: Column, begin: int) -> Iterator[tuple[int, int]]:
    """Yield where about equal parts of the text, of whole lines, begin and end."""
    for limit in np.linspace(begin, len(text), count_threads() + 1).astype(np.int64)[1:].tolist():
        end = limit
        while end < len(text) and text[end - 1] != _LINE_END:
            end += 1
        if begin < end:
            yield begin, end
            begin = end
