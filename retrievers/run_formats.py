"""Read rankings that other programs wrote: TREC runs, tables and JSON, plain or compressed.

A file becomes three columns: queries, documents and scores. Ranking is left to the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

import numpy as np
import orjson
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.run_columns import Columns, IdRanges, NumberedIds, OrderedColumns, collect_rows
from retrievers.trec_runs import read_trec

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

COMPRESSIONS = (".gz", ".lz4", ".zst", ".bz2")

QUERY = ("query_id", "qid", "q_id", "query-id", "topic", "query")
DOCUMENT = ("document_id", "docno", "doc_id", "docid", "corpus-id", "item_id", "did", "pid")
SCORE, RANK = ("score", "sim"), ("rank",)
LISTS = ("documents", "results", "hits", "ranking", "docnos", "doc_ids", "document_ids")
SCORES = ("scores",)
"""The names of columns: ours and those of PyTerrier, ranx, BEIR and Pyserini; a list has all documents of a query."""

MANY = 50_000
"""The number of ids up to which loading compiled code takes longer than numbering the ids with pyarrow."""


def find_format(path: Path) -> RunFormat | None:
    """Return the format that a file's extension shows, None for an unknown one."""
    name = path.name.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return FORMATS.get(Path(name).suffix)


def read_columns(path: Path, kind: RunFormat) -> Columns | OrderedColumns:
    """Read the hits of a file; raises `RetrieverError`, which names the place."""
    import pyarrow

    try:
        if kind == "parquet":
            return _read_parquet(path)
        compressed = path.name.lower().endswith(COMPRESSIONS)
        with pyarrow.input_stream(path, compression="detect") if compressed else pyarrow.memory_map(str(path)) as file:
            content = file.read_buffer()
    except (pyarrow.ArrowException, OSError) as error:
        raise RetrieverError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from None
    if not content.size:
        raise RetrieverError(f"{path}: the file is empty")
    if kind == "trec":
        return read_trec(memoryview(content), path)
    if kind in ("csv", "tsv"):
        return _read_table(content, path, "," if kind == "csv" else "\t")
    return _read_json(content, path, kind)


def decode_token(word: str) -> str:
    """Return the id of a word in which white space and "%" are percent-encoded ("%" alone is an empty id).

    Any other word is returned unchanged.
    """
    if "%" not in word:
        return word
    decoded = "" if word == "%" else unquote(word)
    encoded = re.sub(r"[\s%]", lambda character: quote(character[0]), decoded) or "%"
    return decoded if encoded == word else word


def _read_table(content: Any, path: Path, delimiter: str) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow
    from pyarrow import csv

    text = pyarrow.string()
    try:
        names = csv.open_csv(
            pyarrow.BufferReader(content), parse_options=csv.ParseOptions(delimiter=delimiter)
        ).schema.names
        convert = csv.ConvertOptions(
            column_types={name: pyarrow.float64() if name in (*SCORE, *RANK) else text for name in names},
            null_values=[],
        )
        table = csv.read_csv(
            pyarrow.BufferReader(content),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=convert,
        )
    except pyarrow.ArrowException as error:
        raise RetrieverError(f"{path}: {' '.join(str(error).split())[:200]}") from None
    return _from_table(table, path)


def _read_parquet(path: Path) -> Columns:
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    names = set(file.schema_arrow.names)
    wanted = [name for name in (*QUERY, *DOCUMENT, *SCORE, *RANK, *LISTS, *SCORES) if name in names]
    return _from_table(parquet.read_table(path, columns=wanted), path)


def _from_table(table: Any, path: Path) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    """Return the hits of a table with one row per hit, or one row per query with lists."""
    import pyarrow
    from pyarrow import compute

    has = table.column_names
    query = _find_name(QUERY, has, "query", path)
    lists = next((name for name in (*LISTS, *DOCUMENT) if name in has and _is_list(table[name].type)), None)
    if lists is None:
        document = _find_name(DOCUMENT, has, "document", path)
        score = next((name for name in SCORE if name in has), None)
        rank = next((name for name in RANK if name in has), None)
        if score is None and rank is None:
            raise RetrieverError(
                f"{path}: has neither a score column nor a rank column; its columns are {', '.join(has)}"
            )
        values = table[score] if score else compute.divide(1.0, compute.cast(table[rank], pyarrow.float64()))
        return _number(table[query], table[document], values, path)
    column = table[lists].combine_chunks()
    scores = next((name for name in SCORES if name in has), None)
    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy()
    queries = table[query].take(np.repeat(np.arange(len(lengths)), lengths))
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = compute.list_flatten(table[scores].combine_chunks()) if scores else pyarrow.array(1 / (1 + places))
    flat = compute.list_flatten(column)
    if len(values) != len(flat):
        raise RetrieverError(f"{path}: {scores} has {len(values):,} numbers, but there are {len(flat):,} documents")
    return _number(queries, flat, values, path)


