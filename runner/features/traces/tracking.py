"""Logs each configuration of agents with ground truth as a run in MLflow, unless an identical run exists.

A file beside the reports records what was logged. All figures come from the report and from `results`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from retrievers.files import replace_file
from retrievers.store import fingerprint
from runner.evaluation.result import ResultError
from runner.features.traces.artifact_store import ArtifactStore, check_output
from runner.features.traces.measures import summary
from runner.features.traces.report.report import TraceReport, configuration_json
from runner.features.traces.results import result_of
from runner.metrics.settings import MetricSettings
from runner.pages import console
from runner.statistics.settings import Statistics
from runner.tracking.background import BackgroundTracker
from runner.tracking.fetching import Runs
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking

FILE = "logged.json"


@dataclass(frozen=True)
class LoggedConfiguration:
    """The id of a configuration's run, and a hash of all its inputs."""

    run: Annotated[str, Field(pattern="^[0-9a-f]+$")]
    inputs: str


_RECORD = TypeAdapter(dict[str, LoggedConfiguration])


def log_configurations(
    tracker: BackgroundTracker,
    report: TraceReport,
    artifacts: ArtifactStore,
    metrics: MetricSettings,
    statistics: Statistics,
    settings: Mapping[str, str],
    files: Mapping[str, str],
    output: Path,
    resume: bool,
) -> dict[str, str]:
    """Log each configuration that has ground truth as an evaluation of its tasks, with the reports; return their runs.

    `settings` are the settings, by name, that a report depends on. With `resume`, a configuration is not logged again
    if its artifacts and settings are the same and its run still exists. Raises `ConfigError`.
    """
    names: dict[str, list[str]] = {}
    for name in sorted(report.tasks):
        names.setdefault(report.tasks[name]["provenance"]["config_name"], []).append(name)
    before = _load(output / FILE) if resume else {}
    logged: dict[str, LoggedConfiguration] = {}
    for name in report.summary.by_configuration:
        own = artifacts.fingerprint(names[name])
        inputs = fingerprint(
            own, repr(asdict(metrics)), repr(asdict(statistics)), repr(tracker.tracking), repr(settings)
        )
        if name in before and before[name].inputs == inputs and _exists(before[name], tracker.tracking):
            logged[name] = before[name]
            console.line(f"run: {logged[name].run} ({name}; unchanged)")
            continue
        try:
            result = result_of(name, (artifacts[task] for task in names[name]), metrics, statistics)
        except ResultError as error:
            console.note(f"not logged: {error}")
            continue
        parameters = {
            "retriever": name,
            **{f"agent.{key}": str(value) for key, value in result.config["agent"].items()},
            **{f"traces.{key}": value for key, value in settings.items()},
        }
        attached = {**files, summary.FILE: configuration_json(report, name).decode()}
        run = tracker.log_at_once(Finished(result, parameters, attached))
        logged[name] = LoggedConfiguration(run.id, inputs)
        _save(output, {**before, **logged})  # now, so that the run is not logged again after Ctrl-C
        if run.id:  # empty with tracking=none
            console.line(f"run: {run.id} ({name})")
    _save(output, logged)
    return {name: of.run for name, of in logged.items()}


def _load(file: Path) -> dict[str, LoggedConfiguration]:
    """Return what was logged; if the file is damaged, print a note and return {}."""
    try:
        return _RECORD.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        console.note(f"{file}: damaged; logging all configurations again")
        return {}


def _save(output: Path, logged: Mapping[str, LoggedConfiguration]) -> None:
    """Record what was logged, atomically."""
    with check_output(output), replace_file(output / FILE) as new:
        new.write_bytes(_RECORD.dump_json(dict(logged), indent=2))


def _exists(logged: LoggedConfiguration, tracking: Tracking) -> bool:
    """Return whether a run exists, and its artifacts too if they are local files."""
    for run in Runs(tracking).like(logged.run):
        if run.id == logged.run and (run.folder is None or run.folder.exists()):
            return True
    return False
