"""Read rankings that other programs wrote: TREC runs, tables and JSON, plain or compressed.

A file becomes three columns: queries, documents and scores. Ranking is left to the caller.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.runs.json_runs import read_json_run
from retrievers.runs.run_columns import (
    DOCUMENT,
    LISTS,
    QUERY,
    RANK,
    SCORE,
    SCORES,
    Columns,
    IdRanges,
    NumberedIds,
    OrderedColumns,
    find_name,
    score_ranks,
)
from retrievers.runs.trec_runs import has_encoded_ids, read_trec

TableFormat = Literal["jsonl", "csv", "tsv", "parquet"]
RunFormat = Literal["trec", "json", TableFormat]

TABLES: Mapping[str, TableFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: Mapping[str, RunFormat] = {
    ".trec": "trec",
    ".run": "trec",
    ".txt": "trec",
    ".res": "trec",
    ".json": "json",
    **TABLES,
}
"""The format of a file, or of a table, by its extension, without that of its compression."""

COMPRESSIONS = (".gz", ".lz4", ".zst", ".bz2", ".xz")
"""The extensions of compressed files; whether one is compressed follows from its first bytes."""

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    **{b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)},
}
"""The first bytes of compressed content, which decide; the extension may be missing or that of another program."""

_XZ = b"\xfd7zXZ\x00"

MANY = 50_000
"""The number of ids up to which loading compiled code takes longer than numbering the ids with pyarrow."""


def find_format(path: Path) -> RunFormat | None:
    """Return the format that a file's extension shows, None for an unknown one."""
    return FORMATS.get(Path(strip_compression(path.name)).suffix.lower())


def strip_compression(name: str) -> str:
    """Return the name or path of a file without the extension of its compression."""
    return next((name[: -len(ending)] for ending in COMPRESSIONS if name.lower().endswith(ending)), name)


def read_columns(path: Path, kind: RunFormat) -> tuple[Columns | OrderedColumns, bool]:
    """Return the hits of a file, and whether their ids are encoded; raises `RetrieverError`, which names the place."""
    import pyarrow

    try:
        if kind == "parquet":
            return _read_parquet(path), False
        with path.open("rb") as file:
            beginning = file.read(10)
        compression = next((name for magic, name in _MAGIC.items() if beginning.startswith(magic)), None)
        if beginning.startswith(_XZ):  # which pyarrow lacks
            with lzma.open(path) as packed:
                content = pyarrow.py_buffer(packed.read())
        else:
            with (
                pyarrow.input_stream(path, compression=compression)
                if compression
                else pyarrow.memory_map(str(path)) as stream
            ):
                content = stream.read_buffer()
    except (pyarrow.ArrowException, OSError, EOFError, lzma.LZMAError) as error:
        raise RetrieverError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from None
    if not content.size:
        raise RetrieverError(f"{path}: the file is empty")
    if memoryview(content)[:2].tobytes() in (b"\xff\xfe", b"\xfe\xff"):
        raise RetrieverError(f"{path}: the file is UTF-16 text; save it as UTF-8")
    if kind == "trec":
        return read_trec(memoryview(content), path), has_encoded_ids(memoryview(content))
    if kind in ("csv", "tsv"):
        return _read_table(content, path, "," if kind == "csv" else "\t"), False
    return read_json_run(memoryview(content), path, kind == "jsonl"), False


def _read_table(content: Any, path: Path, delimiter: str) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow

    try:
        table = _parse_table(content, path, delimiter, threads=True)
    except UnicodeDecodeError:
        raise RetrieverError(f"{path}:1: not UTF-8 text; save it as UTF-8") from None
    except pyarrow.ArrowException:
        try:
            table = _parse_table(content, path, delimiter, threads=False)  # the error then names the row
        except pyarrow.ArrowException as error:
            message = " ".join(str(error).split())[:200]
            row = re.search(r"Row #([0-9]+): (.*)", message)
            raise RetrieverError(f"{path}:{row[1]}: {row[2]}" if row else f"{path}: {message}") from None
    return _from_table(table, path)


def _parse_table(content: Any, path: Path, delimiter: str, threads: bool) -> Any:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow
    from pyarrow import csv

    read = csv.ReadOptions(use_threads=threads)
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in memoryview(content).tobytes())
    names = csv.open_csv(pyarrow.BufferReader(content), read, parse).schema.names
    _check_distinct(names, path)
    kinds = {name: pyarrow.float64() if name in (*SCORE, *RANK) else pyarrow.string() for name in names}
    convert = csv.ConvertOptions(column_types=kinds, null_values=[])
    return csv.read_csv(pyarrow.BufferReader(content), read, parse, convert)


def _read_parquet(path: Path) -> Columns:
    from pyarrow import parquet

    names = parquet.ParquetFile(path).schema_arrow.names
    _check_distinct(names, path)
    wanted = [name for name in (*QUERY, *DOCUMENT, *SCORE, *RANK, *LISTS, *SCORES) if name in names]
    return _from_table(parquet.read_table(path, columns=wanted), path)


def _check_distinct(names: Sequence[str], path: Path) -> None:
    for name in (*QUERY, *DOCUMENT, *SCORE, *RANK, *LISTS, *SCORES):
        if names.count(name) > 1:
            raise RetrieverError(f"{path}: the column {name!r} occurs twice; keep one")


