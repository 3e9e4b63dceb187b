"""A sweep over a grid, from its axes to its leaderboard; and how any sweep is reported.

It knows no retriever and no measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig

from runner.comparison.comparability import NotComparable
from runner.comparison.datasets import rank_systems
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.comparison.search import Search
from runner.comparison.selection import KFOLD, ON_REPORTED_DATA
from runner.datasets.source import DatasetSource
from runner.experiment import Experiment
from runner.llm.spending import describe_spending
from runner.metrics.settings import MetricSettings
from runner.reports import console
from runner.result import Result
from runner.sweep.declared import Declared, axes_of_points
from runner.sweep.plan import plan
from runner.sweep.products import Combination
from runner.sweep.reporting import ReportWriter
from runner.sweep.run import SweepRun
from runner.sweep.selection import Chosen, Selecting, place, refuse_splits
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun
from runner.tracking.tracing import log_exchanges

GOLDEN_REPORT = 100
"""How many combinations a sweep may have for a golden report: their rankings are kept in memory."""


def sweep(
    loader: ConfigLoader, config: DictConfig, arguments: Sequence[str], params: Mapping[str, Any], writer: ReportWriter
) -> int:
    """Run every combination, log and report; return the exit code. Raises for a user's mistake before any work."""
    declared = Declared(loader, config, arguments, params)
    with console.Working("composing the combinations, loading their data"):
        experiments = declared.experiments(declared.points)
    metrics, axes = declared.metrics(experiments), axes_of_points(declared.points)
    choices = _choices(declared, experiments, axes)
    select_on, seed = declared.settings.select_on or "", declared.settings.seed
    head = declared.sweep(
        axes, len(declared.points), experiments, "grid", select_on, str(seed) if select_on == KFOLD else ""
    )
    with (
        log_exchanges(declared.tracking, declared.traces),
        BackgroundTracker(declared.tracking) as tracker,
        SweepRun(head, declared.settings, declared.bench, tracker, writer, _golden(experiments)) as run,
    ):
        selectings = [Selecting(declared, run, metrics, source, on) for source, on, _ in choices]
        wanted: dict[str, Experiment] = {} if choices else run.identify(experiments)
        for selecting, (_, _, points) in zip(selectings, choices, strict=True):
            wanted |= dict(selecting.identify(points))
        if declared.settings.dry_run:
            return plan(declared, head, wanted, tracker)
        chosen: list[Chosen] = []
        try:
            for _ in run.evaluate(wanted):
                pass
            if not (declared.settings.fail_fast and run.outcome.failures):
                chosen = [c for selecting in selectings if (c := selecting.choose(list(selecting.points)))]
        except KeyboardInterrupt:
            run.outcome.interrupted = True
        report(run, list(wanted), metrics, declared.output, chosen)
    if note := describe_spending(
        part for experiment in experiments for part in (experiment.retriever, experiment.grading)
    ):
        console.note(note)
    return run.outcome.exit_code


def report(
    run: SweepRun,
    wanted: Sequence[str],
    metrics: MetricSettings,
    output: Path | None,
    chosen: Sequence[Chosen] = (),
    search: Search | None = None,
    files: Mapping[str, str] | None = None,
    total: int | None = None,
) -> None:
    """Show the leaderboard of the combinations that were wanted, close the sweep, and say where its reports are.

    With what was chosen among them, if anything was; how a search went that found them, files of its own, and how many
    there were to be in the end.
    """
    outcome = run.outcome
    results = {combination: outcome.results[combination] for combination in wanted if combination in outcome.results}
    ends = [c.result for c in chosen if c.result] if chosen else list(results.values())
    best, best_run = _best(ends), ""
    reports: dict[str, str] = {}
    files_of_choice = {**_selections(chosen), **(files or {})}
    news = run.changed or not run.reported or not all(run.has(name, text) for name, text in files_of_choice.items())
    if outcome.interrupted and len(results) < run.count_finished(wanted):  # the report that is there knows more
        news, best = False, None
    nothing = outcome.interrupted and not (results or outcome.failures)
    try:
        selections = {c.measured: c.selection for c in chosen}
        with console.Working("logging the rest, comparing all"):
            logged = {combination: logged_run.id for combination, logged_run in run.load_logged_runs().items()}
            best_run = "" if best is None else _run_of(best, outcome.results, logged)
            made = [] if nothing else _boards(results, list(outcome.failures.values()), metrics)
            systems = rank_systems([board for board, _ in made])
        boards = [
            (
                replace(
                    board,
                    selection=selections.get(board.dataset.fingerprint) if board.dataset else None,
                    search=search,
                    systems=systems,
                ).with_runs([logged.get(combination, "") for combination in group]),
                list(group.values()),
            )
            for board, group in made
        ]
        for board, _ in boards:
            console.show_leaderboard(board)
        console.show_systems(systems, str(metrics.primary_measure))
        news = news and not (nothing or run.left)
        if news or (output and not nothing):
            with console.Working("report"):
                reports = {**_reports(boards, run.parallel, run.writer), **files_of_choice}
        if output:
            _write(output, reports)
    finally:  # whatever happens to a report, the runs are there and their sweep is closed
        with console.Working("logging the report"):
            tags = {ON_REPORTED_DATA: "true"} if any(board.is_best_of_several for board, _ in boards) else {}
            tags |= {"best_run": best_run} if best_run else {}
            parent = run.finish(best, reports if news else {}, {**tags, **_tags(chosen, run.writer)})
    if run.tracking.is_off:
        parent, boards = None, []
    for board, _ in boards:
        console.show_compare_command(board, run.overrides)
    if not nothing:
        _say_where(parent, [name for name in reports or ["report.html"] if name.endswith(".html")], output)
    _close(run, len(results), total or len(wanted), nothing)


