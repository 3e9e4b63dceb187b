"""Read chunks from files in JSONL, Parquet or JSON, with or without vectors.

Nothing here splits documents or depends on what chunks are used for.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.files import SourceRecord
from runner.datasets.rows import iter_parquet

TEXT_FIELDS = ("chunk_text", "chunk")
VECTOR_FIELDS = ("embedding", "content_vector")

_LINES, _TABLES, _OBJECTS = (".jsonl", ".ndjson"), (".parquet", ".pq"), (".json",)
_ROWS = 1024  # rows of Parquet at a time: lists of numbers take much memory in Python


@dataclass(frozen=True, eq=False)
class ChunkTable:
    """Chunks in columns, in the order of their files. `vectors` (n x d, float32) is None if they have none."""

    doc_ids: list[str]
    chunk_ids: list[str]
    titles: list[str]
    texts: list[str]
    vectors: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.texts)


def corpus_id(doc_id: str, chunk_id: str) -> str:
    """Return the id of a chunk as a document of a corpus; its own id may occur in several documents."""
    return f"{doc_id}#{chunk_id}"


def is_chunk_file(path: Path) -> bool:
    """Tell files of chunks from others by their extension."""
    return strip_compression(path.name.lower()).endswith((*_LINES, *_TABLES, *_OBJECTS))


def read_chunks(path: Path, dimensions: int | None = None) -> ChunkTable:
    """Read a file of chunks, or all such files in a folder, ordered by path.

    A chunk has `doc_id`, `chunk_id`, its text (`chunk_text` or `chunk`) and, optionally, a `title` and a vector
    (`embedding` or `content_vector`) with this number of `dimensions`. Raises `DatasetError` naming the first chunk
    that is empty or repeated, or whose vector has another length than the previous ones, is missing although they have
    one, or has no direction.
    """
    table = ChunkTable([], [], [], [])
    places: dict[tuple[str, str], str] = {}
    numbers = array("f")
    length: int | None = None  # of the first vector; 0 if the first chunk has none
    for record in iter_chunks(path):
        _check_fields(record)
        key = record.identifier("doc_id"), record.identifier("chunk_id")
        place = f"{record.place}{record.number}"
        if (first := places.setdefault(key, place)) != place:
            raise record.fault(
                f"chunk {key[1]!r} of {key[0]!r} is already defined at {first}; each pair of ids must be unique"
            )
        text = record.text(*TEXT_FIELDS)
        if not text.strip():
            raise record.fault(f"chunk {key[1]!r} of {key[0]!r} is empty; remove it")
        vector = _vector(record)
        if length is None:
            length = len(vector)
        _check_length(record, len(vector), length, dimensions)
        numbers.frombytes(vector.tobytes())
        table.doc_ids.append(key[0])
        table.chunk_ids.append(key[1])
        table.titles.append(record.text("title") if "title" in record.fields else "")
        table.texts.append(text)
    if not len(table):
        raise DatasetError(f"{path}: the file or folder contains no chunks")
    if not length:
        return table
    vectors = np.frombuffer(numbers, dtype=np.float32).reshape(len(table), length)
    return ChunkTable(table.doc_ids, table.chunk_ids, table.titles, table.texts, vectors)


def check_chunks(path: Path) -> None:
    """Raise `DatasetError` if the first line of a file, or of a folder, is not a chunk, without reading the rest."""
    for record in iter_chunks(path):
        _check_fields(record)
        return


def _check_fields(record: SourceRecord) -> None:
    if missing := _missing(record.fields):
        raise record.fault(missing)


def _missing(there: Collection[str]) -> str:
    """Describe the first missing field of a chunk; "" if none is missing."""
    absent = next((name for name in ("doc_id", "chunk_id") if name not in there), None)
    if absent is None and not any(name in there for name in TEXT_FIELDS):
        absent = TEXT_FIELDS[0]
    if absent is None:
        return ""
    return (
        f"{absent!r} is missing; the fields are {', '.join(there) or 'none'}. A chunk needs doc_id, chunk_id and "
        f"its text as {' or '.join(TEXT_FIELDS)}; whole documents are read from a folder of Markdown or text files"
    )


def _vector(record: SourceRecord) -> NDArray[np.float32]:
    """Return the vector of a chunk, of length 0 if it has none."""
    name = next((name for name in VECTOR_FIELDS if record.fields.get(name) is not None), None)
    if name is None:
        return np.zeros(0, dtype=np.float32)
    try:
        with np.errstate(over="ignore"):  # values that are too large become infinite and are rejected below
            vector = np.asarray(record.fields[name], dtype=np.float32)
    except (TypeError, ValueError):
        raise record.fault(f"{name!r} is not a list of numbers") from None
    if vector.ndim != 1:
        raise record.fault(f"{name!r} is not a list of numbers")
    if not np.isfinite(vector).all():
        raise record.fault(f"{name!r} has values that are not finite numbers")
    if not vector.any():
        what = "has only zeros and therefore no direction" if len(vector) else "is empty"
        raise record.fault(f"{name!r} {what}; remove the chunk, or embed it again")
    return vector


def _check_length(record: SourceRecord, length: int, first: int, dimensions: int | None) -> None:
    if length and dimensions not in (None, length):
        raise record.fault(f"the vector has {length} dimensions, but source.dimensions={dimensions}")
    if length == first:
        return
    if not length:
        raise record.fault("the chunk has no vector, but earlier chunks have one; give all chunks a vector, or none")
    if not first:
        raise record.fault("the chunk has a vector, but earlier chunks have none; give all chunks a vector, or none")
    raise record.fault(
        f"the vector has {length} dimensions, but the first chunk's vector has {first}; embed all chunks with one model"
    )


def iter_chunks(path: Path) -> Iterator[SourceRecord]:
    """Yield the chunks of a file, or of all such files in a folder, as they are."""
    if not path.is_dir():
        yield from _records_of_file(path)
        return
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    for file in filter(is_chunk_file, files):
        yield from _records_of_file(file)


def _records_of_file(path: Path) -> Iterator[SourceRecord]:
    name = strip_compression(path.name.lower())
    if name.endswith(_LINES):
        yield from files.json_lines(path)
    elif name.endswith(_TABLES):
        wanted = {"doc_id", "chunk_id", "title", *TEXT_FIELDS, *VECTOR_FIELDS}
        yield from iter_parquet(path, wanted, _ROWS, _missing)
    elif name.endswith(_OBJECTS):
        content = files.json_content(path)
        yield from files.json_objects(path, "chunk", content if isinstance(content, list) else [content])
    else:
        raise DatasetError(
            f"{path}: unknown format; name a .jsonl, .parquet or .json file of chunks, a folder of these, or a "
            "folder of Markdown or text files"
        )
