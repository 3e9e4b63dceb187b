"""Find queries that are variants of each other: those with the same value in a field of their metadata.

Nothing here depends on files, or on the statistics that use clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def cluster_labels(ids: Sequence[str], metadata: Sequence[Mapping[str, Any]], field: str) -> list[str]:
    """Return the cluster of each query, as text: its value of a field, "" for a query without one.

    Raises `ValueError` if no query has the field, or if a value is neither text nor a number.
    """
    labels = [_label(identifier, known.get(field), field) for identifier, known in zip(ids, metadata, strict=False)]
    if not any(labels):
        raise ValueError(no_query_has("cluster_field", field, metadata))
    return labels


def no_query_has(setting: str, field: str, *fields: Sequence[Mapping[str, Any]]) -> str:
    """Return an error message that no query has a field, with the fields that exist."""
    names = ", ".join(sorted({str(name) for metadata in fields for known in metadata for name in known})) or "none"
    return f"dataset.{setting}={field}: no query has this field; the fields are {names}"


def _label(identifier: str, value: object, field: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str | int | float):
        return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
    raise ValueError(f"dataset.cluster_field={field}: the value of query {identifier!r} is neither text nor a number")
