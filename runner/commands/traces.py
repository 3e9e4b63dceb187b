"""Read the traces of agents and measure what they retrieved: events, measures, reports, and runs in MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from runner.agents.artifact_store import ArtifactStore
    from runner.agents.evaluation import Evaluation, Job, Reading
    from runner.agents.runs.tasks import Tasks
    from runner.metrics.settings import MetricSettings
    from runner.reports.traces.report import TraceReport

FAILED = 1
"""The exit code if a run could not be evaluated; the other runs are reported."""

_MAX_NAMES = 3  # the largest number of undefined tasks to name in a message


@settings(frozen=True, config={"extra": "forbid"})
class TraceSettings:
    """The settings of the command: see `conf/traces.yaml`."""

    path: LocalPath | None = None
    file: LocalPath | None = None
    tasks: LocalPath | None = None
    output: LocalPath | None = None
    tools: LocalPath | None = None
    shell: bool = True
    sufficient_files: bool = False
    baseline: str | None = None
    timelines: int = Field(default=40, ge=0)
    workers: int | None = Field(default=None, ge=1)
    resume: bool = True
    log: bool = True


def main(cfg: DictConfig) -> int:
    """Print the events of one trace, or evaluate a folder of runs; return 1 if a run could not be evaluated."""
    from runner.agents.evaluation import Reading
    from runner.agents.events.sightings import create_observer
    from runner.agents.runs.tasks import find_tasks
    from runner.config.objects import ConfigError, build
    from runner.config.values import resolve_config, without_environment

    config = resolve_config(cfg)
    wanted = _settings(config)
    if (wanted.path is None) == (wanted.file is None):
        problem = "both are set" if wanted.path is not None else "neither is set"
        raise ConfigError(
            f"path, file: {problem}; set either path=FOLDER for a folder of runs, or file=FILE for one trace"
        )
    if wanted.tasks is not None and not Path(wanted.tasks).is_dir():
        raise ConfigError(f"tasks={wanted.tasks}: no such folder; set the folder of task definitions")
    metrics: MetricSettings = build(config["metrics"], "metrics")
    reading = Reading(wanted.tools, wanted.shell, wanted.sufficient_files, metrics.k_values)
    create_observer(reading.tools, reading.shell)  # raises an error before any work if the file of tools is invalid
    tasks = find_tasks([] if wanted.tasks is None else [Path(wanted.tasks)])
    if wanted.file is not None:
        return _print(Path(wanted.file), reading, tasks)
    return _evaluate(config, wanted, _record_settings(without_environment(cfg, config)), reading, tasks, metrics)


def _print(file: Path, reading: Reading, tasks: Tasks) -> int:
    import sys

    from runner.agents.evaluation import read_events
    from runner.agents.events.document import iter_json

    sys.stdout.buffer.writelines(iter_json(read_events(file, reading, tasks)))
    sys.stdout.buffer.write(b"\n")
    return 0


def _evaluate(
    config: Mapping[str, Any],
    wanted: TraceSettings,
    recorded: Mapping[str, str],
    reading: Reading,
    tasks: Tasks,
    metrics: MetricSettings,
) -> int:
    import orjson

    from runner.agents.artifact_store import open_artifacts
    from runner.agents.evaluation import Evaluation
    from runner.agents.events.document import load_document
    from runner.config.objects import ConfigError, build
    from runner.config.values import without_secrets
    from runner.reports import console
    from runner.reports.progress import Status
    from runner.reports.traces.comparisons import describe_decisions
    from runner.reports.traces.report import build_report, summary_json
    from runner.reports.traces.tables import (
        confidence_note,
        configurations_table,
        failures_table,
        heading,
        rewards_note,
    )
    from runner.tracking.background import BackgroundTracker

    if metrics.correction == "tukey":
        raise ConfigError(
            "metrics.correction=tukey: only corrects tests of all pairs of systems on a single measure; choose "
            "holm, bh or none"
        )
    if not wanted.output:
        raise ConfigError("output: is required; set output=FOLDER for events, measures and reports")
    output = Path(wanted.output)
    jobs = _jobs(Path(str(wanted.path)), output, tasks, reading)
    baseline = _baseline(wanted.baseline, {job.run.provenance.config_name for job in jobs})
    evaluation = Evaluation(reading, output)
    with (
        open_artifacts(output) as artifacts,
        BackgroundTracker(build(config["tracking"], "tracking")) if wanted.log else nullcontext() as tracker,
    ):
        _note_undefined(jobs, wanted.tasks)
        if tracker:
            tracker.start()
        failures = _evaluate_jobs(jobs, evaluation, artifacts, wanted)
        del jobs  # the jobs of ten thousand runs take more memory than the report
        with Status("report"):
            report = build_report(
                artifacts,
                failures,
                baseline,
                lambda name: load_document(evaluation.files(name)[0]),
                wanted.timelines,
                metrics,
                without_secrets,
            )
            files = _write(output, report)
        summary = orjson.Fragment(summary_json(report))
        console.document(lambda: {"report": str(output / "report.html"), "summary": summary})
        console.line(heading(report))
        for decision in describe_decisions(report):
            console.paragraph(decision)
        console.show_table(configurations_table(report))
        for note in filter(None, (confidence_note(report), rewards_note(report))):
            console.paragraph(note)
        console.show_table(failures_table(report), "Failed")
        if tracker:
            from runner.agent_tracking import log_configurations

            reported = {**recorded, "baseline": baseline}
            log_configurations(tracker, report, artifacts, metrics, reported, files, output, wanted.resume)
    console.line(f"report: {output / 'report.html'}")
    return FAILED if failures else 0


def _settings(config: Mapping[str, Any]) -> TraceSettings:
    from runner.config.objects import build_settings

    return build_settings(TraceSettings, config)


def _record_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that a report depends on, except for the baseline and the metrics."""
    import json

    names = ("path", "tasks", "tools", "shell", "sufficient_files", "timelines")
    given = {name: config[name] for name in names if config[name] is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}


