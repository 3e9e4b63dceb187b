"""Choose the fields of queries by which results are sliced: those whose values several queries share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST_VALUES = 40
"""Most distinct values of a field; a field with more describes single queries, not groups."""

REPRESENTS = "represents"
"""The field with the number of searches that a query represents: its searches, divided by its chance to be drawn."""

LONGEST = 60
"""Most characters of a value."""


def select_fields(metadata: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the fields of each query that group queries, as text; empty if there is no such field.

    A field groups queries if it has at least two values (a missing one counts), at most `MOST_VALUES`, and on average
    two queries or more for each. Lists, objects and long texts do not group.
    """
    counts: dict[str, Counter[str]] = {}
    for fields in metadata:
        for name, value in fields.items():
            counts.setdefault(name, Counter())[_format(value)] += 1
    names = [name for name, values in counts.items() if name != REPRESENTS and _is_group(values, len(metadata))]
    return [{name: _format(fields.get(name)) for name in names} for fields in metadata] if names else []


def _is_group(values: Counter[str], queries: int) -> bool:
    missing = queries - values.total()
    distinct = len(values) + bool(missing and "" not in values)
    return _UNFIT not in values and 2 <= distinct <= min(MOST_VALUES, queries / 2)


_UNFIT = "\0"


def _format(value: object) -> str:
    """Return a value as text, "" for none, and `_UNFIT` for one that cannot name a group."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value) if isinstance(value, str | int | float) else _UNFIT
    return text if len(text) <= LONGEST else _UNFIT
