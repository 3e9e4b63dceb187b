"""A load test as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.features.load.load_test import LoadResult
from runner.features.load.report import tables
from runner.features.load.report.sections import iter_sections
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.specs import WIDE, Spec, create_axis, create_tooltip

TEMPLATE = Path(__file__).with_name("page.html.jinja")


def load_page(result: LoadResult) -> str:
    """Return the page of a load test."""
    plots = list(_list_plots(result))
    data: dict[str, Any] = {
        "kind": "load",
        "columns": [],
        "plots": [plot.to_dict() for plot in plots],
        "queries": {"ids": [], "texts": [], "types": [], "expected": []},
    }
    return render_explorer(
        TEMPLATE, data, sections=list(iter_sections(result)), result=result, load_tables=tables, figures=plots
    )


def _list_plots(result: LoadResult) -> Iterator[Plot]:
    if any(rate.latency.curve for rate in result.rates):
        text = "How slow a share of the requests is: both axes are logarithmic, one line per rate."
        yield Plot("percentiles", "Latency by percentile", text, _draw_percentiles(result))
    points = [
        {"name": f"{rate.rate:g}/s", "x": rate.latency.p99, "y": rate.quality}
        for rate in result.rates
        if rate.latency.p99 == rate.latency.p99 and rate.quality == rate.quality
    ]
    if points:
        text = "What a user gets at each rate: failed and late answers count 0."
        title = f"{result.primary} under load against p99"
        yield Plot("quality", title, text, _draw_quality(points, result))


def _name_rates(result: LoadResult) -> Spec:
    """Return the colors of rates, which are the same in both plots."""
    domain = [f"{rate.rate:g}/s" for rate in result.rates]
    return {"field": "name", "type": "nominal", "sort": None, "title": None, "scale": {"domain": domain}}


def _draw_quality(points: list[dict[str, Any]], result: LoadResult) -> Spec:
    """Return the quality at each rate against its 99th percentile."""
    x = {"field": "x", "type": "quantitative", "title": "p99 in ms", "scale": {"type": "log", "nice": True}}
    return {
        **WIDE,
        "height": 280,
        "data": {"values": points},
        "encoding": {"x": x, "y": create_axis("y", result.primary)},
        "layer": [
            {
                "mark": {"type": "point", "size": 90, "filled": True},
                "encoding": {"color": _name_rates(result), "tooltip": create_tooltip("name", "x", "y")},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "color": "$ink"},
                "encoding": {"text": {"field": "name"}},
            },
        ],
    }


def _draw_percentiles(result: LoadResult) -> Spec:
    """Return the latency against the share of slower requests, a line for each rate."""
    values = [
        {"name": f"{rate.rate:g}/s", "x": 1 / (1 - share / 100), "percentile": f"p{share:.5g}", "value": ms}
        for rate in result.rates
        for share, ms in rate.latency.curve
        if share < 100
    ]
    labels = "datum.value >= 10 ? 'p' + (100 - 100 / datum.value) : datum.value == 2 ? 'p50' : 'p0'"
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "percentile",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": [1, 2, 10, 100, 1000, 10000, 100000], "labelExpr": labels},
    }
    y = {"field": "value", "type": "quantitative", "title": "ms", "scale": {"type": "log", "nice": True}}
    return {
        **WIDE,
        "height": 280,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "monotone", "point": {"size": 14}},
        "encoding": {
            "x": x,
            "y": y,
            "color": _name_rates(result),
            "tooltip": create_tooltip("name", "percentile", "value"),
        },
    }
