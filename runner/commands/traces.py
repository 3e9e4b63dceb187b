"""Read what agents recorded, and tell what they retrieved: events, metrics, reports, and a run each in MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from runner.agents.evaluation import Evaluation, Job, Reading
    from runner.agents.kept import Kept
    from runner.agents.runs.tasks import Tasks
    from runner.metrics.settings import MetricSettings
    from runner.reports.traces.report import TraceReport

FAILED = 1
"""The exit code where something went wrong with a run, whatever it recorded; the others are reported."""

_MOST_NAMED = 3  # of tasks that are not defined


@settings(frozen=True, config={"extra": "forbid"})
class TraceSettings:
    """What is read and where it is written: see `conf/traces.yaml`."""

    path: str | None = None
    file: str | None = None
    tasks: str | None = None
    output: str | None = None
    tools: str | None = None
    shell: bool = True
    sufficient_files: bool = False
    baseline: str | None = None
    timelines: int = Field(default=40, ge=0)
    workers: int | None = Field(default=None, ge=1)
    resume: bool = True
    log: bool = True


def main(cfg: DictConfig) -> int:
    """Print the events of one trace, or evaluate a folder of runs; return 1 where that failed for one of them."""
    from runner.agents.evaluation import Reading
    from runner.agents.events.sightings import create_observer
    from runner.agents.runs.tasks import tasks_in
    from runner.config.objects import ConfigError, build
    from runner.config.values import resolved, without_environment

    config = resolved(cfg)
    wanted = _settings(config)
    if (wanted.path is None) == (wanted.file is None):
        said = "both are given" if wanted.path is not None else "neither is given"
        raise ConfigError(f"path, file: {said}; say path=FOLDER for a folder of runs, or file=FILE for one trace")
    if wanted.tasks is not None and not Path(wanted.tasks).is_dir():
        raise ConfigError(f"tasks={wanted.tasks}: is not a folder; name the one that task definitions are in")
    metrics: MetricSettings = build(config["metrics"], "metrics")
    reading = Reading(wanted.tools, wanted.shell, wanted.sufficient_files, metrics.k_values)
    create_observer(reading.tools, reading.shell)  # a mistake in the tools is found before any work
    tasks = tasks_in([] if wanted.tasks is None else [Path(wanted.tasks)])
    if wanted.file is not None:
        return _print(Path(wanted.file), reading, tasks)
    return _evaluate(config, wanted, _recorded(without_environment(cfg, config)), reading, tasks, metrics)


def _print(file: Path, reading: Reading, tasks: Tasks) -> int:
    import sys

    from runner.agents.evaluation import events_of
    from runner.agents.events.document import written

    sys.stdout.buffer.writelines(written(events_of(file, reading, tasks)))
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
    from runner.agents.evaluation import Evaluation
    from runner.agents.events.document import load_events
    from runner.agents.kept import keeping
    from runner.config.objects import ConfigError, build
    from runner.reports import console
    from runner.reports.traces.comparisons import verdicts
    from runner.reports.traces.report import trace_report
    from runner.reports.traces.tables import (
        confidence_note,
        configurations_table,
        failures_table,
        heading,
        rewards_note,
    )
    from runner.tracking.background import BackgroundTracker

    if metrics.correction == "tukey":
        raise ConfigError("metrics.correction=tukey: is for all pairs of systems by one measure; take holm, bh or none")
    if not wanted.output:
        raise ConfigError("output: is required; name a folder for events, metrics and reports with output=FOLDER")
    output = Path(wanted.output)
    jobs = _jobs(Path(str(wanted.path)), output, tasks, reading)
    baseline = _baseline(wanted.baseline, {job.run.provenance.config_name for job in jobs})
    evaluation = Evaluation(reading, output)
    with (
        keeping(output) as kept,
        BackgroundTracker(build(config["tracking"], "tracking")) if wanted.log else nullcontext() as tracker,
    ):
        _note_undefined(jobs, wanted.tasks)
        if tracker:
            tracker.start()
        failures = _work(jobs, evaluation, kept, wanted)
        del jobs  # of ten thousand runs they take more memory than all that is told of them
        with console.Working("report"):
            report = trace_report(
                kept,
                failures,
                baseline,
                lambda name: load_events(evaluation.files(name)[0]),
                wanted.timelines,
                metrics,
            )
            files = _write(output, report)
        console.line(heading(report))
        for verdict in verdicts(report):
            console.paragraph(verdict)
        console.show_table(configurations_table(report))
        for note in filter(None, (confidence_note(report), rewards_note(report))):
            console.paragraph(note)
        console.show_table(failures_table(report), "Failed")
        if tracker:
            from runner.agent_tracking import log

            log(tracker, report, kept, metrics, {**recorded, "baseline": baseline}, files, output, wanted.resume)
    console.line(f"report: {output / 'report.html'}")
    return FAILED if failures else 0


def _settings(config: Mapping[str, Any]) -> TraceSettings:
    from runner.config.objects import ConfigError, build

    node = {each.name: config[each.name] for each in fields(TraceSettings)}
    try:
        made: TraceSettings = build({**node, "_target_": f"{__name__}.TraceSettings"}, "traces")
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("traces.")) from error
    return made


def _recorded(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that decide what is reported of a run, but for the baseline and the metrics."""
    import json

    names = ("path", "tasks", "tools", "shell", "sufficient_files", "timelines")
    given = {name: config[name] for name in names if config[name] is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}


