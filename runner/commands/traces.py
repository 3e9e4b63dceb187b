"""Read what agents recorded, and tell what they retrieved: events, metrics, reports, and a run each in MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.agents.evaluation import Evaluation, Job, Reading
    from runner.agents.kept import Kept
    from runner.agents.runs.layout import RunFolder
    from runner.agents.runs.tasks import Tasks
    from runner.metrics.settings import MetricSettings
    from runner.reports.traces.report import TraceReport
    from runner.tracking.background import BackgroundTracker

FAILED = 1
"""The exit code where something went wrong with a run, whatever it recorded; the others are reported."""

_MOST_NAMED = 3  # of tasks that are not defined
SUMMARY = "run_retrieval_summary.json"
LOGGED = "logged.json"
"""What was logged of each configuration: the run in MLflow, and a hash of all that it is of."""


@settings(frozen=True, config={"extra": "forbid"})
class TraceSettings:
    """What is read and where it is written: see `conf/traces.yaml`."""

    path: str | None = None
    file: str | None = None
    tasks: str | None = None
    output: str | None = None
    tools: str | None = None
    shell: bool = True
    baseline: str | None = None
    timelines: int = Field(default=40, ge=0)
    workers: int | None = Field(default=None, ge=1)
    resume: bool = True
    log: bool = True


@dataclass
class Done:
    """What came of runs: the artifacts, and what went wrong by the names of those of which there is none."""

    kept: Kept
    failures: dict[str, str]


def main(cfg: DictConfig) -> int:
    """Print the events of one trace, or evaluate a folder of runs; return 1 where that failed for one of them."""
    from runner.agents.evaluation import Reading
    from runner.agents.events.sightings import looking
    from runner.agents.runs.tasks import tasks_in
    from runner.config.objects import ConfigError
    from runner.config.values import resolved

    config = resolved(cfg)
    wanted = _settings(config)
    if (wanted.path is None) == (wanted.file is None):
        said = "both are given" if wanted.path is not None else "neither is given"
        raise ConfigError(f"path, file: {said}; say path=FOLDER for a folder of runs, or file=FILE for one trace")
    if wanted.tasks is not None and not Path(wanted.tasks).is_dir():
        raise ConfigError(f"tasks={wanted.tasks}: is not a folder; name the one that task definitions are in")
    reading = Reading(wanted.tools, wanted.shell)
    looking(reading.tools, reading.shell)  # a mistake in the tools is found before any work
    tasks = tasks_in([] if wanted.tasks is None else [Path(wanted.tasks)])
    if wanted.file is not None:
        return _print(Path(wanted.file), reading, tasks)
    return _evaluate(config, wanted, reading, tasks)


def _print(file: Path, reading: Reading, tasks: Tasks) -> int:
    import sys

    from runner.agents.evaluation import events_of
    from runner.agents.events.document import written

    sys.stdout.buffer.writelines(written(events_of(file, reading, tasks)))
    sys.stdout.buffer.write(b"\n")
    return 0


def _evaluate(config: Mapping[str, Any], wanted: TraceSettings, reading: Reading, tasks: Tasks) -> int:
    from runner.agents.evaluation import Evaluation, jobs_of
    from runner.agents.events.document import load_events
    from runner.config.objects import ConfigError, build
    from runner.reports import console
    from runner.reports.traces.comparisons import verdicts
    from runner.reports.traces.report import trace_report
    from runner.reports.traces.tables import configurations_table, failures_table, heading, rewards_note
    from runner.tracking.background import BackgroundTracker

    metrics: MetricSettings = build(config["metrics"], "metrics")
    if metrics.correction == "tukey":
        raise ConfigError("metrics.correction=tukey: is for all pairs of systems by one measure; take holm, bh or none")
    if not wanted.output:
        raise ConfigError("output: is required; name a folder for events, metrics and reports with output=FOLDER")
    output = Path(wanted.output)
    with console.Working("looking for runs"):
        runs = _runs(Path(str(wanted.path)), output, tasks)
        jobs = list(jobs_of(runs, reading))
    baseline = _baseline(wanted.baseline, runs)
    evaluation, kept = Evaluation(reading, output), _kept(output)
    _note_undefined(runs, wanted.tasks)
    with BackgroundTracker(build(config["tracking"], "tracking")) if wanted.log else nullcontext() as tracker:
        if tracker:
            tracker.start()
        done = _work(jobs, evaluation, kept, wanted)
        with console.Working("report"):
            report = trace_report(
                done.kept,
                done.failures,
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
        if note := rewards_note(report):
            console.paragraph(note)
        console.show_table(failures_table(report), "Failed")
        if tracker:
            _log(tracker, done.kept, report, metrics, files, wanted, output / LOGGED)
    console.line(f"report: {output / 'report.html'}")
    return FAILED if done.failures else 0


def _settings(config: Mapping[str, Any]) -> TraceSettings:
    from runner.config.objects import ConfigError, build

    node = {each.name: config[each.name] for each in fields(TraceSettings)}
    try:
        made: TraceSettings = build({**node, "_target_": f"{__name__}.TraceSettings"}, "traces")
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("traces.")) from error
    return made


def _kept(output: Path) -> Kept:
    """Return what is there already; raises `ConfigError` where nothing can be written."""
    from runner.agents.kept import Kept
    from runner.config.objects import ConfigError

    try:
        return Kept(output)
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be written ({error.strerror or error})") from error


def _runs(path: Path, output: Path, tasks: Tasks) -> list[RunFolder]:
    from runner.agents.runs.layout import runs_in
    from runner.config.objects import ConfigError

    own = output.resolve()
    found = [*runs_in(path, tasks)]
    runs = [run for run in found if not run.folder.resolve().is_relative_to(own)]
    if found and not runs:
        raise ConfigError(f"output={output}: holds the runs of path={path}; name another folder")
    if not runs:
        raise ConfigError(f"path={path}: holds no run of an agent, such as a folder with agent/trajectory.json")
    return runs


def _note_undefined(runs: Sequence[RunFolder], where: str | None) -> None:
    """Say which tasks have no definition, without which nothing tells what should be found."""
    from runner.reports import console

    undefined = sorted({run.provenance.task_name for run in runs if not run.tasks})
    if not undefined:
        return
    n = len({run.provenance.task_name for run in runs})
    some = ", ".join(undefined[:_MOST_NAMED]) + ", ..." * (len(undefined) > _MOST_NAMED)
    by = "without tasks=FOLDER" if where is None else f"in tasks={where}, where a task's folder has its name"
    console.note(f"not measured: {len(undefined):,} of {n:,} tasks are not defined {by}: {some}")


def _baseline(named: str | None, runs: Sequence[RunFolder]) -> str:
    """Return the configuration that others are compared with; raises `ConfigError` for one that there is not."""
    from runner.config.objects import ConfigError, suggestion
    from runner.reports.traces.report import baseline_among

    configurations = {run.provenance.config_name for run in runs}
    if named is not None and named not in configurations:
        raise ConfigError(f"baseline={named}: no such configuration; {suggestion(named, configurations)}")
    return baseline_among(configurations) if named is None else named


def _work(jobs: Sequence[Job], evaluation: Evaluation, kept: Kept, wanted: TraceSettings) -> Done:
    """Evaluate the runs that are not evaluated yet; whatever goes wrong with one costs no other."""
    from runner.agents.workers import each
    from runner.processes import processors
    from runner.reports import console

    todo = [job for job in jobs if not (wanted.resume and _is_done(job, evaluation, kept))]
    failures: dict[str, str] = {}
    workers = min(wanted.workers or processors(), max(1, len(todo)))
    results = each(evaluation, todo, workers)
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
    return Done(kept, failures)


def _is_done(job: Job, evaluation: Evaluation, kept: Kept) -> bool:
    name = job.run.artifact
    return kept.has(name, job.inputs.fingerprint) and all(file.is_file() for file in evaluation.files(name))


def _write(output: Path, report: TraceReport) -> dict[str, str]:
    """Write the reports, and return those that go with each configuration in MLflow."""
    from runner.reports.traces.markdown import trace_markdown
    from runner.reports.traces.page import trace_page
    from runner.reports.traces.report import report_json, summary_json

    files = {"report.md": trace_markdown(report), "report.html": trace_page(report)}
    (output / SUMMARY).write_bytes(summary_json(report))
    with (output / "report.json").open("wb") as file:
        file.writelines(report_json(report))
    for name, text in files.items():
        (output / name).write_text(text, encoding="utf-8")
    return files


def _log(
    tracker: BackgroundTracker,
    kept: Kept,
    report: TraceReport,
    metrics: MetricSettings,
    files: Mapping[str, str],
    wanted: TraceSettings,
    record: Path,
) -> None:
    """Log each configuration that has ground truth as an evaluation of its tasks, once: as long as it is the same."""
    import json

    from retrievers.store import fingerprint
    from runner.agent_results import result_of
    from runner.reports import console
    from runner.reports.traces.report import configuration_json
    from runner.result import ResultError
    from runner.tracking.record import Finished

    read = {"path": wanted.path, "tasks": wanted.tasks, "tools": wanted.tools, "shell": str(wanted.shell).lower()}
    names: dict[str, list[str]] = {}
    for name in sorted(report.tasks):
        names.setdefault(report.tasks[name]["provenance"]["config_name"], []).append(name)
    before = _read_record(record) if wanted.resume else {}
    logged: dict[str, dict[str, str]] = {}
    for name in report.summary["by_configuration"]:
        same = fingerprint(kept.fingerprint(names[name]), repr(asdict(metrics)), repr(tracker.tracking), repr(read))
        if before.get(name, {}).get("of") == same and Path(before[name]["folder"]).exists():
            logged[name] = before[name]
            console.line(f"run: {logged[name]['run']} ({name}; nothing is new)")
            continue
        try:
            result = result_of(name, (kept[each] for each in names[name]), metrics)
        except ResultError as error:
            console.note(f"not logged: {error}")
            continue
        parameters = {
            "retriever": name,
            **{f"agent.{key}": str(value) for key, value in result.config["agent"].items()},
            **{f"traces.{key}": value for key, value in read.items() if value is not None},
        }
        own = {**files, SUMMARY: configuration_json(report, name).decode()}
        (run,) = tracker.ask("log", [Finished(result, parameters, own)])
        logged[name] = {"run": run.id, "folder": str(run.folder or ""), "of": same}
        record.write_text(json.dumps({**before, **logged}, indent=2), encoding="utf-8")  # Ctrl-C logs none again
        console.line(f"run: {run.id} ({name})")
    record.write_text(json.dumps(logged, indent=2), encoding="utf-8")
    pairs = [(logged.get(each["baseline_config"]), logged.get(each["other_config"])) for each in report.comparisons]
    for first, other in [(first, other) for first, other in pairs if first and other][:1]:
        console.line(f"compare: python -m runner compare baseline={first['run']} candidate={other['run']}")


def _read_record(file: Path) -> dict[str, dict[str, str]]:
    import json

    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # nothing was logged, or nobody knows what
        return {}
    return {name: each for name, each in content.items() if {"run", "folder", "of"} <= each.keys()}
