"""Evaluates a folder of agents' runs: measures those that are not finished, reports all, and logs configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path

import orjson

from runner.config.objects import ConfigError, suggestion
from runner.config.values import without_secrets
from runner.features.traces.artifact_store import ArtifactStore, open_artifacts
from runner.features.traces.evaluation import Evaluation, Job, Reading
from runner.features.traces.jobs import evaluate_jobs, find_jobs, select_unfinished
from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.findings import compute_findings, select_baseline
from runner.features.traces.report.files import PAGE, write_report
from runner.features.traces.report.report import TraceReport, build_report, summary_json
from runner.features.traces.report.tables import (
    confidence_note,
    configurations_table,
    failures_table,
    heading,
    rewards_note,
)
from runner.features.traces.runs.tasks import Tasks
from runner.features.traces.settings import TraceSettings
from runner.features.traces.tracking import log_configurations
from runner.metrics.settings import MetricSettings
from runner.pages import console
from runner.pages.progress import Progress, Status
from runner.system.processes import processors
from runner.tracking.background import BackgroundTracker
from runner.tracking.settings import Tracking

_MAX_NAMES = 3  # the largest number of undefined tasks to name in a message


def evaluate_runs(
    own: TraceSettings,
    reading: Reading,
    tasks: Tasks,
    metrics: MetricSettings,
    tracking: Tracking | None,
    recorded: Mapping[str, str],
) -> Mapping[str, str]:
    """Evaluate, report and log the runs in a folder, and return the errors of failed runs by name.

    `tracking` is None if nothing is logged; `recorded` are the settings, by name, that the report depends on. Raises
    `ConfigError`.
    """
    output = Path(str(own.output))
    with Status("searching for runs"):
        jobs = find_jobs(Path(str(own.path)), output, tasks, reading)
    baseline = _choose_baseline(own.baseline, {job.run.provenance.config_name for job in jobs})
    evaluation = Evaluation(reading, output)
    with open_artifacts(output) as artifacts, BackgroundTracker(tracking) if tracking else nullcontext() as tracker:
        _note_undefined(jobs, own.tasks)
        if tracker:
            tracker.start()
        failures = _evaluate(jobs, evaluation, artifacts, own)
        del jobs  # the jobs of ten thousand runs take more memory than the report
        with Status("report"):
            names = FigureNames(metrics.k_values)
            findings = compute_findings(artifacts, failures, names, own.statistics)
            report = build_report(findings, evaluation.load_events, own.timelines, without_secrets)
            files = write_report(output, report)
        _show(report, output)
        if tracker:
            runs = log_configurations(
                tracker, report, artifacts, metrics, own.statistics, recorded, files, output, own.resume
            )
            _show_comparison(runs, baseline, tracker.tracking)
    console.line(f"report: {output / PAGE}")
    return failures


def _choose_baseline(named: str | None, configurations: Collection[str]) -> str:
    """Return the baseline of the printed `compare` command; raises `ConfigError` if it does not exist."""
    if named is not None and named not in configurations:
        raise ConfigError(f"baseline={named}: no such configuration; {suggestion(named, configurations)}")
    return select_baseline(configurations) if named is None else named


def _note_undefined(jobs: Sequence[Job], where: str | None) -> None:
    """Print which tasks have no definition, and therefore no ground truth."""
    undefined = sorted({job.run.provenance.task_name for job in jobs if not job.run.tasks})
    if not undefined:
        return
    n = len({job.run.provenance.task_name for job in jobs})
    some = ", ".join(undefined[:_MAX_NAMES]) + ", ..." * (len(undefined) > _MAX_NAMES)
    reason = "tasks=FOLDER is not set" if where is None else f"tasks={where} has no folder of this name"
    console.note(
        f"{len(undefined):,} of {n:,} tasks are not measured, because they have no definition ({reason}): {some}"
    )


def _evaluate(
    jobs: Sequence[Job], evaluation: Evaluation, artifacts: ArtifactStore, own: TraceSettings
) -> dict[str, str]:
    """Evaluate the runs that are not finished, show the progress, and return the errors of failed runs by name."""
    left = select_unfinished(jobs, evaluation, artifacts) if own.resume else jobs
    results = evaluate_jobs(left, evaluation, artifacts, min(own.workers or processors(), max(1, len(left))))
    failures: dict[str, str] = {}
    try:
        with Status("starting"):  # the time of the first run does not predict that of the others
            first = list(islice(results, 1))
        with Progress(len(left), len(jobs) - len(left)) as progress:
            for name, error in chain(first, results):
                if error:
                    failures[name] = error
                progress.advance(failed=bool(error))
    except KeyboardInterrupt:
        console.note("finished work is saved; run the same command to resume")
        raise
    artifacts.compact([job.run.artifact for job in jobs if job.run.artifact not in failures])
    return failures


def _show_comparison(runs: Mapping[str, str], baseline: str, tracking: Tracking) -> None:
    """Print the command that compares the logged configurations with the baseline, given their runs."""
    others = [run for name, run in runs.items() if name != baseline and run]
    if others and runs.get(baseline):
        candidate = others[0] if len(others) == 1 else f"[{','.join(others)}]"
        words = [f"baseline={runs[baseline]}", f"candidate={candidate}", *tracking.overrides()]
        console.line(f"compare: python -m runner compare {' '.join(words)}")


def _show(report: TraceReport, output: Path) -> None:
    """Print what the runs of each configuration found, and which runs failed."""
    console.document(lambda: {"report": str(output / PAGE), "summary": orjson.Fragment(summary_json(report))})
    console.line(heading(report))
    console.show_table(configurations_table(report))
    for note in filter(None, (confidence_note(report), rewards_note(report))):
        console.paragraph(note)
    console.show_table(failures_table(report), "Failed")
