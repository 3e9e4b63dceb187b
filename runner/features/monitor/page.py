"""The page of a monitor: its plots over time, and the queries of each window; and that of promoted baselines alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from runner.features.monitor.changes import pool_queries
from runner.features.monitor.report import Report, heading, iter_sections, verdict
from runner.features.monitor.watching import ANSWERED, QUALITY
from runner.features.monitor.windows import WindowMean
from runner.pages.explorer.data import DataColumn
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.specs import WIDE, Spec, create_tooltip
from runner.pages.numbers import format_count, format_signed, gist, interval, missing, number, score, score4
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table
from runner.results.lookup import find_run_id
from runner.results.promotions import PromotionRecord

TEMPLATE = Path(__file__).with_name("page.html.jinja")

_FORMATS: Mapping[str, Callable[[float | None], str]] = {"score": score, "signed": format_signed, "integer": number}
_Y: Spec = {"type": "quantitative", "scale": {"zero": False}}


def monitor_page(report: Report) -> str:
    """Return the page of a monitor as one self-contained HTML file."""
    plots, columns = list(_list_plots(report)), build_columns(report)
    data: dict[str, Any] = {
        "kind": "windows", "noun": "queries", "order": "contribution", "example": f'window = "{report.names[-1]}"',
        "columns": [column.to_dict() for column in columns], "plots": [plot.to_dict() for plot in plots],
    }  # fmt: skip
    rows = list(zip(*(column.values for column in columns), strict=True))
    newest = [row for row in rows if row[0] == rows[0][0]]
    shown = [Column(c.title, _FORMATS.get(c.format, str), numeric=c.format in _FORMATS) for c in columns]
    sections = [*iter_sections(report), *([describe_promoted(report.promoted)] if report.promoted else [])]
    title = f"{report.monitoring.name.capitalize()} over time"
    return render_explorer(
        TEMPLATE, data, sections=sections, title=title, about=f"{heading(report)}. {report.reading}", report=report,
        verdict=verdict(report), figures=plots, newest=Table(shown, newest),
    )  # fmt: skip


def baselines_page(promoted: Mapping[str, Sequence[PromotionRecord]]) -> str:
    """Return the page of promoted baselines, whose runs are linked, for a server that shows runs."""
    about = f"{format_count(len(promoted), 'baseline', 'baselines')}: every promotion, and the run that it is from."
    section = describe_promoted(promoted, is_live=True)
    return render_explorer(
        TEMPLATE, {"kind": "promotions"}, sections=[section], title="Baselines over time", about=about, report=None,
        figures=[],
    )  # fmt: skip


def build_columns(report: Report) -> list[DataColumn]:
    """Return the judged queries of each window as rows, the newest window first."""
    baseline = pool_queries(report.records[: report.monitoring.baseline])
    rows = [
        (name, report.texts.get(query, query), own.mean, before.mean if before else None,
         own.searches / total * (own.mean - before.mean) if before else None, own.searches,
         ", ".join(sorted({*before.gold} - {*own.gold})) if before else "")
        for name, record in reversed(list(zip(report.names, report.records, strict=True)))
        for total in [sum(own.searches for own in record.queries.values())]
        for query, own in record.queries.items()
        for before in [baseline.get(query)]
    ]  # fmt: skip
    window, text, value, before, contribution, searches, gone = zip(*rows, strict=True) if rows else [()] * 7
    return [
        DataColumn("window", "window", "window", window, kind="setting"),
        DataColumn("text", "query", "query", text),
        DataColumn("value", "value", report.measure, value, "score"),
        DataColumn("before", "before", "baseline", before, "score"),
        DataColumn("contribution", "contribution", "contribution", contribution, "signed"),
        DataColumn("searches", "searches", "searches", searches, "integer"),
        DataColumn("gone", "gone", "gold no longer served", gone),
    ]


def _list_plots(report: Report) -> Iterator[Plot]:
    columns = {QUALITY: [r.quality for r in report.records], ANSWERED: [r.answered for r in report.records]}
    texts = {
        QUALITY: "The mean over searches of judged queries, with its 95 % interval. Click a window to see its queries.",
        ANSWERED: "The share of searches with at least one hit; a failed search has none.",
    }
    rule = "The line is the baseline, crosses are alarms, and dashes are new releases and promoted baselines."
    for name, estimates in columns.items():
        if any(estimates):
            spec = _draw_course(report, name, estimates)
            yield Plot(name, report.title(name), f"{texts[name]} {rule}", spec, wide=True)
    latencies = [record.latency for record in report.records]
    if any(latencies):
        spec = _draw_lines(report, latencies, "ms")
        yield Plot("latency", "Latency", "Milliseconds of searches, by percentile.", spec)
    drifts = [{"queries": drift.queries, "scores": drift.scores} for drift in report.drifts]
    if not all(missing(value) for drift in drifts for value in drift.values()):
        text = "The distance of words of queries, and of scores of first hits, from the baseline; 1 is usual."
        yield Plot("drift", "Drift", text, _draw_lines(report, drifts, "usual distances"))


def _draw_course(report: Report, name: str, estimates: Sequence[WindowMean | None]) -> Spec:
    """Return a measure over windows; a click on one shows its queries."""
    watched = report.find(name)
    values = [
        {
            "window": window, "start": record.start[:16], "value": e.mean, "low": e.low, "high": e.high,
            "searches": e.searches, "alarm": bool(watched and watched.course.alarms[i]),
        }
        for i, (window, record, e) in enumerate(zip(report.names, report.records, estimates, strict=True))
        if e
    ]  # fmt: skip
    y, tooltip = {**_Y, "field": "value", "title": None}, create_tooltip("window", "value", "low", "high", "searches")
    cross = {"type": "point", "shape": "cross", "size": 140, "color": "$bad", "filled": True, "angle": 45}
    dashes = {"type": "rule", "strokeDash": [4, 3], "color": "$muted"}
    baseline = [{"baseline": watched.course.baseline}] if watched else []
    x = _place("start")
    layers: list[Spec] = [  # the marks that can be clicked are on top
        {"data": {"values": list(_list_marks(report))}, "mark": dashes,
         "encoding": {"x": _place("at"), "tooltip": create_tooltip("at", "mark")}},
        {"data": {"values": baseline}, "mark": {"type": "rule", "color": "$muted"},
         "encoding": {"y": {**y, "field": "baseline"}}},
        {"mark": {"type": "errorband", "color": "$series-0"},
         "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "line", "color": "$series-0"}, "encoding": {"x": x, "y": y}},
        {"mark": {"type": "point", "filled": True, "size": 70, "color": "$series-0", "cursor": "pointer"},
         "encoding": {"x": x, "y": y, "tooltip": tooltip}},
        {"transform": [{"filter": "datum.alarm"}], "mark": {**cross, "cursor": "pointer"},
         "encoding": {"x": x, "y": y, "tooltip": tooltip}},
    ]  # fmt: skip
    return {
        **WIDE, "height": 240, "data": {"values": values}, "layer": layers,
        "usermeta": {"opens": {"field": "window", "tab": "queries"}},
    }  # fmt: skip


def _list_marks(report: Report) -> Iterator[dict[str, str]]:
    """Yield the windows in which a release is seen first, except for the first window, and promotions since then."""
    seen = {*report.records[0].releases}
    for record in report.records[1:]:
        for name in record.releases:
            if name not in seen:
                yield {"at": record.start[:16], "mark": name}
        seen |= {*record.releases}
    for name, history in report.promoted.items():
        for promotion in history:
            if promotion.at.isoformat() >= report.records[0].start:
                yield {"at": promotion.at.isoformat()[:16], "mark": f"baseline {name}: {promotion.run}"}


def _draw_lines(report: Report, figures: Sequence[Mapping[str, float]], title: str) -> Spec:
    values = [
        {"window": window, "start": record.start[:16], "name": name, "value": value}
        for window, record, own in zip(report.names, report.records, figures, strict=True)
        for name, value in own.items()
        if not missing(value)
    ]
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    return {
        **WIDE, "height": 200, "data": {"values": values}, "mark": {"type": "line", "point": True},
        "encoding": {
            "x": _place("start"), "y": {"field": "value", "type": "quantitative", "title": title},
            "color": name, "shape": name, "tooltip": create_tooltip("window", "name", "value"),
        },
    }  # fmt: skip


def _place(field: str) -> Spec:
    return {"field": field, "type": "temporal", "title": None, "axis": {"format": "%d %b"}}


def describe_promoted(promoted: Mapping[str, Sequence[PromotionRecord]], is_live: bool = False) -> ReportSection:
    """Return the history of promoted baselines, oldest first; if it `is_live`, runs are linked to their pages."""

    def link(source: str) -> str:
        run = find_run_id(source) if is_live else ""
        return Markup('<a href="/show/{0}/">{1}</a>').format(run, source) if run else source

    records = [(name, record) for name, history in promoted.items() for record in history]
    columns = [
        Column("baseline"), Column("promoted"), Column("run"), Column("from", link), Column("by"),
        Column("commit"), Column("dataset"), Column("measure"), Column("mean", score4, numeric=True),
        Column("interval", interval, numeric=True),
    ]  # fmt: skip
    rows = [
        [
            name, r.at.isoformat(" ", "minutes")[:16], r.run, r.source, r.by, r.git_commit[:8],
            r.dataset_fingerprint[:8], r.primary, r.mean,
            None if r.low is None or r.high is None else (r.low, r.high),
        ]
        for name, r in records
    ]  # fmt: skip
    text = "Each point is a promotion. Lines join points of the same dataset and measure."
    plot = Plot("promoted", "Promoted baselines", text, _draw_promoted(records, is_live), wide=True)
    note = "The results that promote saved as baselines, with the commit of the code that was evaluated."
    return ReportSection("Promotions", Table(columns, rows), "time", note, plot=plot)


def _draw_promoted(records: Sequence[tuple[str, PromotionRecord]], is_live: bool) -> Spec:
    values = [
        {
            "name": name, "at": r.at.isoformat()[:16], "value": r.mean, "low": r.low, "high": r.high, "run": r.run,
            "commit": r.git_commit[:8], "by": gist(r.by, 40), "line": f"{name} {r.dataset_fingerprint} {r.primary}",
            "page": f"/show/{find_run_id(r.source)}/" if is_live and find_run_id(r.source) else None,
        }
        for name, r in records
    ]  # fmt: skip
    color, line = {"field": "name", "type": "nominal", "sort": None, "title": None}, {"field": "line"}
    tooltip = create_tooltip("name", "at", "value", "low", "high", "run", "commit", "by")
    x, y = _place("at"), {**_Y, "field": "value", "title": None}
    return {
        **WIDE, "height": 240, "data": {"values": values},
        "encoding": {"x": x, "color": color, "detail": line},
        "layer": [
            {"mark": "line", "encoding": {"y": y}},
            {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 80},
             "encoding": {"y": y, "tooltip": tooltip, **({"href": {"field": "page"}} if is_live else {})}},
        ],
    }  # fmt: skip
