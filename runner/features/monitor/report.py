"""What a monitor found, as sentences, tables, plots and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from runner.comparison.notes import MANY_HOLES
from runner.features.monitor.changes import Drift, Fall
from runner.features.monitor.settings import Monitoring
from runner.features.monitor.watching import ANSWERED, QUALITY, WITHIN, Watched, Watching
from runner.features.monitor.windows import WindowRecord
from runner.pages.numbers import format_count, format_signed, gist, interval, milliseconds, number, percent, score
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table
from runner.results.promotions import PromotionRecord


@dataclass(frozen=True, eq=False)
class Report:
    """The windows of a monitor, oldest first, with what is watched, how far each drifted, and what fell.

    `reading` says what was read, `texts` are those of judged queries by id, and `promoted` are the promotions of each
    baseline by its name. From the share `holes` of unjudged hits on, a mean says little.
    """

    monitoring: Monitoring
    measure: str
    reading: str
    records: Sequence[WindowRecord]
    watching: Watching
    drifts: Sequence[Drift]
    fall: Fall | None
    texts: Mapping[str, str]
    promoted: Mapping[str, Sequence[PromotionRecord]] = field(default_factory=dict)
    holes: float = MANY_HOLES

    @property
    def names(self) -> list[str]:
        """Return the name of each window: the day or the minute on which it starts."""
        return [record.start[: 10 if self.monitoring.window.endswith("d") else 16] for record in self.records]

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
    if last.hole_rate >= report.holes:
        yield (
            f"{percent(last.hole_rate)} of the first hits of judged queries are not judged and count as "
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
    columns = [
        Column("window"), Column("searches", number, numeric=True, spare=3),
        Column("judged", number, numeric=True, spare=1), Column(report.measure, score, numeric=True),
        Column("95% interval", interval, numeric=True), Column("holes", percent, numeric=True, spare=2),
        Column("no result", percent, numeric=True), Column("failed", percent, numeric=True, spare=4),
        Column("p95 ms", milliseconds, numeric=True, spare=2), Column("query drift", number, numeric=True, spare=5),
        Column("score drift", number, numeric=True, spare=6), Column("evidence", number, numeric=True), Column("alarm"),
    ]  # fmt: skip
    evidence = [watched.course.evidence.tolist() for watched in report.watching.watched if watched.name == QUALITY]
    rows = []
    for i, (record, drift) in enumerate(zip(report.records, report.drifts, strict=True)):
        mean = record.quality
        rows.append([
            report.names[i], record.searches, mean.searches if mean else 0, mean.mean if mean else None,
            (mean.low, mean.high) if mean else None, record.hole_rate, record.no_result_rate, record.failed_rate,
            record.latency.get("p95"), drift.queries, drift.scores, evidence[0][i] if evidence else None,
            ", ".join(w.name for w in report.watching.watched if w.course.alarms[i]),
        ])  # fmt: skip
    return Table(columns, rows)


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
    yield ReportSection("What an alarm means", [f"{t}." for t in (*warn(report), *describe_power(report))], "time")
    if (fall := report.fall) is not None:
        scope = (
            f"{fall.first[:10]} to {fall.last[:10]} against the baseline: {score(fall.before)} to {score(fall.after)}."
        )
        columns = [Column("part"), Column(f"change of {report.measure}", format_signed, numeric=True)]
        parts = Table(columns, list(fall.parts.items()))
        yield ReportSection("What changed", parts, "fall", f"{scope} The parts add up.", printed="table")
        yield ReportSection("Queries that got worse", _queries_table(report, fall), "fall", printed="table")
        note = "Gold that was served for these queries before, and for them no longer."
        columns = [Column("document", least=20), Column("queries", number, numeric=True)]
        gone = Table(columns, list(fall.gone.items()))
        yield ReportSection("Gold no longer served", gone, "fall", note, printed="table")
        note = "Words whose share of searches has grown beyond chance (z of the log-odds at least 3)."
        columns = [Column("word"), Column("before", percent, numeric=True), Column("after", percent, numeric=True)]
        words = Table(columns, [[word, *shares] for word, shares in fall.words.items()])
        yield ReportSection("New kinds of queries", words, "fall", note, printed="table")
    yield ReportSection("All windows", windows_table(report), "windows")


def _queries_table(report: Report, fall: Fall) -> Table:
    columns = [
        Column("query", gist, least=24), Column("before", score, numeric=True), Column("after", score, numeric=True),
        Column("searches", number, numeric=True, spare=1), Column("contribution", format_signed, numeric=True),
        Column("gold no longer served", lambda names: gist(", ".join(names), 60), spare=2, least=20),
    ]  # fmt: skip
    rows = [
        [report.texts.get(c.query, c.query), c.mean_before, c.mean_after, c.after, c.contribution, c.gone]
        for c in fall.queries
    ]
    return Table(columns, rows)


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
