"""The windows of a monitor in MLflow: a run for each, whose record later windows are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from runner.config.objects import ConfigError
from runner.features.monitor.changes import Drift
from runner.features.monitor.page import baselines_page
from runner.features.monitor.settings import Monitoring
from runner.features.monitor.watching import ANSWERED, QUALITY, Watching
from runner.features.monitor.windows import WindowRecord
from runner.metrics.measures import Measure
from runner.results.promotions import load_histories
from runner.tracking.fetching import Runs
from runner.tracking.logged import LoggedRun
from runner.tracking.record import DatasetMade, metric_name, now
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker

KIND = "monitor"
FILE, PAGE = "window.json", "monitor.html"

_RECORD = TypeAdapter(WindowRecord)


def load_windows(tracking: Tracking, monitoring: Monitoring) -> dict[str, WindowRecord]:
    """Return the windows that a monitor of this name and length has logged, by their start; raises `ConfigError`."""
    runs, records = Runs(tracking), {}
    for run in runs.list_kind(KIND):
        if run.name.startswith(_name_run(monitoring, "")):
            try:
                record = _RECORD.validate_json(runs.read_file(run, FILE))
            except (OSError, ValidationError) as error:
                raise ConfigError(
                    f"run {run.id}: {FILE} cannot be read ({type(error).__name__}); delete the run"
                ) from None
            records[record.start] = record
    return {start: records[start] for start in sorted(records)}


def list_pages(runs: Runs, baselines: Path) -> dict[str, Callable[[], str]]:
    """Return the newest page of each monitor, and that of promoted baselines, by title, as a function."""
    newest = {run.name.rpartition(" ")[0]: run for run in sorted(runs.list_kind(KIND), key=lambda run: run.name)}
    pages: dict[str, Callable[[], str]] = {
        f"{name} over time": partial(runs.read_file, run, PAGE) for name, run in newest.items()
    }
    promoted = load_histories(baselines)
    return {**pages, "Baselines over time": partial(baselines_page, promoted)} if promoted else pages


def log_windows(
    tracking: Tracking,
    monitoring: Monitoring,
    measure: Measure,
    records: Sequence[WindowRecord],
    watching: Watching,
    drifts: Sequence[Drift],
    new: Sequence[bool],
    page: str,
) -> list[LoggedRun]:
    """Log the new windows, each with its figures and its evidence; the newest has the page."""
    entries = []
    for i, record in enumerate(records):
        if new[i]:
            alarms = ", ".join(watched.name for watched in watching.watched if watched.course.alarms[i])
            tags = {"kind": KIND, "monitor": monitoring.name, "window": record.start, "alarms": alarms}
            files = {
                FILE: _RECORD.dump_json(record).decode(),
                **({PAGE: page} if i == len(records) - 1 else {}),
            }
            parameters = {"monitor": monitoring.name, "window": monitoring.window, "measure": str(measure)}
            figures = _list_figures(measure, record, watching, i, drifts[i])
            name = _name_run(monitoring, record.start)
            entries.append(DatasetMade(name, now(), parameters, figures, files, {k: v for k, v in tags.items() if v}))
    return Tracker(tracking).log(entries) if entries else []


def _name_run(monitoring: Monitoring, start: str) -> str:
    return f"{monitoring.name} {monitoring.window} {start}"


def _list_figures(measure: Measure, record: WindowRecord, watching: Watching, i: int, drift: Drift) -> dict[str, float]:
    primary = metric_name(str(measure))
    figures: dict[str, float] = {"traffic/searches": record.searches, "traffic/users": record.users}
    if record.quality:
        figures |= {primary: record.quality.mean, f"{primary}_error": record.quality.error}
        figures["traffic/judged"] = record.quality.searches
    figures |= {"hole_rate": record.hole_rate, "no_result_rate": record.no_result_rate}
    figures["failed_rate"] = record.failed_rate
    figures |= {f"latency/{name}_ms": value for name, value in record.latency.items()}
    figures |= {f"slice/{name}": estimate.mean for name, estimate in record.slices.items()}
    figures |= {"drift/queries": drift.queries, "drift/scores": drift.scores}
    titles = {QUALITY: f"evidence/{primary}", ANSWERED: "evidence/answered"}
    for watched in watching.watched:
        figures[titles.get(watched.name, f"evidence/{watched.name}")] = float(watched.course.evidence[i])
    return {name: value for name, value in figures.items() if math.isfinite(value)}