def _jobs(path: Path, output: Path, tasks: Tasks, reading: Reading) -> list[Job]:
    """Return the runs in a folder, but for what lies in the output."""
    from runner.agents.evaluation import jobs_of
    from runner.agents.runs.layout import runs_in
    from runner.config.objects import ConfigError
    from runner.reports import console

    own = output.resolve()
    with console.Working("looking for runs"):
        found = [*runs_in(path, tasks)]
        jobs = [*jobs_of((run for run in found if not run.folder.resolve().is_relative_to(own)), reading)]
    if found and not jobs:
        raise ConfigError(f"output={output}: holds the runs of path={path}; name another folder")
    if not jobs:
        raise ConfigError(f"path={path}: holds no run of an agent, such as a folder with agent/trajectory.json")
    return jobs


def _note_undefined(jobs: Sequence[Job], where: str | None) -> None:
    """Say which tasks have no definition, without which nothing tells what should be found."""
    from runner.reports import console

    undefined = sorted({job.run.provenance.task_name for job in jobs if not job.run.tasks})
    if not undefined:
        return
    n = len({job.run.provenance.task_name for job in jobs})
    some = ", ".join(undefined[:_MOST_NAMED]) + ", ..." * (len(undefined) > _MOST_NAMED)
    by = "without tasks=FOLDER" if where is None else f"in tasks={where}, where a task's folder has its name"
    console.note(f"not measured: {len(undefined):,} of {n:,} tasks are not defined {by}: {some}")


def _baseline(named: str | None, configurations: Collection[str]) -> str:
    """Return the configuration that others are compared with; raises `ConfigError` for one that there is not."""
    from runner.config.objects import ConfigError, suggestion
    from runner.reports.traces.report import baseline_among

    if named is not None and named not in configurations:
        raise ConfigError(f"baseline={named}: no such configuration; {suggestion(named, configurations)}")
    return baseline_among(configurations) if named is None else named


def _work(jobs: Sequence[Job], evaluation: Evaluation, kept: Kept, wanted: TraceSettings) -> dict[str, str]:
    """Evaluate the runs that are not evaluated yet; whatever goes wrong with one costs no other.

    Return by the names of runs of which there is no artifact what went wrong.
    """
    from runner.agents.workers import each
    from runner.processes import processors
    from runner.reports import console

    todo = [job for job in jobs if not (wanted.resume and _is_done(job, evaluation, kept))]
    failures: dict[str, str] = {}
    workers = min(wanted.workers or processors(), max(1, len(todo)))

    def taken() -> Iterator[Job]:
        for job in todo:
            kept.forget(job.run.artifact)  # a kill may leave files of this time beside what was made last time
            yield job

    results = each(evaluation, taken(), workers)
    try:
        with console.Working("starting"):  # which takes its time, and says nothing of how long the rest will take
            first = list(islice(results, 1))
        with console.Progress(len(todo), len(jobs) - len(todo)) as progress:
            for job, made in chain(first, results):
                if isinstance(made, BaseException):
                    failures[job.run.artifact] = f"{type(made).__name__}: {' '.join(str(made).split())}"
                else:
                    kept.add(job.run.artifact, job.inputs.fingerprint, made)
                progress.advance(failed=isinstance(made, BaseException))
    except KeyboardInterrupt:
        console.note("what is done is kept: the same command goes on")
        raise
    kept.settle([job.run.artifact for job in jobs if job.run.artifact not in failures])
    return failures


def _is_done(job: Job, evaluation: Evaluation, kept: Kept) -> bool:
    name = job.run.artifact
    return kept.has(name, job.inputs.fingerprint) and all(file.is_file() for file in evaluation.files(name))


def _write(output: Path, report: TraceReport) -> dict[str, str]:
    """Write the reports, and return those that go with each configuration in MLflow."""
    from runner.agents.kept import writing
    from runner.agents.measures import summary
    from runner.reports.traces.markdown import trace_markdown
    from runner.reports.traces.page import trace_page
    from runner.reports.traces.report import report_json, summary_json

    files = {"report.md": trace_markdown(report), "report.html": trace_page(report)}
    with writing(output):
        (output / summary.FILE).write_bytes(summary_json(report))
        with (output / "report.json").open("wb") as file:
            file.writelines(report_json(report))
        for name, text in files.items():
            (output / name).write_text(text, encoding="utf-8")
    return files
