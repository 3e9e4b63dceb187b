"""The plots of a sweep as Vega-Lite specifications: combinations, settings, the search, and queries of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.pages.explorer.specs import FADED, ROWS, WIDE, Spec, create_axis, create_brush, create_tooltip, draw_bars


def build_intervals(title: str, count: int) -> Spec:
    """Return the means of the best rows with their intervals; grey: significantly different from the best."""
    color = {"condition": {"test": "datum.differs", "value": "$muted"}, "value": "$series-0"}
    name = {"field": "name", "type": "nominal", "sort": {"field": "rank"}, "title": None}
    ends = {"x": create_axis("low", title), "x2": {"field": "high"}}
    tooltip = create_tooltip("name", "mean", "low", "high")
    return {
        **WIDE,
        "height": {"step": 19},
        "data": ROWS,
        "transform": [
            {"filter": "isValid(datum.mean)"},
            {"window": [{"op": "row_number", "as": "place"}], "sort": [{"field": "rank"}]},
            {"filter": f"datum.place <= {count}"},
        ],
        "encoding": {"y": name, "color": color, "opacity": FADED, "tooltip": tooltip},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends},
            {
                "params": [create_brush("y")],
                "mark": {"type": "point", "filled": True, "size": 55},
                "encoding": {"x": create_axis("mean", title)},
            },
        ],
        "usermeta": {"brush": "values"},
    }


def build_tradeoff(measure: str) -> Spec:
    """Return a measure against the chosen cost, with the Pareto front of the rows shown."""
    scale = {"type": "$costScale", "nice": False, "padding": 10}
    cost = {"field": "$cost", "type": "quantitative", "title": "$costTitle", "scale": scale}
    retriever = {"field": "retriever", "type": "nominal", "title": None}
    tooltip = [*create_tooltip("name", "mean"), {"field": "$cost", "title": "$costTitle", "format": ".4~g"}]
    return {
        **WIDE,
        "height": 320,
        "data": ROWS,
        "transform": [{"filter": "isValid(datum.mean) && isValid(datum['$cost']) && datum['$cost'] >= 0"}],
        "encoding": {"x": cost, "y": create_axis("mean", measure)},
        "layer": [
            {
                "transform": [{"filter": "datum.front"}],
                "mark": {"type": "line", "interpolate": "step-after", "color": "$muted", "strokeWidth": 1.5},
            },
            {
                "params": [create_brush("x", "y")],
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {"color": retriever, "shape": retriever, "opacity": FADED, "tooltip": tooltip},
            },
            {
                "transform": [{"filter": "datum.front"}],
                "mark": {"type": "text", "dy": -9, "color": "$ink"},
                "encoding": {"text": {"field": "rank"}},
            },
        ],
        "usermeta": {"brush": "ranges"},
    }


def build_effect(measure: str) -> Spec:
    """Return the mean of a measure at each value of the chosen setting, a line for each retriever."""
    x = {"field": "$x", "type": "$xType", "title": "$xTitle", "scale": {"zero": False}}
    retriever = {"field": "retriever", "type": "nominal", "title": None}
    mean = {"aggregate": "mean", **create_axis("mean", f"mean {measure}")}
    return {
        **WIDE,
        "height": 260,
        "data": ROWS,
        "transform": [{"filter": "isValid(datum.mean) && isValid(datum['$x'])"}],
        "mark": {"type": "line", "point": {"filled": True, "size": 60}},
        "encoding": {"x": x, "y": mean, "color": retriever, "shape": retriever, "tooltip": [x, mean]},
    }


def build_heat_map(measure: str) -> Spec:
    """Return the mean of a measure for each pair of values of two chosen settings."""
    x, y = ({"field": f"${axis}", "type": "ordinal", "title": f"${axis}Title"} for axis in "xy")
    mean = {"field": "average", "type": "quantitative", "title": measure, "format": ".4f"}
    return {
        **WIDE,
        "height": {"step": 32},
        "data": ROWS,
        "transform": [
            {"filter": "isValid(datum.mean) && isValid(datum['$x']) && isValid(datum['$y'])"},
            {
                "aggregate": [{"op": "mean", "field": "mean", "as": "average"}, {"op": "count", "as": "rows"}],
                "groupby": ["$x", "$y"],
            },
        ],
        "params": [create_brush("x", "y")],
        "mark": {"type": "rect", "stroke": "$card"},
        "encoding": {
            "x": {**x, "axis": {"labelAngle": 0}},
            "y": {**y, "sort": "descending"},
            "color": {**mean, "scale": {"scheme": "$heat", "zero": False}},
            "tooltip": [x, y, mean, {"field": "rows", "title": "combinations"}],
        },
        "usermeta": {"brush": "values"},
    }


def build_parallel(measure: str) -> Spec:
    """Return a line for each of the best rows through its settings; a brush selects the lines that pass it."""
    axis = {"field": "axis", "type": "nominal", "sort": None, "title": None, "axis": {"labelAngle": 0, "domain": False}}
    place = {"field": "place", "type": "quantitative", "axis": None, "scale": {"domain": [0, 1]}}
    mean = {"field": "mean", "type": "quantitative", "title": measure, "scale": {"scheme": "$heat", "zero": False}}
    return {
        **WIDE,
        "height": 320,
        "encoding": {"x": axis, "y": place},
        "layer": [
            {
                "data": {"name": "lines"},
                "params": [create_brush("x", "y")],
                "mark": {"type": "line", "strokeWidth": 1.4},
                "encoding": {"detail": {"field": "id"}, "color": mean, "opacity": FADED},
            },
            {
                "data": {"name": "ticks"},
                "mark": {"type": "text", "align": "left", "dx": 5, "color": "$ink", "fontSize": 11},
                "encoding": {"text": {"field": "label"}},
            },
        ],
        "usermeta": {"brush": "lines"},
    }


def build_differences(measure: str) -> Spec:
    """Return the differences between the two chosen systems, a bar for each query."""
    color = {"condition": {"test": "datum.value < 0", "value": "$bad"}, "value": "$good"}
    return {
        **WIDE,
        "height": 220,
        "data": {"name": "pairs"},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "place", "type": "ordinal", "axis": None},
            "y": create_axis("value", f"difference in {measure}"),
            "color": color,
            "tooltip": create_tooltip("query", "text", "value"),
        },
    }


def build_query_map(measure: str) -> Spec:
    """Return a measure for each query and each of some systems, the hardest queries first."""
    tooltip = create_tooltip("query", "text", "name", "value")
    value = {"field": "value", "type": "quantitative", "title": measure, "scale": {"scheme": "$heat"}}
    return {
        **WIDE,
        "height": {"step": 15},
        "data": {"name": "cells"},
        "mark": "rect",
        "encoding": {
            "x": {"field": "query", "type": "nominal", "sort": None, "title": "queries", "axis": {"labels": False}},
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "color": value,
            "tooltip": tooltip,
        },
    }


def build_losses() -> Spec:
    """Return the gold documents that each step loses, a bar for each of the pinned and the best combinations."""
    return draw_bars({"name": "losses"}, True, "gold documents lost", True)


def build_shares(rows: Sequence[Mapping[str, Any]], title: str) -> Spec:
    """Return shares (`name`, `share`, `low`, `high`) as bars, the largest first, with their intervals."""
    share = {"axis": {"format": "%"}, "title": title}
    ends = {"x": {"field": "low", "type": "quantitative", **share}, "x2": {"field": "high"}}
    return {
        **WIDE,
        "height": {"step": 22},
        "data": {"values": list(rows)},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "tooltip": create_tooltip("name", "share", "low", "high"),
        },
        "layer": [
            {
                "mark": {"type": "bar", "color": "$series-0", "opacity": 0.75},
                "encoding": {"x": {"field": "share", "type": "quantitative", **share}},
            },
            {"mark": {"type": "rule", "color": "$ink", "strokeWidth": 1.5}, "encoding": ends},
        ],
    }


def build_history(values: Sequence[tuple[int, float]], objective: str, larger: bool) -> Spec:
    """Return the first objective of each trial in order, and the best so far."""
    best = {"window": [{"op": "max" if larger else "min", "field": "value", "as": "best"}]}
    trial = {"field": "trial", "type": "quantitative", "axis": {"tickMinStep": 1, "format": "d"}}
    return {
        **WIDE,
        "height": 240,
        "data": {"values": [{"trial": trial, "value": value} for trial, value in values]},
        "transform": [{**best, "frame": [None, 0], "sort": [{"field": "trial"}]}],
        "encoding": {"x": trial},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "color": "$muted"},
                "encoding": {"y": create_axis("value", objective), "tooltip": create_tooltip("trial", "value")},
            },
            {
                "mark": {"type": "line", "interpolate": "step-after", "color": "$series-0"},
                "encoding": {"y": create_axis("best", objective)},
            },
        ],
    }


def build_front(trials: Sequence[Mapping[str, Any]], across: str, up: str, log: bool) -> Spec:
    """Return two objectives of the trials (`x`, `y`, `rank` on the front) with the Pareto front."""
    on_front = {"filter": "datum.rank"}
    x = {"field": "x", "type": "quantitative", "title": across, "scale": {"type": "log" if log else "linear"}}
    point = {"type": "point", "filled": True}
    return {
        **WIDE,
        "height": 280,
        "data": {"values": list(trials)},
        "encoding": {"x": x, "y": create_axis("y", up), "tooltip": create_tooltip("name", "x", "y")},
        "layer": [
            {"mark": {**point, "color": "$muted", "opacity": 0.45}},
            {"transform": [on_front], "mark": {**point, "color": "$series-0", "size": 70}},
            {
                "transform": [on_front],
                "mark": {"type": "text", "dy": -9, "color": "$ink"},
                "encoding": {"text": {"field": "rank"}},
            },
        ],
    }
