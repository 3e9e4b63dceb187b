"""A result in one file of JSON and arrays, which is quickly written and read, and whose content cannot run code.

It has what a record has (`runner.records`), which takes five times as long to write. The file is an `.npz` archive with
a checksum for each part. Numbers that are not finite stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.id_table import IdTable
from runner.records import describe_result, rebuild_result
from runner.result import Hits, QueryTable, Result, SharedColumns

_OWN_COLUMNS = ("statuses", "errors", "notes")
"""The columns of queries that differ between results on one dataset."""


def pack_result(result: Result, file: BinaryIO, **more: object) -> None:
    """Write a result and `more` values for JSON to a file; of a large corpus, only the documents among the hits."""
    queries, graded, hits = result.queries, result.grades, result.hits and result.hits.trim()
    arrays: dict[str, NDArray[Any]] = {"scores": result.scores, "shared": _pack_columns(queries.shared)}
    head: dict[str, Any] = {
        "result": describe_result(result),
        "queries": {name: list(getattr(queries, name)) for name in _OWN_COLUMNS},
        "grades": None if graded is None else graded.columns(queries.ids),
        "more": more,
    }
    if hits is not None:
        head |= {"metadata": list(hits.metadata), "parents": list(hits.parents)}
        table = IdTable.of(hits.documents)
        arrays |= {"document_ids": table.text, "document_id_starts": table.starts, "grades": hits.grades}
        arrays |= {"documents": hits.rankings.documents, "document_scores": hits.rankings.scores}
        arrays |= {} if hits.unknown is None else {"unknown": hits.unknown}
    np.savez(file, allow_pickle=False, head=_to_bytes(head), **arrays)


def unpack_result(file: BinaryIO) -> tuple[Result, dict[str, Any]]:
    """Return the result and the further values in a file; a damaged file, or one of another form, raises any error."""
    with np.load(file, allow_pickle=False) as arrays:
        head = json.loads(arrays["head"].tobytes())
        shared, own = (
            _unpack_columns(arrays["shared"].tobytes()),
            {name: head["queries"][name] for name in _OWN_COLUMNS},
        )
        queries = QueryTable(**shared, **own)
        scores, n = arrays["scores"], len(queries.ids)
        optional = ("expected_grades", "clusters", "fields")
        if scores.shape != (len(head["result"]["measures"]), n) or any(
            len(column) != n and not (name in optional and not column) for name, column in vars(queries).items()
        ):
            raise ValueError("the columns do not have a value for each query")
        hits = _read_hits(arrays, head, queries) if "documents" in arrays else None
    return rebuild_result(head["result"], queries, scores, hits, head["grades"]), head["more"]


def _read_hits(arrays: Mapping[str, NDArray[Any]], head: Mapping[str, Any], queries: QueryTable) -> Hits:
    documents, scores, grades = arrays["documents"], arrays["document_scores"], arrays["grades"]
    ids = IdTable(arrays["document_ids"], arrays["document_id_starts"])
    unknown = arrays.get("unknown")
    columns = (head["metadata"], head["parents"], *(() if unknown is None else (unknown,)))
    if not (
        len(documents) == len(queries.ids)
        and documents.shape == scores.shape == grades.shape
        and documents.min(initial=NOTHING) >= NOTHING
        and documents.max(initial=NOTHING) < len(ids)
        and all(len(column) in (0, len(ids)) for column in columns)
    ):
        raise ValueError("the hits do not belong together")
    errors = {i: error for i, error in enumerate(queries.errors) if error} or None
    return Hits(Rankings(documents, scores, errors=errors), ids, grades, head["metadata"], head["parents"], unknown)


@lru_cache(maxsize=1)
def _pack_columns(shared: SharedColumns) -> NDArray[np.uint8]:
    """Return the columns that all results on a dataset have in common."""
    return _to_bytes({column.name: list(getattr(shared, column.name)) for column in fields(shared)})


@lru_cache(maxsize=1)
def _unpack_columns(content: bytes) -> dict[str, Any]:
    columns = json.loads(content)
    return {column.name: columns[column.name] for column in fields(SharedColumns)}


def _to_bytes(content: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(content, default=_to_plain).encode(), np.uint8)


def _to_plain(value: Any) -> Any:  # noqa: ANN401 (any value of a setting)
    """Return a value that JSON lacks as one that it has, as records do."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple | set) else str(value)