def _close(run: SweepRun, done: int, total: int, nothing: bool) -> None:
    """Print what was computed, and what remains to be done."""
    outcome = run.outcome
    if outcome.work:
        console.note(f"work done: {', '.join(f'{kind} {n:,}' for kind, n in sorted(outcome.work.items()))}")
    if outcome.interrupted:
        console.line(f"stopped after {done:,} of {total:,}; run the same command to resume")
    if run.tracking.is_off:
        console.line("not logged (tracking=none)")
    elif not (nothing or run.left):
        console.line(" ".join(["compare in MLflow: python -m runner ui", *run.overrides]))
    if not nothing and (place := run.tracking.from_environment):
        console.line(place)
    if run.waiting:
        console.line(run.waiting)


def _best(results: Sequence[Result]) -> Result | None:
    """Return the best result by its primary measure; None where there is none, or they are on several datasets."""
    if len({(result.dataset.fingerprint, result.dataset.split) for result in results}) > 1:
        return None
    return max(results, key=lambda result: np.nan_to_num(result.means[result.primary]), default=None)


def _run_of(best: Result, results: Mapping[str, Result], logged: Mapping[str, str]) -> str:
    """Return the id of the best result's run, "" where it is not known.

    A cross-validated result has the name of its combination and no run of its own.
    """
    return next(
        (
            logged.get(combination, "")
            for combination, result in results.items()
            if (result.name, result.dataset) == (best.name, best.dataset)
        ),
        "",
    )


def _say_where(parent: LoggedRun | None, names: Sequence[str], output: Path | None) -> None:
    """Print the run of a sweep, by which other verbs know it, and where its reports are."""
    if parent:
        console.line(f"run: {parent.id}")
    for name in names:
        if output:
            console.line(f"report: {output / name}")
        elif parent:
            console.line(f"report: {parent.where(name)}")


def _choices(
    declared: Declared, experiments: Sequence[Experiment], axes: Mapping[str, str]
) -> list[tuple[DatasetSource, str, list[Combination]]]:
    """Return for each dataset of a sweep that is to have a winner where it is chosen, and its points."""
    select_on = declared.settings.select_on
    if select_on is None:
        return []
    refuse_splits(axes)
    points: dict[str, list[Combination]] = {}
    for experiment, point in zip(experiments, declared.points, strict=True):
        points.setdefault(repr(experiment.source), []).append(point)
    sources = {repr(experiment.source): experiment.source for experiment in experiments}
    return [(source, place(select_on, source), points[which]) for which, source in sources.items()]


def _selections(chosen: Sequence[Chosen]) -> dict[str, str]:
    """Return the record of each choice as a file."""
    return {f"selection{_which(c, chosen)}.json": c.selection.to_json() for c in chosen}


def _tags(chosen: Sequence[Chosen], writer: ReportWriter) -> dict[str, str]:
    """Return what the sweep's run is found by, of each choice."""
    return {f"{key}{_which(c, chosen)}": value for c in chosen for key, value in writer.tags(c.selection).items()}


def _which(choice: Chosen, chosen: Sequence[Chosen]) -> str:
    return f"-{choice.selection.dataset}-{choice.measured[:6]}" if len(chosen) > 1 else ""


def _boards(
    results: Mapping[str, Result], failed: Sequence[FailedCombination], metrics: MetricSettings
) -> list[tuple[Leaderboard, dict[str, Result]]]:
    """Return a leaderboard for each dataset that was swept over, with the results that it was made from."""
    groups: dict[str, dict[str, Result]] = {}
    for combination, result in results.items():
        groups.setdefault(result.dataset.fingerprint, {})[combination] = result
    boards: list[tuple[Leaderboard, dict[str, Result]]] = []
    for group in groups.values() or [{}]:
        failures = failed if not boards else []  # of no dataset in particular: said once
        board = build_leaderboard(list(group.values()), str(metrics.primary_measure), failures, metrics)
        boards.append((board, group))
    return boards


def _reports(
    boards: Sequence[tuple[Leaderboard, list[Result]]], parallel: bool, writer: ReportWriter
) -> dict[str, str]:
    """Return the files that report a sweep: one set, or one for each dataset."""
    files = {}
    for board, results in boards:
        d = board.dataset
        which = f"-{d.name}-{d.split}-{d.fingerprint[:6]}" if d and len(boards) > 1 else ""
        of_board = writer.sweep(board, results)
        shown = [results[i] for i in sorted(row.position for row in board.finalists)]
        if shown and all(result.hits for result in shown):
            try:
                of_board |= writer.golden(shown, datetime.now(UTC), parallel)
            except NotComparable as error:  # the other reports do not depend on it
                console.note(f"no golden report: {error}")
        for name, text in of_board.items():
            stem, _, ending = name.rpartition(".")
            files[f"{stem}{which}.{ending}"] = text
    return files


def _golden(experiments: Sequence[Experiment]) -> bool:
    """Tell whether a sweep is on golden datasets, and few enough to keep what they found for a golden report."""
    return len(experiments) <= GOLDEN_REPORT and all(experiment.source.golden for experiment in experiments)


def _write(folder: Path, reports: Mapping[str, str]) -> None:
    for name, text in reports.items():
        (folder / name).write_text(text)
