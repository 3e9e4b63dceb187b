"""Read the traces of agents and measure what they retrieved: events, measures, reports, and runs in MLflow."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from omegaconf import DictConfig

from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config, without_environment
from runner.features.traces.evaluation import Reading, read_events
from runner.features.traces.events.document import iter_json
from runner.features.traces.events.sightings import create_observer
from runner.features.traces.runs.tasks import Tasks, find_tasks
from runner.features.traces.settings import TraceSettings
from runner.metrics.settings import MetricSettings
from runner.pages.control import escape_json
from runner.statistics.corrections import CORRECTIONS

FAILED = 1
"""The exit code if a run could not be evaluated; the other runs are reported."""


def main(cfg: DictConfig) -> int:
    """Print the events of one trace, or evaluate a folder of runs; return 1 if a run could not be evaluated."""
    config = resolve_config(cfg)
    own = build_settings(TraceSettings, config)
    _check_paths(own)
    metrics: MetricSettings = build(config["metrics"], "metrics")
    reading = Reading(own.tools, own.shell, own.sufficient_files, metrics.k_values)
    create_observer(reading.tools, reading.shell)  # raises an error before any work if the file of tools is invalid
    tasks = find_tasks([] if own.tasks is None else [Path(own.tasks)])
    if own.file is not None:
        return _print_events(Path(own.file), reading, tasks)
    from runner.features.traces.pipeline import (
        evaluate_runs,  # loads reports and tracking, which takes as long as one trace
    )

    _check_evaluation(own)
    tracking = build(config["tracking"], "tracking") if own.log else None
    recorded = _record_settings(without_environment(cfg, config))
    return FAILED if evaluate_runs(own, reading, tasks, metrics, tracking, recorded) else 0


def _check_paths(own: TraceSettings) -> None:
    """Raise `ConfigError` unless one of a folder and a file is set, and the folder of tasks exists."""
    if (own.path is None) == (own.file is None):
        problem = "both are set" if own.path is not None else "neither is set"
        raise ConfigError(
            f"path, file: {problem}; set either path=FOLDER for a folder of runs, or file=FILE for one trace"
        )
    if own.tasks is not None and not Path(own.tasks).is_dir():
        raise ConfigError(f"tasks={own.tasks}: no such folder; set the folder of task definitions")


def _check_evaluation(own: TraceSettings) -> None:
    """Raise `ConfigError` if a folder of runs cannot be evaluated with these settings."""
    try:
        CORRECTIONS[own.statistics.correction].check_p_values()
    except ValueError as error:
        raise ConfigError(f"statistics.{error}") from None
    if not own.output:
        raise ConfigError("output: is required; set output=FOLDER for events, measures and reports")


def _print_events(file: Path, reading: Reading, tasks: Tasks) -> int:
    for part in iter_json(read_events(file, reading, tasks)):
        sys.stdout.buffer.write(escape_json(part.decode()).encode())
    sys.stdout.buffer.write(b"\n")
    return 0


def _record_settings(config: Mapping[str, object]) -> dict[str, str]:
    """Return the settings that a report depends on, except for the baseline, the metrics and the statistics."""
    names = ("path", "tasks", "tools", "shell", "sufficient_files", "timelines")
    given = {name: config[name] for name in names if config[name] is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
