"""Filters: conditions on the metadata of documents that a query carries, and the documents that meet them.

A filter is a value: fields, each with the values or the range that it allows. All of its conditions must hold. A
document without a field fails every condition on it; a document with a list of values passes if one of them does.
"""

from __future__ import annotations

import json
import math
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.store import fingerprint_texts

Scalar = bool | int | float | str
"""A value that conditions compare."""

Kind = Literal["boolean", "number", "text"]
"""The type of a field; values of different types are never compared."""

Mask = NDArray[np.bool_]
"""Which documents of a corpus pass a filter, of shape (n,)."""

LARGEST_CACHE = 256
"""How many masks are kept in memory for each corpus."""

SELECTIVITY = (
    (0.01, "filter_up_to_1_percent"),
    (0.05, "filter_1_to_5_percent"),
    (0.2, "filter_5_to_20_percent"),
    (1.0, "filter_over_20_percent"),
)
"""The bands of selectivity: the largest share of documents that pass, and the suffix in names of figures."""

_RANGE = ("from", "to")


class FilterError(ValueError):
    """A filter is malformed, or does not fit the metadata of the documents."""


@dataclass(frozen=True)
class Condition:
    """A condition on a field: one of `values`, or, without values, between `start` and `end`, both inclusive.

    `kind` distinguishes 1 from true, which are equal in Python.
    """

    field: str
    kind: Kind
    values: tuple[Scalar, ...] = ()
    start: Scalar | None = None
    end: Scalar | None = None

    def match(self, values: Sequence[Any]) -> range | list[int]:
        """Return the places of the sorted distinct values of a field that meet the condition."""
        if self.values:
            places = ((value, bisect_left(values, value)) for value in self.values)
            return [place for value, place in places if place < len(values) and values[place] == value]
        first = 0 if self.start is None else bisect_left(values, self.start)
        return range(first, len(values) if self.end is None else bisect_right(values, self.end))

    def format(self) -> object:
        """Return the condition as `parse_filter` reads it."""
        if self.values:
            return self.values[0] if len(self.values) == 1 else list(self.values)
        ends = zip(_RANGE, (self.start, self.end), strict=True)
        return {name: end for name, end in ends if end is not None}


@dataclass(frozen=True)
class Filter:
    """Conditions in the order of their fields, all of which must hold. Its text is JSON that `parse_filter` reads."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return json.dumps({condition.field: condition.format() for condition in self.conditions}, ensure_ascii=False)


def parse_filter(value: object) -> Filter | None:
    """Return the filter of an object, or of its JSON text: `{"year": {"from": 2000}, "source": ["a", "b"]}`.

    A field has a value, a list of values, or a range with `from`, `to` or both. Returns None if there is no condition.
    Raises `FilterError`.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except ValueError as error:
            raise FilterError(f"invalid JSON ({error})") from None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, Mapping):
        raise FilterError(f'expected an object such as {{"year": {{"from": 2000}}}}, found {_show(value)}')
    conditions = [_parse_condition(str(name), wanted) for name, wanted in value.items() if wanted is not None]
    return Filter(tuple(sorted(conditions, key=lambda condition: condition.field))) if conditions else None


def _parse_condition(name: str, wanted: object) -> Condition:
    if isinstance(wanted, Mapping):
        others = [str(key) for key in wanted if key not in _RANGE]
        if others:
            raise FilterError(f"{name}: a range can only have from and to, not {', '.join(others)}")
        start, end = (None if wanted.get(key) is None else _parse_scalar(name, wanted[key]) for key in _RANGE)
        ends = [value for value in (start, end) if value is not None]
        if not ends:
            raise FilterError(f"{name}: the range has neither from nor to")
        kind = _find_one_kind(name, ends)
        if kind == "boolean":
            raise FilterError(f"{name}: a range needs numbers or text, found {_show(wanted)}")
        if ends[0] > ends[-1]:  # type: ignore[operator]  # of one kind
            raise FilterError(f"{name}: the range begins at {start!r} (from), after its end {end!r} (to)")
        return Condition(name, kind, (), start, end)
    listed = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    if not listed:
        raise FilterError(f"{name}: the list of values is empty")
    values = [_parse_scalar(name, value) for value in listed]
    kind = _find_one_kind(name, values)
    return Condition(name, kind, tuple(sorted(set(values))))


