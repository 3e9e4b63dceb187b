"""Runs in MLflow of what agents did: of each configuration with ground truth one, as long as nothing of it is new.

What was logged is written down beside the reports. It makes no figure, and knows nothing of traces.
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
from runner.agent_results import result_of
from runner.agents.kept import Kept, writing
from runner.agents.measures import summary
from runner.metrics.settings import MetricSettings
from runner.reports import console
from runner.reports.traces.report import TraceReport, configuration_json
from runner.result import ResultError
from runner.tracking.background import BackgroundTracker
from runner.tracking.fetching import Runs
from runner.tracking.logged import local_path
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking

FILE = "logged.json"


@dataclass(frozen=True)
class Logged:
    """The run that a configuration has, by its id, and a hash of all that it is of."""

    run: Annotated[str, Field(pattern="^[0-9a-f]+$")]
    of: str


_RECORD = TypeAdapter(dict[str, Logged])


def log(
    tracker: BackgroundTracker,
    report: TraceReport,
    kept: Kept,
    metrics: MetricSettings,
    settings: Mapping[str, str],
    files: Mapping[str, str],
    output: Path,
    resume: bool,
) -> None:
    """Log each configuration with ground truth as an evaluation of its tasks, together with the reports.

    `settings`, by name, are those that decide what a run reports. With `resume`, a configuration is not logged again if
    its artifacts and settings are unchanged and its run still exists. Raises `ConfigError`.
    """
    names: dict[str, list[str]] = {}
    for name in sorted(report.tasks):
        names.setdefault(report.tasks[name]["provenance"]["config_name"], []).append(name)
    before = _read(output / FILE) if resume else {}
    logged: dict[str, Logged] = {}
    for name in report.summary["by_configuration"]:
        same = fingerprint(kept.fingerprint(names[name]), repr(asdict(metrics)), repr(tracker.tracking), repr(settings))
        if name in before and before[name].of == same and _is_there(before[name], tracker.tracking):
            logged[name] = before[name]
            console.line(f"run: {logged[name].run} ({name}; nothing is new)")
            continue
        try:
            result = result_of(name, (kept[task] for task in names[name]), metrics)
        except ResultError as error:
            console.note(f"not logged: {error}")
            continue
        parameters = {
            "retriever": name,
            **{f"agent.{key}": str(value) for key, value in result.config["agent"].items()},
            **{f"traces.{key}": value for key, value in settings.items()},
        }
        own = {**files, summary.FILE: configuration_json(report, name).decode()}
        (run,) = tracker.ask("log", [Finished(result, parameters, own)])
        logged[name] = Logged(run.id, same)
        _write(output, {**before, **logged})  # at once: after Ctrl-C, it is not logged again
        console.line(f"run: {run.id} ({name})")
    _write(output, logged)
    pairs = [(logged.get(row["baseline_config"]), logged.get(row["other_config"])) for row in report.comparisons]
    for first, other in [(first, other) for first, other in pairs if first and other][:1]:
        words = [f"baseline={first.run}", f"candidate={other.run}", *tracker.tracking.overrides()]
        console.line(f"compare: python -m runner compare {' '.join(words)}")


def _read(file: Path) -> dict[str, Logged]:
    """Return what was logged; nothing where that is not known, which is said if there is a file."""
    try:
        return _RECORD.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        console.note(f"{file}: is damaged, and does not tell what was logged; all is logged again")
        return {}


def _write(output: Path, logged: Mapping[str, Logged]) -> None:
    with writing(output), replace_file(output / FILE) as new:
        new.write_bytes(_RECORD.dump_json(dict(logged), indent=2))


def _is_there(logged: Logged, tracking: Tracking) -> bool:
    """Tell whether a run was not deleted, nor its artifacts where they are files of this machine."""
    for run in Runs(tracking).like(logged.run):
        folder = local_path(run.artifacts)
        if run.id == logged.run and (folder is None or folder.exists()):
            return True
    return False