def _jobs(path: Path, output: Path, tasks: Tasks, reading: Reading) -> list[Job]:
    """Return the runs in a folder, without those in the output folder."""
    from runner.agents.evaluation import iter_jobs
    from runner.agents.runs.layout import find_runs
    from runner.config.objects import ConfigError
    from runner.reports.progress import Status

    own = output.resolve()
    with Status("searching for runs"):
        runs = [*find_runs(path, tasks)]
        jobs = [*iter_jobs((run for run in runs if not run.folder.resolve().is_relative_to(own)), reading)]
    if runs and not jobs:
        raise ConfigError(f"output={output}: contains the runs of path={path}; choose another folder")
    if not jobs:
        raise ConfigError(
            f"path={path}: the folder contains no agent runs; a run is, for example, a folder with "
            "agent/trajectory.json"
        )
    return jobs


def _note_undefined(jobs: Sequence[Job], where: str | None) -> None:
    """Print which tasks have no definition, and therefore no ground truth."""
    from runner.reports import console

    undefined = sorted({job.run.provenance.task_name for job in jobs if not job.run.tasks})
    if not undefined:
        return
    n = len({job.run.provenance.task_name for job in jobs})
    some = ", ".join(undefined[:_MAX_NAMES]) + ", ..." * (len(undefined) > _MAX_NAMES)
    reason = "tasks=FOLDER is not set" if where is None else f"tasks={where} has no folder of this name"
    console.note(
        f"{len(undefined):,} of {n:,} tasks are not measured, because they have no definition ({reason}): {some}"
    )


def _baseline(named: str | None, configurations: Collection[str]) -> str:
    """Return the configuration that others are compared with; raises `ConfigError` if it does not exist."""
    from runner.config.objects import ConfigError, suggestion
    from runner.reports.traces.report import select_baseline

    if named is not None and named not in configurations:
        raise ConfigError(f"baseline={named}: no such configuration; {suggestion(named, configurations)}")
    return select_baseline(configurations) if named is None else named


def _evaluate_jobs(
    jobs: Sequence[Job], evaluation: Evaluation, artifacts: ArtifactStore, wanted: TraceSettings
) -> dict[str, str]:
    """Evaluate the runs that are not finished, and return the errors of failed runs by name."""
    from runner.agents.workers import run_in_workers
    from runner.processes import processors
    from runner.reports import console
    from runner.reports.progress import Progress, Status

    todo = [job for job in jobs if not (wanted.resume and _is_finished(job, evaluation, artifacts))]
    failures: dict[str, str] = {}
    workers = min(wanted.workers or processors(), max(1, len(todo)))

    def start_jobs() -> Iterator[Job]:
        for job in todo:
            artifacts.remove(job.run.artifact)  # a killed process may leave new files beside an old artifact
            yield job

    results = run_in_workers(evaluation, start_jobs(), workers)
    try:
        with Status("starting"):  # the time of the first run does not predict that of the others
            first = list(islice(results, 1))
        with Progress(len(todo), len(jobs) - len(todo)) as progress:
            for job, result in chain(first, results):
                if isinstance(result, BaseException):
                    failures[job.run.artifact] = f"{type(result).__name__}: {' '.join(str(result).split())}"
                else:
                    artifacts.add(job.run.artifact, job.inputs.fingerprint, result)
                progress.advance(failed=isinstance(result, BaseException))
    except KeyboardInterrupt:
        console.note("finished work is saved; run the same command to resume")
        raise
    artifacts.compact([job.run.artifact for job in jobs if job.run.artifact not in failures])
    return failures


def _is_finished(job: Job, evaluation: Evaluation, artifacts: ArtifactStore) -> bool:
    name = job.run.artifact
    return artifacts.has(name, job.inputs.fingerprint) and all(file.is_file() for file in evaluation.files(name))


def _write(output: Path, report: TraceReport) -> dict[str, str]:
    """Write the reports, and return those that are logged in MLflow with each configuration."""
    from runner.agents.artifact_store import check_output
    from runner.agents.measures import summary
    from runner.reports.traces.markdown import render_markdown
    from runner.reports.traces.page import render_page
    from runner.reports.traces.report import report_json, summary_json

    files = {"report.md": render_markdown(report), "report.html": render_page(report)}
    with check_output(output):
        (output / summary.FILE).write_bytes(summary_json(report))
        with (output / "report.json").open("wb") as file:
            file.writelines(report_json(report))
        for name, text in files.items():
            (output / name).write_text(text, encoding="utf-8")
    return files