def _find_one_kind(name: str, values: Iterable[Scalar]) -> Kind:
    kind, *others = sorted({find_kind(value) for value in values})
    if others:
        raise FilterError(f"{name}: mixes {' and '.join([kind, *others])} values; use one type")
    return kind


def _parse_scalar(name: str, value: object) -> Scalar:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise FilterError(f"{name}: {_show(value)} is neither text, a number nor a boolean")


def find_kind(value: Scalar) -> Kind:
    """Return the type of a value."""
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def list_kinds(filters: Iterable[Filter | None]) -> dict[str, Kind]:
    """Return the fields that filters name, with the type of their values; raises `FilterError` if types disagree."""
    kinds: dict[str, Kind] = {}
    for own in filters:
        for condition in own.conditions if own is not None else ():
            if kinds.setdefault(condition.field, condition.kind) != condition.kind:
                raise FilterError(
                    f"{condition.field}: filters compare it with {kinds[condition.field]} values and with "
                    f"{condition.kind} values; use one type"
                )
    return kinds


def group_by_selectivity(shares: Sequence[float]) -> dict[str, NDArray[np.int64]]:
    """Return the queries of each band that has any, most selective first, by the share that passes (NaN: no filter)."""
    bands = np.searchsorted([most for most, _ in SELECTIVITY], np.array(shares, dtype=np.float64))
    groups = {name: np.flatnonzero(bands == band) for band, (_, name) in enumerate(SELECTIVITY)}
    return {name: group for name, group in groups.items() if len(group)}


def convert_value(value: object, kind: Kind) -> object:
    """Return a value of a document in the type that filters compare; text may spell a number or a boolean.

    Raises `FilterError` for text that spells neither.
    """
    if isinstance(value, (list, tuple)):
        return [convert_value(item, kind) for item in value]
    if not isinstance(value, str) or kind == "text":
        return value
    text = value.strip().lower()
    if not text:
        return None
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "number":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return int(text) if text.lstrip("+-").isdecimal() else number
    raise FilterError(f"filters compare this field with {kind} values, but {value!r} is not a {kind}")


@dataclass(frozen=True, eq=False)
class FieldValues:
    """The values of a field: the sorted distinct `values`, and entries of documents (`rows`) with the values' `codes`.

    A document has one entry for each of its values.
    """

    kind: Kind | None
    values: Sequence[Any]
    rows: NDArray[np.int32]
    codes: NDArray[np.int32]

    def match(self, condition: Condition) -> range | list[int]:
        """Return the codes of the values that meet a condition."""
        return condition.match(self.values) if condition.kind == self.kind else []

    @property
    def has_lists(self) -> bool:
        """Return whether a document has several values."""
        return bool((self.rows[1:] == self.rows[:-1]).any())

    def list_codes(self, n: int) -> list[list[int]]:
        """Return the codes of the values of each of n documents."""
        codes: list[list[int]] = [[] for _ in range(n)]
        for row, code in zip(self.rows.tolist(), self.codes.tolist(), strict=True):
            codes[row].append(code)
        return codes