def _from_table(table: Any, path: Path) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    """Return the hits of a table with one row per hit, or one row per query with lists."""
    import pyarrow
    from pyarrow import compute

    has = table.column_names
    query = find_name(QUERY, has, "query", path)
    lists = next((name for name in (*LISTS, *DOCUMENT) if name in has and _is_list(table[name].type)), None)
    if lists is None:
        document = find_name(DOCUMENT, has, "document", path)
        score = next((name for name in SCORE if name in has), None)
        rank = next((name for name in RANK if name in has), None)
        if score is None and rank is None:
            raise RetrieverError(
                f"{path}: has neither a score column nor a rank column; its columns are {', '.join(has)}"
            )
        columns = _number(table[query], table[document], table[score or rank], path)
        values = columns.scores if score else _score_ranks(columns, path)
        return Columns(columns.queries, values, columns.query_ids, columns.documents)
    column = table[lists].combine_chunks()
    scores = next((name for name in (*SCORES, *SCORE) if name in has), None)
    if scores and not _is_list(table[scores].type):
        raise RetrieverError(
            f"{path}: the column {scores!r} has single values, but the documents are lists; give a list of scores"
        )
    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy()
    if scores:
        counts = compute.fill_null(compute.list_value_length(table[scores].combine_chunks()), 0).to_numpy()
        for row in np.flatnonzero(counts != lengths)[:1].tolist():
            raise RetrieverError(
                f"{path}, row {row + 1}: {scores} has {counts[row]:,} numbers, but there are {lengths[row]:,} documents"
            )
    queries = table[query].take(np.repeat(np.arange(len(lengths)), lengths))
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = compute.list_flatten(table[scores].combine_chunks()) if scores else pyarrow.array(1 / (1 + places))
    return _number(queries, compute.list_flatten(column), values, path)


def _score_ranks(columns: Columns, path: Path) -> NDArray[np.float64]:
    ranks = columns.scores.astype(np.float64, copy=False)
    for row in np.flatnonzero(~((ranks >= 0) & (ranks == np.floor(ranks)) & np.isfinite(ranks)))[:1].tolist():
        raise RetrieverError(
            f"{path}, row {row + 1}: the rank {ranks[row]:g} is not a whole number; ranks count from 1, or from 0"
        )
    return score_ranks(ranks)


def _is_list(kind: Any) -> bool:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow

    return bool(pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind))


def _number(queries: Any, documents: Any, scores: Any, path: Path) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    """Return columns of pyarrow with numbers in place of ids; raises `RetrieverError` for a missing value."""
    import pyarrow

    for name, column in (("query id", queries), ("document id", documents), ("score", scores)):
        if column.null_count:
            raise RetrieverError(f"{path}: {column.null_count:,} of {len(column):,} hits have no {name}")
    if not (pyarrow.types.is_integer(scores.type) or pyarrow.types.is_floating(scores.type)):
        raise RetrieverError(f"{path}: the scores are of type {scores.type}; they must be numbers")
    queries, documents = _to_text(queries, "query", path), _to_text(documents, "document", path)
    query_numbers, query_ids = _encode(queries)
    scores = scores.cast(pyarrow.float64())
    numbers = scores.to_numpy(zero_copy_only=False) if _is_array(scores) else scores.to_numpy()
    ids = _find_ranges(documents) if len(documents) > MANY else None
    return Columns(query_numbers, numbers, query_ids, ids or NumberedIds(*_encode(documents)))


def _to_text(column: Any, what: str, path: Path) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of ids as text; raises `RetrieverError` unless they are text or whole numbers, and not empty."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_floating(kind):
        values = column.cast(kind)
        if compute.all(compute.equal(values, compute.floor(values))).as_py() is not False:
            with suppress(pyarrow.ArrowInvalid):
                return values.cast(pyarrow.int64()).cast(pyarrow.string())
    elif types.is_integer(kind):
        return column.cast(kind).cast(pyarrow.string())
    elif types.is_string(kind) or types.is_large_string(kind):
        lengths = compute.binary_length(column.cast(kind) if kind != column.type else column)
        row = compute.index(lengths, pyarrow.scalar(0, lengths.type)).as_py()
        if row < 0:
            return column
        raise RetrieverError(f"{path}, row {row + 1}: the {what} id is empty")
    raise RetrieverError(f"{path}: the {what} ids are of type {kind}; an id must be text or a whole number")


def _is_array(column: Any) -> bool:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow

    return isinstance(column, pyarrow.Array)


def _encode(column: Any) -> tuple[NDArray[np.int32], list[str]]:  # noqa: ANN401 (pyarrow has no types)
    """Return the number of each id, and the distinct ids as text."""
    import pyarrow

    ranges = _find_ranges(column) if len(column) > MANY else None
    if ranges is not None:
        numbers, ids = ranges.number(np.arange(len(column)))
        return numbers, list(ids)
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries() if pyarrow.types.is_dictionary(column.type) else column
        column = column.combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # without rows
        column = pyarrow.array([], pyarrow.string())
    if not pyarrow.types.is_dictionary(column.type):
        column = column.cast(pyarrow.string()).dictionary_encode()
    ids = column.dictionary.cast(pyarrow.string()).to_numpy(zero_copy_only=False).tolist()
    return column.indices.to_numpy().astype(np.int32, copy=False), ids


def _find_ranges(column: Any) -> IdRanges | None:  # noqa: ANN401 (pyarrow has no types)
    """Return the position of each id in the bytes of a column, None for ids that already have numbers."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        return None
    column = column.cast(pyarrow.large_string())
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    _, offsets, text = column.buffers()
    offsets = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return IdRanges(np.frombuffer(text or b"", np.uint8), offsets[:-1], np.diff(offsets).astype(np.int32))
