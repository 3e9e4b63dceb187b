"""Plots as Vega-Lite specifications: plain dictionaries that the browser draws. Rooms add their own.

A text that begins with `$` is filled in by the script of the page: a colour of the page (`$muted`), or the column that
the reader chose (`$x`, and `$xTitle` for its title). The data `rows` are the rows that the table shows; `on` marks
those in a brush. `usermeta.brush` says whether a brush selects ranges or values of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

WIDE: Spec = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
FADED: Spec = {"condition": {"test": "datum.on", "value": 0.9}, "value": 0.12}
ROWS: Spec = {"name": "rows"}


def build_curves(families: Mapping[str, Mapping[int, float]], measure: str) -> Spec:
    """Return measures against their cutoff, a line each."""
    values: list[dict[str, Any]] = [
        {"name": name, "cutoff": cutoff, "value": value}
        for name, by_cutoff in families.items()
        for cutoff, value in by_cutoff.items()
    ]
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    cutoffs = sorted({entry["cutoff"] for entry in values})
    x = {"field": "cutoff", "type": "quantitative", "scale": {"type": "log"}, "axis": {"values": cutoffs}}
    return {
        **WIDE,
        "height": 280,
        "data": {"values": values},
        "mark": {"type": "line", "point": {"filled": True, "size": 50}},
        "encoding": {
            "x": x,
            "y": {**create_axis("value", measure), "scale": {"zero": True}},
            "color": name,
            "shape": name,
            "tooltip": create_tooltip("name", "cutoff", "value"),
        },
    }


def build_bars(groups: Sequence[str], series: Mapping[str, Sequence[float | None]], title: str) -> Spec:
    """Return a bar for each group and series."""
    values = [
        {"group": group, "name": name, "value": value}
        for name, of_series in series.items()
        for group, value in zip(groups, of_series, strict=True)
    ]
    are_counts = all(isinstance(value, int) for of_series in series.values() for value in of_series)
    return draw_bars({"values": values}, len(series) > 1, title, are_counts)


def draw_bars(data: Spec, several: bool, title: str, are_counts: bool) -> Spec:
    """Return a bar for each `group` and `name` of some data; `several` names have a legend."""
    legend = {} if several else {"legend": None}
    axis = {"tickMinStep": 1} if are_counts else {}
    return {
        **WIDE,
        "height": {"step": 10 if several else 14, "for": "offset"},
        "data": data,
        "mark": "bar",
        "encoding": {
            "y": {"field": "group", "type": "nominal", "sort": None, "title": None},
            "yOffset": {"field": "name", "sort": None},
            "x": {"field": "value", "type": "quantitative", "title": title, "axis": axis},
            "color": {"field": "name", "type": "nominal", "sort": None, "title": None, **legend},
            "tooltip": create_tooltip("group", "name", "value"),
        },
    }


def build_histogram(field: str, title: str, noun: str = "queries") -> Spec:
    """Return how many rows have which value of a field; a brush selects rows."""
    return {
        **WIDE,
        "height": 220,
        "data": ROWS,
        "transform": [{"filter": f"isValid(datum.{field})"}],
        "params": [create_brush("x")],
        "mark": {"type": "bar", "color": "$series-0"},
        "encoding": {
            "x": {"field": field, "bin": {"maxbins": 20}, "title": title},
            "y": {"aggregate": "count", "title": noun},
            "detail": {"field": "on"},
            "opacity": FADED,
            "tooltip": [{"field": field, "bin": {"maxbins": 20}, "title": title}, {"aggregate": "count"}],
        },
        "usermeta": {"brush": "ranges"},
    }


def build_thresholds(steps: Sequence[Mapping[str, float]], points: Sequence[Mapping[str, Any]], recall: str) -> Spec:
    """Return the true negative rate against the recall that is left, threshold by threshold, and chosen points."""
    unit = {"domain": [0, 1]}
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    return {
        **WIDE,
        "height": 260,
        "encoding": {
            "x": {"field": "recall", "type": "quantitative", "title": recall, "scale": unit},
            "y": {"field": "tn_rate", "type": "quantitative", "title": "TN rate", "scale": unit},
        },
        "layer": [
            {
                "data": {"values": list(steps)},
                "mark": {"type": "line", "interpolate": "step-after", "color": "$muted"},
                "encoding": {"order": {"field": "recall"}},
            },
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "size": 90, "strokeWidth": 2},
                "encoding": {"color": name, "shape": name, "tooltip": create_tooltip("name", "recall", "tn_rate")},
            },
        ],
    }


def build_measure_differences(rows: Sequence[Mapping[str, Any]], title: str) -> Spec:
    """Return the differences of systems by measure, with intervals; filled markers are significant."""
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    filled = {"condition": {"test": "datum.significant", "value": 1}, "value": 0}
    ends = {"x": create_axis("low", title), "x2": {"field": "high"}}
    several = len({row["name"] for row in rows}) > 1
    return {
        **WIDE,
        "height": {"step": 22},
        "data": {"values": list(rows)},
        "encoding": {
            "y": {"field": "measure", "type": "nominal", "sort": None, "title": None},
            "yOffset": {"field": "name", "sort": None},
            "color": {**name, **({} if several else {"legend": None})},
            "tooltip": create_tooltip("name", "measure", "value", "low", "high"),
        },
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends},
            {
                "mark": {"type": "point", "size": 60, "filled": False, "strokeWidth": 2, "fill": "$series-0"},
                "encoding": {"x": create_axis("value", title), "fillOpacity": filled},
            },
            {"mark": {"type": "rule", "color": "$muted"}, "encoding": {"x": {"datum": 0}, "y": None, "color": None}},
        ],
    }  # fmt: skip


def build_changes(field: str, title: str) -> Spec:
    """Return the changes of the rows in order of size; a brush selects rows."""
    color = {"condition": {"test": f"datum.{field} < 0", "value": "$bad"}, "value": "$good"}
    return {
        **WIDE,
        "height": 220,
        "data": ROWS,
        "transform": [
            {"filter": f"isValid(datum.{field})"},
            {"window": [{"op": "row_number", "as": "place"}], "sort": [{"field": field, "order": "descending"}]},
        ],
        "params": [create_brush("y")],
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "place", "type": "ordinal", "axis": None},
            "y": create_axis(field, title),
            "color": color,
            "opacity": FADED,
            "tooltip": [{"field": "query"}, {"field": "text"}, {"field": field, "format": ".4~g"}],
        },
        "usermeta": {"brush": "ranges"},
    }


def create_axis(field: str, title: str) -> Spec:
    """Return an axis of numbers that need not begin at zero."""
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}}


def create_tooltip(*fields: str) -> list[Spec]:
    """Return the fields that are shown under the pointer."""
    return [{"field": field, "format": ".4~g"} if field in _NUMBERS else {"field": field} for field in fields]


_NUMBERS = {"mean", "start", "end", "low", "high", "value", "x", "y", "recall", "share", "tn_rate"}


def create_brush(*encodings: str) -> Spec:
    """Return the parameter by which a reader selects rows in some directions."""
    return {"name": "brush", "select": {"type": "interval", "encodings": list(encodings)}}