class Metadata:
    """The metadata of n documents in columns, which finds the documents that pass filters.

    Masks are computed once for each filter, and the latest are kept. Raises `FilterError` for a field with values of
    several types.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
        self._rows, self.fields = rows, tuple(fields)
        self._columns: dict[str, FieldValues] = {}
        self._masks: OrderedDict[Filter, Mask] = OrderedDict()
        self._turn = threading.RLock()

    def __reduce__(self) -> tuple[type[Metadata], tuple[object, ...]]:
        """Exclude cached values from copies."""
        return Metadata, (self._rows, self.fields)

    def read(self, field: str) -> FieldValues:
        """Return the values of a field."""
        with self._turn:
            if field not in self._columns:
                self._columns[field] = _build_column(field, self._rows)
            return self._columns[field]

    def select(self, own: Filter) -> Mask:
        """Return which documents pass a filter."""
        with self._turn:
            if own not in self._masks:
                self._masks[own] = self._compute_mask(own)
            self._masks.move_to_end(own)
            if len(self._masks) > LARGEST_CACHE:
                self._masks.popitem(last=False)
            return self._masks[own]

    def _compute_mask(self, own: Filter) -> Mask:
        mask = np.ones(len(self._rows), dtype=np.bool_)
        for condition in own.conditions:
            column, passing = self.read(condition.field), np.zeros(len(self._rows), dtype=np.bool_)
            selected = np.zeros(len(column.values), dtype=np.bool_)
            selected[list(column.match(condition))] = True
            passing[column.rows[selected[column.codes]]] = True
            mask &= passing
        mask.flags.writeable = False
        return mask

    def measure_shares(self, filters: Sequence[Filter | None]) -> list[float]:
        """Return the share of documents that pass each filter, NaN for None."""
        shares = {own: float(self.select(own).mean()) for own in dict.fromkeys(filters) if own is not None}
        return [math.nan if own is None else shares[own] for own in filters]

    def stack(self, filters: Sequence[Filter | None]) -> tuple[Mask, NDArray[np.int64]]:
        """Return the masks of the distinct filters (m, n), and the row of each filter's mask; -1 for None."""
        distinct = list(dict.fromkeys(own for own in filters if own is not None))
        at = {own: row for row, own in enumerate(distinct)}
        masks = np.zeros((len(distinct), len(self._rows)), dtype=np.bool_)
        for own, row in at.items():
            masks[row] = self.select(own)
        return masks, np.array([-1 if own is None else at[own] for own in filters], dtype=np.int64)

    def encode(self) -> dict[str, tuple[str, list[list[int]]]]:
        """Return, by the names under which engines store fields, each field and the codes of all documents."""
        n = len(self._rows)
        return {f"f{place}": (field, self.read(field).list_codes(n)) for place, field in enumerate(self.fields)}

    def match(self, own: Filter) -> dict[str, tuple[str, range | list[int]]]:
        """Return, by the names under which engines store fields, each field of a filter and the codes that pass.

        Codes are in the order of the values, so that a range of values is a range of codes. Raises `FilterError` for a
        field that is not stored.
        """
        for condition in own.conditions:
            if condition.field not in self.fields:
                stored = ", ".join(self.fields) or "none"
                raise FilterError(f"{condition.field}: the engine does not store this field; it stores {stored}")
        return {f"f{self.fields.index(c.field)}": (c.field, self.read(c.field).match(c)) for c in own.conditions}

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the values of the fields, by document."""
        columns = ((field, self.read(field)) for field in self.fields)
        return fingerprint_texts(
            text
            for field, column in columns
            for text in (field, json.dumps(column.values), column.rows.tobytes().hex(), column.codes.tobytes().hex())
        )


def _build_column(field: str, rows: Sequence[Mapping[str, Any]]) -> FieldValues:
    codes: dict[Scalar, int] = {}
    kind: Kind | None = None
    places: list[int] = []
    numbers: list[int] = []
    for row, metadata in enumerate(rows):
        for value in _list_values(field, metadata.get(field)):
            if kind is None:
                kind = find_kind(value)
            elif find_kind(value) != kind:
                raise FilterError(f"{field}: documents have {kind} and {find_kind(value)} values; use one type")
            places.append(row)
            numbers.append(codes.setdefault(value, len(codes)))
    order: list[Any] = sorted(codes)
    ranks = np.empty(len(codes), dtype=np.int32)
    ranks[[codes[value] for value in order]] = np.arange(len(codes), dtype=np.int32)
    return FieldValues(kind, order, np.array(places, dtype=np.int32), ranks[np.array(numbers, dtype=np.int64)])


def _list_values(field: str, value: object) -> list[Scalar]:
    """Return the values of a document's field; none if it is missing, null, NaN or empty."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [
        _parse_scalar(field, item)
        for item in listed
        if item is not None and item != "" and not (isinstance(item, float) and math.isnan(item))
    ]


def _show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."
