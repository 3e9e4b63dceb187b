"""Histograms of how a dataset is made, as Vega-Lite specifications; the bins are counted here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from runner.pages.explorer.specs import WIDE, Spec, create_tooltip

BROAD = 20
"""From how many times the shortest on the longest text needs a logarithmic axis."""

BINS = 24
"""Most bars of a histogram of lengths."""


def build_lengths(words: NDArray[np.int64], what: str, color: int = 0) -> Spec:
    """Return how many texts have how many words, on a logarithmic axis if they differ much; no words count as one."""
    lengths = np.maximum(words, 1)
    least, most = int(lengths.min()), int(lengths.max())
    broad = most > BROAD * least
    step = -(-(most + 1 - least) // BINS)
    edges = np.geomspace(least, most + 1, BINS + 1) if broad else np.arange(least, most + 1 + step, step)
    rows = _count_bins({what: lengths}, np.unique(edges.round()))
    median = int(np.quantile(lengths, 0.5, method="nearest"))  # a length that occurs, as in the table
    axes = _create_axes("words", what, "log" if broad else "linear")
    at = {"x": {"field": "median", "type": "quantitative"}}
    text = {"text": {"value": f"median {median:,}"}, "y": {"value": 0}}
    return {
        **WIDE,
        "height": 220,
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "bar", "color": f"$series-{color}"},
                "encoding": {**axes, "tooltip": create_tooltip("start", "end", "count")},
            },
            {
                "data": {"values": [{"median": median}]},
                "encoding": at,
                "layer": [
                    {"mark": {"type": "rule", "strokeDash": [4, 3], "color": "$ink"}},
                    {"mark": {"type": "text", "align": "left", "dx": 4, "dy": 6, "color": "$ink"}, "encoding": text},
                ],
            },
        ],
    }


def build_overlaps(series: Mapping[str, NDArray[np.float64]]) -> Spec:
    """Return how many queries share how much with their gold, and with random documents, in the same bins."""
    rows = _count_bins({name: values[~np.isnan(values)] for name, values in series.items()}, np.linspace(0, 1, 21))
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    axes = _create_axes("share of the query's words, by their IDF", "queries", "linear", 0)
    axes["y"]["stack"] = None
    tooltip = create_tooltip("name", "start", "end", "count")
    return {
        **WIDE,
        "height": 220,
        "data": {"values": rows},
        "mark": {"type": "bar", "opacity": 0.65},
        "encoding": {**axes, "color": name, "tooltip": tooltip},
    }


def count_golds(golds: NDArray[np.int64], most: int = 20) -> tuple[list[str], list[int]]:
    """Return numbers of gold documents and how many queries have each, those from `most` on together."""
    counts = np.bincount(np.minimum(golds, most)).tolist()
    names = [f"{number:,}" for number in range(len(counts))]
    return ([*names[:most], f"{most} or more"] if golds.max() > most else names), counts


def _count_bins(series: Mapping[str, NDArray[np.generic]], edges: NDArray[np.float64]) -> list[dict[str, object]]:
    return [
        {"name": name, "start": start, "end": end, "count": count}
        for name, values in series.items()
        for start, end, count in zip(
            edges[:-1].tolist(), edges[1:].tolist(), np.histogram(values, edges)[0].tolist(), strict=True
        )
    ]


def _create_axes(across: str, up: str, scale: str, step: int = 1) -> Spec:
    """Return the axes of bars that have a start, an end and a count; `step` is the least distance of labels."""
    x = {
        "field": "start",
        "type": "quantitative",
        "title": across,
        "scale": {"type": scale, "nice": False, "zero": False},
    }
    return {
        "x": {**x, "bin": {"binned": True}, "axis": {"tickMinStep": step} if step else {}},
        "x2": {"field": "end"},
        "y": {"field": "count", "type": "quantitative", "title": up, "axis": {"tickMinStep": 1}},
    }
