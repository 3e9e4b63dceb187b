"""A load test as sentences, tables, plots, Markdown and a page; the same input gives the same bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.features.load.load_test import LoadResult
from runner.features.load.measuring import BEHIND, PERCENTILES
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.specs import WIDE, Spec, create_axis, create_tooltip
from runner.pages.markdown import escape, render_sections
from runner.pages.numbers import milliseconds, number, percent, score4
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table

TEMPLATE = Path(__file__).with_name("page.html.jinja")

LEAST_RANGE = 0.02
"""Smaller differences in quality under load would look large on an axis of their own."""

_STOPPED = {
    "interrupted": "the test was interrupted",
    "load.max_requests": "the limit load.max_requests was reached",
    "load.max_seconds": "the limit load.max_seconds was reached",
    "load.max_failed": "more requests than load.max_failed allows failed or timed out",
}


def heading(result: LoadResult) -> str:
    """Return the title of the report."""
    return f"Load test of {result.target}"


def verdict(result: LoadResult) -> str:
    """Return the highest rate that the service kept up with, and where it saturates."""
    partial = f"Partial result: {_STOPPED[result.stopped]}. " if result.stopped else ""
    if not result.rates:
        return f"{partial}No rate was measured."
    if math.isnan(result.saturation):
        kept = f"It kept up with {result.highest_kept_up:g} requests/s"
        return f"{partial}{kept}; the rate at which it saturates was not reached."
    return f"{partial}It saturates at {result.saturation:.3g} answers/s."


def describe_load(result: LoadResult) -> Iterator[str]:
    """Yield what the figures say, and how they were measured."""
    own = result.settings
    yield verdict(result)
    if late := [rate.rate for rate in result.rates if rate.is_limited_by_generator]:
        yield (
            f"At {', '.join(f'{rate:g}' for rate in late)} requests/s the generator sent requests late: the latencies "
            "are also its own. Run it on a machine with free processors, or lower the rate."
        )
    if any(rate.waited for rate in result.rates):
        yield "Some requests waited for a free connection; this is part of their latency."
    yield (
        f"{result.requests:,} requests were sent, with the queries of {result.dataset} ({result.split}, "
        f"{result.queries:,}), {'equally often' if own.frequency is None else f'as often as {own.frequency} says'}, "
        f"{'at random times (Poisson)' if own.arrivals == 'poisson' else 'at equal intervals'}. Latency counts from "
        f"when a request was due to its complete answer; a late one counts as {own.timeout_s:g} s, a failed one does "
        f"not count. {result.primary} under load is the mean over requests, with 0 for failed and late ones."
    )
    yield (
        "The service saturates at the most answers per second that were measured, if at any rate it fell behind: the "
        f"open requests grew, in the second half, by more than {BEHIND:.0%} of those that arrived, or more timed out."
    )


def iter_sections(result: LoadResult) -> Iterator[ReportSection]:
    """Yield the sections in their order."""
    marks = [
        {"name": result.target, "rate": name, "label": name, "x": rate.latency.p99, "y": rate.quality}
        for rate in result.rates
        for name in [f"{rate.rate:g}/s"]
        if not math.isnan(rate.latency.p99 + rate.quality)
    ]
    text = "What a user gets at each rate: failed and late answers count 0."
    quality = Plot("quality", f"{result.primary} under load against p99", text, draw_quality(marks, result.primary))
    yield ReportSection("Rates", rates_table(result), "report", plot=quality if marks else None)
    yield ReportSection("Errors", errors_table(result), "report", printed="table")
    text = "How slow a share of the requests is: both axes are logarithmic, one line per rate."
    curves = Plot("percentiles", "Latency by percentile", text, _draw_percentiles(result))
    is_drawn = any(rate.latency.curve for rate in result.rates)
    yield ReportSection("Requests and generator", requests_table(result), "report", plot=curves if is_drawn else None)
    yield ReportSection("Method", list(describe_load(result))[1:], "report")


def rates_table(result: LoadResult) -> Table:
    """Return a row for each rate."""
    columns = [
        Column("requests/s", number, numeric=True), Column("answers/s", number, numeric=True, spare=3),
        Column("kept up", lambda value: "yes" if value else "no", spare=4),
        *(Column(f"{name.replace('_', '.')} ms", milliseconds, numeric=True) for name in PERCENTILES),
        Column("failed", percent, numeric=True, spare=1), Column("late", percent, numeric=True, spare=1),
        Column(f"{result.primary} under load", score4, numeric=True),
        Column("of answers", score4, numeric=True, spare=5),
    ]  # fmt: skip
    rows = [
        [
            r.rate, r.throughput, r.kept_up, *(getattr(r.latency, name) for name in PERCENTILES), r.share(r.failed),
            r.share(r.timed_out), r.quality, r.quality_answered,
        ]
        for r in result.rates
    ]  # fmt: skip
    return Table(columns, rows)


def requests_table(result: LoadResult) -> Table:
    """Return the requests of each rate and how the generator sent them."""
    names = ("rate", "requests", "answered", "failed", "timed_out", "unfinished", "short", "waited", "lag_p99", "cpu")
    titles = ("requests/s", "requests", "answered", "failed", "late", "open at the end", "short", "waited")
    columns = [
        *(Column(title, number, numeric=True) for title in titles),
        Column("generator late, p99 ms", milliseconds, numeric=True),
        Column("its processor", percent, numeric=True),
    ]
    return Table(columns, [[getattr(rate, name) for name in names] for rate in result.rates])


def errors_table(result: LoadResult) -> Table:
    """Return the errors, most frequent first."""
    counts: Counter[str] = Counter()
    for rate in result.rates:
        counts.update(rate.errors)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return Table([Column("error", least=20), Column("requests", number, numeric=True)], ordered)


def load_markdown(result: LoadResult) -> str:
    """Return the report."""
    title, conclusion = escape(heading(result)), escape(verdict(result))
    return "\n\n".join([f"# {title}", f"**{conclusion}**", *render_sections(iter_sections(result))]) + "\n"


def load_page(result: LoadResult) -> str:
    """Return the report as one self-contained HTML file."""
    return render_explorer(
        TEMPLATE, {"kind": "load"}, sections=iter_sections(result), result=result, heading=heading(result),
        verdict=verdict(result),
    )  # fmt: skip


def draw_quality(marks: Sequence[Mapping[str, Any]], primary: str) -> Spec:
    """Return the quality under load (`y`) against p99 in ms (`x`), in a color for each `rate`.

    Points have their `label`; those of a rate that are on its `front` are joined.
    """
    x = {"field": "x", "type": "quantitative", "title": "p99 in ms", "scale": {"type": "log", "nice": True}}
    on_front, values = [{"filter": "datum.front"}], [point["y"] for point in marks]
    y = create_axis("y", f"{primary} under load")
    if max(values, default=0) - min(values, default=0) < LEAST_RANGE:
        y["scale"] = {"zero": True}
    return {
        **WIDE, "height": 280, "data": {"values": list(marks)},
        "encoding": {"x": x, "y": y, "color": _name_rates(marks)},
        "layer": [
            {"transform": on_front, "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}},
            {"mark": {"type": "point", "size": 90, "filled": True},
             "encoding": {"tooltip": create_tooltip("name", "rate", "x", "y")}},
            {"mark": {"type": "text", "align": "left", "dx": 8, "color": "$ink"},
             "encoding": {"text": {"field": "label"}, "color": None}},
        ],
    }  # fmt: skip


def _draw_percentiles(result: LoadResult) -> Spec:
    """Return the latency against the share of slower requests, a line for each rate."""
    values = [
        {"rate": f"{rate.rate:g}/s", "x": 1 / (1 - share / 100), "percentile": f"p{share:.5g}", "value": ms}
        for rate in result.rates
        for share, ms in rate.latency.curve
        if share < 100
    ]
    labels = "datum.value >= 10 ? 'p' + (100 - 100 / datum.value) : datum.value == 2 ? 'p50' : 'p0'"
    ticks = {"values": [1, 2, 10, 100, 1000, 10000, 100000], "labelExpr": labels}
    x = {"field": "x", "type": "quantitative", "title": "percentile", "scale": {"type": "log", "nice": False}}
    y = {"field": "value", "type": "quantitative", "title": "ms", "scale": {"type": "log", "nice": True}}
    return {
        **WIDE, "height": 280, "data": {"values": values},
        "mark": {"type": "line", "interpolate": "monotone", "point": {"size": 14}},
        "encoding": {
            "x": {**x, "axis": ticks}, "y": y, "color": _name_rates(values),
            "tooltip": create_tooltip("rate", "percentile", "value"),
        },
    }  # fmt: skip


def _name_rates(values: Sequence[Mapping[str, Any]]) -> Spec:
    """Return the colors of rates, in their order."""
    domain = list(dict.fromkeys(value["rate"] for value in values))
    return {"field": "rate", "type": "nominal", "sort": None, "title": None, "scale": {"domain": domain}}