def _is_list(kind: Any) -> bool:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow

    return bool(pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind))


def _find_name(names: Sequence[str], there: Sequence[str], what: str, path: Path) -> str:
    for name in names:
        if name in there:
            return name
    raise RetrieverError(
        f"{path}: no column contains {what} ids; name the column {names[0]} or {names[1]}; the columns are "
        f"{', '.join(there) or 'none'}"
    )


def _number(queries: Any, documents: Any, scores: Any, path: Path) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    """Return columns of pyarrow with numbers in place of ids; raises `RetrieverError` for a missing value."""
    import pyarrow

    for name, column in (("query id", queries), ("document id", documents), ("score", scores)):
        if column.null_count:
            raise RetrieverError(f"{path}: {column.null_count:,} of {len(column):,} hits have no {name}")
    query_numbers, query_ids = _encode(queries)
    numbers = (
        scores.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        if _is_array(scores)
        else scores.cast(pyarrow.float64()).to_numpy()
    )
    ids = _find_ranges(documents) if len(documents) > MANY else None
    return Columns(query_numbers, numbers, query_ids, ids or NumberedIds(*_encode(documents)))


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


def _read_json(content: Any, path: Path, kind: RunFormat) -> Columns:  # noqa: ANN401 (pyarrow has no types)
    try:
        if kind == "jsonl":
            lines = bytes(content).split(b"\n")
            value: object = [orjson.loads(line) for line in lines if line.strip()]
        else:
            value = orjson.loads(memoryview(content))
    except orjson.JSONDecodeError as error:
        raise RetrieverError(f"{path}: invalid JSON ({error})") from None
    if isinstance(value, Mapping) and isinstance(value.get("run"), Mapping):  # ranxhub's file of a run with metadata
        value = value["run"]
    if isinstance(value, Mapping):
        return collect_rows(hit for query, hits in value.items() for hit in _iter_hits(str(query), hits, path))
    if isinstance(value, list):
        return collect_rows(hit for number, row in enumerate(value, start=1) for hit in _iter_record(row, number, path))
    raise RetrieverError(f"{path}: expected a mapping of queries to hits, or a list of hits")


def _iter_record(row: object, number: int, path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield the hits of a record: one, or those of a query in a list."""
    place = f"{path}, record {number}"
    if not isinstance(row, Mapping):
        raise RetrieverError(f"{place}: expected a JSON object")
    query = str(row[_find_name(QUERY, list(row), "query", Path(place))])
    lists = next((name for name in (*LISTS, *DOCUMENT) if isinstance(row.get(name), (list, Mapping))), None)
    if lists is None:
        yield from _iter_hits(query, [row], Path(place))
        return
    hits, scores = row[lists], next((row[name] for name in SCORES if isinstance(row.get(name), list)), None)
    if scores is None:
        yield from _iter_hits(query, hits, Path(place))
        return
    if len(scores) != len(hits):
        raise RetrieverError(f"{place}: has {len(scores):,} scores, but {len(hits):,} documents")
    yield from _iter_hits(query, list(zip(hits, scores, strict=True)), Path(place))


def _iter_hits(query: str, hits: object, path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield the hits of a query: a mapping to scores, or a list, best first, of ids, pairs or objects."""
    if isinstance(hits, Mapping):
        yield from ((query, str(document), _parse_score(score, query, path)) for document, score in hits.items())
        return
    if not isinstance(hits, list):
        raise RetrieverError(f"{path}: the hits of query {query!r} should be a mapping or a list")
    for place, hit in enumerate(hits, start=1):
        if isinstance(hit, Mapping):
            document = hit[_find_name((*DOCUMENT, "id", "_id"), list(hit), "document", path)]
            score = next((hit[name] for name in SCORE if hit.get(name) is not None), None)
            rank = next((hit[name] for name in RANK if hit.get(name)), place)
            value = 1 / _parse_score(rank, query, path) if score is None else _parse_score(score, query, path)
            yield query, str(document), value
        elif isinstance(hit, (list, tuple)) and len(hit) == 2:
            yield query, str(hit[0]), _parse_score(hit[1], query, path)
        elif isinstance(hit, (str, int)) and not isinstance(hit, bool):
            yield query, str(hit), 1 / place
        else:
            raise RetrieverError(f"{path}: query {query!r}, hit {place}: expected an id, a pair or an object")


def _parse_score(value: object, query: str, path: Path) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise RetrieverError(f"{path}: query {query!r}: the score {orjson.dumps(value).decode()[:60]} is not a number")
