"""The data of a page: columns of rows, and scores by system and query, as compressed text."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

LEVELS = 65_534
"""Scores are stored as integers from 0 to this number; the next larger one stands for NaN."""

Format = Literal[
    "text", "flag", "integer", "number", "score", "score4", "signed", "p", "percent", "milliseconds", "seconds"
]


@dataclass(frozen=True, eq=False)
class DataColumn:
    """A column of rows: its `id` in plots, its `name` in filters and its `title` in tables.

    `kind` says what it is for: a "setting" is an axis of plots, a "cost" is better the smaller it is. A column that is
    not `shown` can be added to the table. `definition` explains its title.
    """

    id: str
    name: str
    title: str
    values: Sequence[Any]
    format: Format = "text"
    kind: Literal["", "setting", "cost", "measure"] = ""
    shown: bool = True
    definition: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the column for JSON. Numbers have nine decimals, so that the page rounds them as the reports do."""
        values = self.values
        if self.format not in ("text", "flag"):
            values = [None if value is None else round(value, 9) for value in values]
        return {**vars(self), "values": values}


def encode_json(value: Mapping[str, Any]) -> str:
    """Return a value as JSON (null for NaN), compressed, in base64."""
    return encode_bytes(orjson.dumps(value))


def encode_bytes(data: bytes) -> str:
    """Return bytes compressed by gzip, in base64; equal bytes give equal text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def encode_scores(scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return scores (systems x queries) in 16 bits: shape, range, and two planes of bytes, as compressed text.

    The scores of a query lie side by side, and high bytes before low bytes: neighbours are then alike, and compress to
    about half. The error is at most half a step, which is the range divided by `LEVELS`.
    """
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    step = (high - low) / LEVELS or 1.0
    levels = np.where(np.isnan(scores), LEVELS + 1, np.round((scores - low) / step)).astype(np.uint16).T.ravel()
    planes = np.concatenate([levels >> 8, levels & 255]).astype(np.uint8).tobytes()
    systems, queries = scores.shape
    return {"systems": systems, "queries": queries, "low": low, "step": step, "planes": encode_bytes(planes)}
