"""A result in one file of JSON and arrays, which is quickly written and read, and whose content cannot run code.

It has what a record has (`runner.evaluation.records`), which takes several times as long to write. After a first line
and a checksum come the length of the JSON, the JSON, which has the types and shapes of the arrays, and their bytes.
Numbers that are not finite stay as they are.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.id_table import IdTable
from runner.datasets.document_hashes import check_document_hashes
from runner.evaluation.records import describe_result, list_values, rebuild_result, stack_values
from runner.evaluation.result import ChunkPlaces, Hits, JudgedQueries, QueryTable, Result

_FIRST_LINE = b"retrieval-runner result 2\n"

_CHECKSUM, _LENGTH = np.dtype("<u4"), np.dtype("<u8")

_TYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("i1", "i4", "i8", "u8", "f4", "f8", "u1", "?")}
"""The types that an array may have; none of them holds objects."""

_OWN_COLUMNS = ("statuses", "errors", "notes")
"""The columns of queries that differ between results on one dataset."""


def pack_result(result: Result, **more: object) -> bytes:
    """Return a result and `more` values for JSON as bytes; of a large corpus, only the documents among the hits."""
    queries, graded, hits = result.queries, result.grades, result.hits and result.hits.trim()
    arrays: dict[str, NDArray[Any]] = {"scores": stack_values(result), "shared": _pack_columns(queries.shared)}
    head: dict[str, Any] = {
        "result": describe_result(result),
        "queries": {name: list(getattr(queries, name)) for name in _OWN_COLUMNS},
        "grades": None if graded is None else graded.columns(queries.ids),
        "more": more,
    }
    if result.losses is not None:
        arrays |= {"lost_by": result.losses.codes, "gold_ranks": result.losses.ranks}
    if result.document_hashes is not None:
        arrays["document_hashes"] = result.document_hashes
    if hits is not None:
        head |= {"metadata": list(hits.metadata), "parents": list(hits.parents)}
        table = IdTable.of(hits.documents)
        arrays |= {"document_ids": table.text, "document_id_starts": table.starts, "grades": hits.grades}
        arrays |= {"documents": hits.rankings.documents, "document_scores": hits.rankings.scores}
        arrays |= {} if hits.unknown is None else {"unknown": hits.unknown}
        if hits.chunks is not None:
            head["chunk_titles"] = list(hits.chunks.titles)
            arrays |= {"chunk_starts": hits.chunks.starts, "chunk_ends": hits.chunks.ends}
    return _join(head, arrays)


def unpack_result(content: bytes) -> tuple[Result, dict[str, Any]]:
    """Return the result and the further values in bytes; those that are damaged or of another form raise any error."""
    head, arrays = _split(content)
    shared, own = (
        _unpack_columns(arrays["shared"].tobytes()),
        {name: head["queries"][name] for name in _OWN_COLUMNS},
    )
    queries = QueryTable(**shared, **own)
    scores, n = arrays["scores"], len(queries.ids)
    optional = ("expected_grades", "clusters", "fields")
    if scores.shape != (len(list_values(head["result"])), n) or any(
        len(column) != n and not (name in optional and not column) for name, column in vars(queries).items()
    ):
        raise ValueError("the columns do not have a value for each query")
    hits = _read_hits(arrays, head, queries) if "documents" in arrays else None
    hashes = arrays.get("document_hashes")
    if hashes is not None:
        check_document_hashes(hashes, head["result"]["dataset"]["documents"])
    losses = (arrays["lost_by"], arrays["gold_ranks"]) if "lost_by" in arrays else None
    return rebuild_result(head["result"], queries, scores, hits, head["grades"], hashes, losses), head["more"]


def _read_hits(arrays: Mapping[str, NDArray[Any]], head: Mapping[str, Any], queries: QueryTable) -> Hits:
    documents, scores, grades = arrays["documents"], arrays["document_scores"], arrays["grades"]
    ids = IdTable(arrays["document_ids"], arrays["document_id_starts"])
    unknown = arrays.get("unknown")
    chunks = (
        ChunkPlaces(head["chunk_titles"], arrays["chunk_starts"], arrays["chunk_ends"])
        if "chunk_titles" in head
        else None
    )
    columns = (
        head["metadata"], head["parents"], *(() if unknown is None else (unknown,)),
        *(() if chunks is None else (chunks.titles, chunks.starts, chunks.ends)),
    )  # fmt: skip
    if not (
        len(documents) == len(queries.ids)
        and documents.shape == scores.shape == grades.shape
        and documents.min(initial=NOTHING) >= NOTHING
        and documents.max(initial=NOTHING) < len(ids)
        and all(len(column) in (0, len(ids)) for column in columns)
    ):
        raise ValueError("the hits do not belong together")
    errors = {i: error for i, error in enumerate(queries.errors) if error} or None
    rankings = Rankings(documents, scores, errors=errors)
    return Hits(rankings, ids, grades, head["metadata"], head["parents"], unknown, chunks)


def _join(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    form = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    text = _to_bytes({"arrays": form, **head})
    parts = [np.array(len(text), _LENGTH).tobytes(), text, *(array.tobytes() for array in arrays.values())]
    body = b"".join(parts)
    return _FIRST_LINE + np.array(zlib.crc32(body), _CHECKSUM).tobytes() + body


def _split(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    start = len(_FIRST_LINE)
    body = memoryview(content)[start + _CHECKSUM.itemsize :]
    if not content.startswith(_FIRST_LINE) or np.frombuffer(content, _CHECKSUM, 1, start)[0] != zlib.crc32(body):
        raise ValueError("the checksum does not match")
    end = _LENGTH.itemsize + int(np.frombuffer(body, _LENGTH, 1)[0])
    head, arrays = json.loads(bytes(body[_LENGTH.itemsize : end])), {}
    for name, (kind, shape) in head["arrays"].items():
        dtype, size = _TYPES[kind], math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype, size, end).reshape(shape)
        end += size * dtype.itemsize
    return head, arrays


@lru_cache(maxsize=1)
def _pack_columns(shared: JudgedQueries) -> NDArray[np.uint8]:
    """Return the columns that all results on a dataset have in common."""
    columns = {column.name: list(getattr(shared, column.name)) for column in fields(shared)}
    return np.frombuffer(_to_bytes(columns), np.uint8)


@lru_cache(maxsize=1)
def _unpack_columns(content: bytes) -> dict[str, Any]:
    columns = json.loads(content)
    return {column.name: columns[column.name] for column in fields(JudgedQueries)}


def _to_bytes(content: object) -> bytes:
    return json.dumps(content, default=_to_plain).encode()


def _to_plain(value: Any) -> Any:  # noqa: ANN401 (any value of a setting)
    """Return a value that JSON lacks as one that it has, as records do."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple | set) else str(value)
