"""What a monitor found, as sentences, tables, plots and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.features.monitor.changes import Drift, Fall
from runner.features.monitor.settings import Monitoring
from runner.features.monitor.watching import ANSWERED, QUALITY, WITHIN, Watched, Watching
from runner.features.monitor.windows import WindowMean, WindowRecord
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.specs import WIDE, Spec, create_tooltip
from runner.pages.numbers import (
    format_count,
    format_signed,
    gist,
    interval,
    milliseconds,
    missing,
    number,
    percent,
    score,
)
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table

TEMPLATE = Path(__file__).with_name("page.html.jinja")

MANY_HOLES = 0.2
"""The share of unjudged hits among the first ones from which a mean says little."""


@dataclass(frozen=True, eq=False)
class Report:
    """The windows of a monitor, oldest first, with what is watched, how far each drifted, and what fell.

    `reading` says what was read, and `texts` are those of judged queries by id.
    """

    monitoring: Monitoring
    measure: str
    reading: str
    records: Sequence[WindowRecord]
    watching: Watching
    drifts: Sequence[Drift]
    fall: Fall | None
    texts: Mapping[str, str]

    def find(self, name: str) -> Watched | None:
        """Return what is known of a measure that is watched."""
        return next((watched for watched in self.watching.watched if watched.name == name), None)

    def title(self, name: str) -> str:
        """Return the name of a watched measure for people."""
        titles = {QUALITY: self.measure, ANSWERED: "Searches with a result"}
        return titles.get(name, f"{self.measure} of {name}")


def heading(report: Report) -> str:
    """Return what was watched in a line."""
    last = report.records[-1]
    judged = last.quality.searches if last.quality else 0
    windows = format_count(len(report.records), "window", "windows")
    return (
        f"{report.monitoring.name}: {windows} of {report.monitoring.window} until {last.end[:10]}; in the newest one, "
        f"{judged:,} of {last.searches:,} searches are of judged queries"
    )


def verdict(report: Report) -> str:
    """Return whether the newest window raises an alarm, and why none can be raised yet."""
    if fallen := report.watching.fallen:
        return "ALARM: " + "; ".join(_describe_fall(report, watched) for watched in fallen)
    if not report.watching.watched:
        n = len(report.records)
        return (
            f"No alarm is possible yet: the first {report.monitoring.baseline} windows are the baseline, and there "
            f"{'is' if n == 1 else 'are'} {n}"
        )
    return f"No alarm: {', '.join(report.title(watched.name) for watched in report.watching.watched)} did not fall"


def _describe_fall(report: Report, watched: Watched) -> str:
    mean, low, high = watched.since
    start = report.records[min(watched.start, len(report.records) - 1)].start[:10]
    return (
        f"{report.title(watched.name)} has fallen since the window of {start}, to {mean:.3f} (95% interval "
        f"{interval((low, high))}) from {watched.course.baseline:.3f}; evidence "
        f"{number(float(watched.course.evidence[-1]))}, an alarm from {number(watched.course.threshold)}"
    )


def describe_power(report: Report) -> Iterator[str]:
    """Yield what an alarm means, and how likely a fall is to be noticed, for each measure that is watched."""
    drop, length = report.monitoring.drop, report.monitoring.run_length
    for watched in report.watching.watched:
        errors = sorted(estimate.error for estimate in watched.estimates if estimate)
        yield (
            f"{report.title(watched.name)}: a fall of {drop:g} is noticed within {WITHIN} windows with a probability "
            f"of {percent(watched.chance)} (half of the windows have a standard error up to "
            f"{score(errors[len(errors) // 2])})"
        )
    if report.watching.watched:
        yield (
            f"Without a change, one of these raises a false alarm in {length:,} windows on average, if windows are "
            "independent"
        )
    for name, n in report.watching.left_out.items():
        yield f"{name} is not watched: it has enough judged searches in only {format_count(n, 'window', 'windows')}"


def warn(report: Report) -> Iterator[str]:
    """Yield why the newest figures say little."""
    last = report.records[-1]
    if last.hits and last.unjudged / last.hits > MANY_HOLES:
        yield (
            f"{percent(last.unjudged / last.hits)} of the first hits of judged queries are not judged and count as "
            "irrelevant: judge them, or check that judgments and traces name documents in the same way"
        )
    if not any(record.quality for record in report.records):
        yield (
            "no search is of a judged query, so quality is not known: set dataset= to judged queries, such as those "
            "that mine source=telemetry draws from these traces"
        )
    if last.recorded < last.searches - last.failed:
        yield f"{last.searches - last.failed - last.recorded:,} searches of the newest window have no recorded hits"


def windows_table(report: Report) -> Table:
    """Return the windows, oldest first."""
    quality, columns = report.find(QUALITY), _window_columns(report)
    rows = [
        [
            record.start[:10] if report.monitoring.window.endswith("d") else record.start[:16],
            record.searches,
            record.quality.searches if record.quality else 0,
            record.quality.mean if record.quality else None,
            (record.quality.low, record.quality.high) if record.quality else None,
            record.unjudged / record.hits if record.hits else None,
            record.empty / record.recorded if record.recorded else None,
            record.failed / record.searches,
            record.latency.get("p95"),
            drift.queries,
            drift.scores,
            float(quality.course.evidence[i]) if quality else None,
            ", ".join(w.name for w in report.watching.watched if w.course.alarms[i]),
        ]
        for i, (record, drift) in enumerate(zip(report.records, report.drifts, strict=True))
    ]
    return Table(columns, rows)


def _window_columns(report: Report) -> list[Column]:
    return [
        Column("window"),
        Column("searches", number, numeric=True, spare=3),
        Column("judged", number, numeric=True, spare=1),
        Column(report.measure, score, numeric=True),
        Column("95% interval", interval, numeric=True),
        Column("holes", percent, numeric=True, spare=2),
        Column("no result", percent, numeric=True),
        Column("failed", percent, numeric=True, spare=4),
        Column("p95 ms", milliseconds, numeric=True, spare=2),
        Column("query drift", number, numeric=True, spare=5),
        Column("score drift", number, numeric=True, spare=6),
        Column("evidence", number, numeric=True),
        Column("alarm"),
    ]


def slices_table(report: Report) -> Table:
    """Return each slice that is watched: its baseline, its mean since the most likely start of a fall, its evidence."""
    columns = [
        Column("slice", least=20), Column("baseline", score, numeric=True), Column("newest", score, numeric=True),
        Column("95% interval", interval, numeric=True), Column("searches", number, numeric=True),
        Column("evidence", number, numeric=True), Column("alarm from", number, numeric=True),
    ]  # fmt: skip
    rows = [
        [
            w.name, w.course.baseline, last.mean if last else None, (last.low, last.high) if last else None,
            last.searches if last else 0, float(w.course.evidence[-1]), w.course.threshold,
        ]
        for w in report.watching.watched
        if w.name not in (QUALITY, ANSWERED)
        for last in [w.estimates[-1]]
    ]  # fmt: skip
    return Table(columns, rows)


def iter_sections(report: Report) -> Iterator[ReportSection]:
    """Yield the sections of the page; those on what fell are printed, too."""
    yield ReportSection("Slices", slices_table(report), "time", printed="table")
    if (fall := report.fall) is not None:
        scope = (
            f"{fall.first[:10]} to {fall.last[:10]} against the baseline: {score(fall.before)} to {score(fall.after)}."
        )
        parts = Table(
            [Column("part"), Column(f"change of {report.measure}", format_signed, numeric=True)],
            [[name, value] for name, value in fall.parts.items()],
        )
        yield ReportSection("What changed", parts, "fall", f"{scope} The parts add up.", printed="table")
        yield ReportSection("Queries that got worse", _queries_table(report, fall), "fall", printed="table")
        note = "Gold that was served for these queries before, and for them no longer."
        gone = Table(
            [Column("document", least=20), Column("queries", number, numeric=True)],
            [[*row] for row in fall.gone.items()],
        )
        yield ReportSection("Gold no longer served", gone, "fall", note, printed="table")
        words = Table(
            [Column("word"), Column("before", percent, numeric=True), Column("after", percent, numeric=True)],
            [[word, *shares] for word, shares in fall.words.items()],
        )
        note = "Words whose share of searches has grown beyond chance (z of the log-odds at least 3)."
        yield ReportSection("New kinds of queries", words, "fall", note, printed="table")
    yield ReportSection("All windows", windows_table(report), "windows")


def _queries_table(report: Report, fall: Fall) -> Table:
    columns = [
        Column("query", gist, least=24), Column("before", score, numeric=True), Column("after", score, numeric=True),
        Column("searches", number, numeric=True, spare=1), Column("contribution", format_signed, numeric=True),
        Column("gold no longer served", lambda names: gist(", ".join(names), 60), spare=2, least=20),
    ]  # fmt: skip
    return Table(
        columns,
        [
            [report.texts.get(c.query, c.query), c.mean_before, c.mean_after, c.after, c.contribution, c.gone]
            for c in fall.queries
        ],
    )


def monitor_page(report: Report) -> str:
    """Return the page of a monitor as one self-contained HTML file."""
    plots = list(_list_plots(report))
    data: dict[str, Any] = {
        "kind": "monitor", "columns": [], "plots": [plot.to_dict() for plot in plots],
        "queries": {"ids": [], "texts": [], "types": [], "expected": []},
    }  # fmt: skip
    sections = list(iter_sections(report))
    return render_explorer(
        TEMPLATE, data, sections=sections, report=report, heading=heading(report), verdict=verdict(report),
        notes=[*warn(report), *describe_power(report)], figures=plots, last=report.records[-1],
    )  # fmt: skip


def _list_plots(report: Report) -> Iterator[Plot]:
    columns = {QUALITY: [r.quality for r in report.records], ANSWERED: [r.answered for r in report.records]}
    texts = {
        QUALITY: "The mean over searches of judged queries, with its 95 % interval.",
        ANSWERED: "The share of searches with at least one hit; a failed search has none.",
    }
    rule = "The line is the baseline, crosses are alarms, and dashes are new releases."
    for name, estimates in columns.items():
        if any(estimates):
            spec = _draw_course(report, report.find(name), estimates)
            yield Plot(name, report.title(name), f"{texts[name]} {rule}", spec, wide=True)
    values = [
        {"window": record.start[:16], "name": name, "value": value}
        for record in report.records
        for name, value in record.latency.items()
    ]
    if values:
        yield Plot("latency", "Latency", "Milliseconds of searches, by percentile.", _draw_lines(values, "ms"))
    drifts = [
        {"window": record.start[:16], "name": name, "value": value}
        for record, drift in zip(report.records, report.drifts, strict=True)
        for name, value in (("queries", drift.queries), ("scores", drift.scores))
        if not missing(value)
    ]
    if drifts:
        text = "The distance of words of queries, and of scores of first hits, from the baseline; 1 is usual."
        yield Plot("drift", "Drift", text, _draw_lines(drifts, "usual distances"))


def _list_releases(report: Report) -> list[dict[str, str]]:
    """Return the windows in which a release is seen first, except for those of the first window."""
    seen = {*report.records[0].releases}
    marks = []
    for record in report.records[1:]:
        new = [name for name in record.releases if name not in seen]
        seen |= {*new}
        marks += [{"window": record.start[:16], "release": name} for name in new]
    return marks


def _draw_course(report: Report, watched: Watched | None, estimates: Sequence[WindowMean | None]) -> Spec:
    values = [
        {
            "window": record.start[:16], "value": e.mean, "low": e.low, "high": e.high, "searches": e.searches,
            "alarm": bool(watched and watched.course.alarms[i]),
        }
        for i, (record, e) in enumerate(zip(report.records, estimates, strict=True))
        if e
    ]  # fmt: skip
    x = {"field": "window", "type": "temporal", "title": None, "axis": {"format": "%d %b"}}
    y: Spec = {"type": "quantitative", "scale": {"zero": False}}
    tooltip = create_tooltip("window", "value", "low", "high", "searches")
    layers: list[Spec] = [
        {"mark": {"type": "errorband", "color": "$series-0"}, "encoding": {
            "x": x, "y": {**y, "field": "low", "title": None}, "y2": {"field": "high"}}},
        {"mark": {"type": "line", "color": "$series-0", "point": True},
         "encoding": {"x": x, "y": {**y, "field": "value", "title": None}, "tooltip": tooltip}},
        {"transform": [{"filter": "datum.alarm"}],
         "mark": {"type": "point", "shape": "cross", "size": 140, "color": "$bad", "filled": True, "angle": 45},
         "encoding": {"x": x, "y": {**y, "field": "value"}, "tooltip": tooltip}},
        {"data": {"values": _list_releases(report)}, "mark": {"type": "rule", "strokeDash": [4, 3], "color": "$muted"},
         "encoding": {"x": x, "tooltip": create_tooltip("window", "release")}},
    ]  # fmt: skip
    if watched is not None:
        rule = {"type": "rule", "color": "$muted"}
        layers.append({"data": {"values": [{"baseline": watched.course.baseline}]}, "mark": rule,
                       "encoding": {"y": {**y, "field": "baseline"}}})  # fmt: skip
    return {**WIDE, "height": 240, "data": {"values": values}, "layer": layers}


def _draw_lines(values: Sequence[Mapping[str, Any]], title: str) -> Spec:
    name = {"field": "name", "type": "nominal", "sort": None, "title": None}
    return {
        **WIDE, "height": 200, "data": {"values": list(values)}, "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "window", "type": "temporal", "title": None, "axis": {"format": "%d %b"}},
            "y": {"field": "value", "type": "quantitative", "title": title},
            "color": name, "shape": name, "tooltip": create_tooltip("window", "name", "value"),
        },
    }  # fmt: skip


def as_json(report: Report) -> dict[str, Any]:
    """Return the report for JSON."""
    windows = [
        {**asdict(record), "drift": asdict(drift), "words": len(record.words)}
        for record, drift in zip(report.records, report.drifts, strict=True)
    ]
    watched = [
        {
            "name": w.name, "baseline": w.course.baseline, "baseline_error": w.course.baseline_error,
            "alarm_from": w.course.threshold, "evidence": w.course.evidence, "chance": w.chance,
            "alarms": [report.records[i].start for i in w.course.alarms.nonzero()[0].tolist()],
        }
        for w in report.watching.watched
    ]  # fmt: skip
    return {
        "measure": report.measure,
        "reading": report.reading,
        "windows": windows,
        "watched": watched,
        "alarms": [w.name for w in report.watching.fallen],
        "fall": None if report.fall is None else asdict(report.fall),
        "drift": asdict(report.drifts[-1]),
    }
