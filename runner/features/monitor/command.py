"""Measure the windows of traffic that are new, follow them, log them, and show what fell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from retrievers.files import replace_texts
from runner.comparison.notes import MANY_HOLES
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.qrels import read_qrels
from runner.datasets.settings import build_dataset
from runner.datasets.traffic.telemetry import Telemetry
from runner.features.monitor.changes import Drift, explain_fall, measure_drift
from runner.features.monitor.history import load_windows, log_windows
from runner.features.monitor.page import monitor_page
from runner.features.monitor.report import (
    Report,
    as_json,
    describe_power,
    heading,
    iter_sections,
    verdict,
    warn,
    windows_table,
)
from runner.features.monitor.settings import Monitoring, MonitorSettings
from runner.features.monitor.watching import QUALITY, Watching, watch
from runner.features.monitor.windows import Golden, WindowRecord, cut_windows, identify, record_window
from runner.metrics.measures import Measure
from runner.metrics.settings import MetricSettings
from runner.pages import console
from runner.pages.output import create_folder, writing_to
from runner.pages.progress import Status
from runner.pages.tables import Table
from runner.results.promotions import load_histories
from runner.tracking.settings import Tracking

ALARM = 1
"""The exit code if the newest window raises an alarm."""

SHOWN = 12
"""How many windows the terminal shows, the newest ones."""


def main(cfg: DictConfig) -> int:
    """Measure and log new windows; return 1 if the newest raises an alarm."""
    config = resolve_config(cfg)
    own = build_settings(MonitorSettings, config)
    metrics: MetricSettings = build(config["metrics"], "metrics")
    tracking: Tracking = build(config["tracking"], "tracking")
    has_log = own.log and not tracking.is_off
    source = _build_traffic(config)
    folder = None if own.output is None else create_folder(own.output)
    with Status("monitor") as status:
        status.note("reading judgments")
        golden = None if config.get("dataset") is None else Golden.of(build_dataset(config["dataset"])[0].load())
        people = _read_people(own, golden)
        status.note("reading traces")
        measure = metrics.primary_measure
        before = load_windows(tracking, own.monitor) if has_log else {}
        records, fresh, reading = _measure(source, golden, people, measure, own.monitor, before)
        status.note("comparing windows")
        report = _follow(records, own, str(measure), reading, golden)
        page = monitor_page(report)
    if folder is not None:
        with writing_to(str(folder)):
            replace_texts(folder, {"monitor.html": page})
    if has_log:
        log_windows(
            tracking, own.monitor, measure, records, report.watching, report.drifts,
            [record.start in fresh for record in records], page,
        )  # fmt: skip
    _show(report, folder)
    return ALARM if report.watching.fallen else 0


def _build_traffic(config: Mapping[str, Any]) -> Telemetry:
    source, _ = build_dataset(config["traffic"], config["plugins"], "traffic")
    if not isinstance(source, Telemetry):
        raise ConfigError("dataset@traffic: monitor reads traces; leave it at telemetry, and set traffic.path=TRACES")
    return source


def _read_people(own: MonitorSettings, golden: Golden | None) -> Golden | None:
    """Return the queries that people judged; raises `ConfigError` unless they are among the judged ones."""
    if own.people is None:
        return None
    if golden is None:
        raise ConfigError("people: corrects the judgments of dataset=, which is missing; set dataset=CHOICE")
    try:
        people = golden.replace_grades(read_qrels(files.resolve_path(own.people, "people")))
    except DatasetError as error:
        raise DatasetError(str(error).removeprefix("dataset.")) from None
    if not people.rows:
        raise ConfigError(f"people={own.people}: has gold of none of the {len(golden.rows):,} queries of the dataset")
    return people


def _measure(
    source: Telemetry,
    golden: Golden | None,
    people: Golden | None,
    measure: Measure,
    monitoring: Monitoring,
    before: Mapping[str, WindowRecord],
) -> tuple[list[WindowRecord], set[str], str]:
    """Return all comparable windows in order, which of them are new, and what was read; raises `ConfigError`."""
    with files.name_settings("traffic"):
        traffic = source.read_traffic()
    windows = cut_windows(traffic.searches, monitoring, time.time_ns())
    new = [
        record_window(start, end, searches, traffic, golden, people, measure, monitoring)
        for start, end, searches in windows
    ]
    judgments = identify(people or golden, measure)
    kept = {start: record for start, record in before.items() if record.judgments == judgments}
    if monitoring.since:
        kept = {start: record for start, record in kept.items() if start[:10] >= monitoring.since.isoformat()}
    fresh = {record.start for record in new if record.start not in kept}
    records = {**{record.start: record for record in new}, **kept}
    if left := len(before.keys() - records.keys()):
        console.note(
            f"earlier windows that are left out, as they have other judgments or are before monitor.since: {left:,}; "
            "pass the traces of all windows to measure them again"
        )
    if not records:
        raise ConfigError(
            f"traffic.path={source.path}: no window of {monitoring.window} is over in them ({traffic.describe()})"
        )
    for line in traffic.damage:
        console.note(line)
    return [records[start] for start in sorted(records)], fresh, traffic.describe()


def _follow(
    records: Sequence[WindowRecord], own: MonitorSettings, measure: str, reading: str, golden: Golden | None
) -> Report:
    monitoring, promoted = own.monitor, load_histories(Path(own.baselines))
    watching: Watching = watch(records, monitoring)
    baseline = list(records[: monitoring.baseline])
    drifts = [
        measure_drift([other for other in baseline if other is not record], record) if len(baseline) > 2 else Drift()
        for record in records
    ]
    quality = next((watched for watched in watching.watched if watched.name == QUALITY), None)
    start = quality.start if quality and quality.start < len(records) else len(records) - 1
    later = records[max(start, monitoring.baseline) :]
    fall = explain_fall(baseline, later) if later else None
    texts = dict(zip(golden.ids, golden.texts, strict=True)) if golden else {}
    holes = 1.0 if golden and golden.is_known_item else MANY_HOLES
    return Report(monitoring, measure, reading, records, watching, drifts, fall, texts, promoted, holes)


def _show(report: Report, folder: Path | None) -> None:
    console.document(lambda: as_json(report))
    for text in warn(report):
        console.note(text)
    table = windows_table(report)
    console.show_table(Table(table.columns, table.rows[-SHOWN:]), "Windows, oldest first")
    if report.watching.fallen:
        console.show_sections(iter_sections(report))
    console.line("")
    for text in (f"{heading(report)}.", *(f"{line}." for line in describe_power(report)), f"{verdict(report)}."):
        console.paragraph(text)
    if folder is not None:
        console.line(f"page: {folder / 'monitor.html'}")
