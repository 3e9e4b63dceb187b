"""The end of a sweep: show its leaderboards, write its reports, close its parent run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from retrievers.files import replace_texts
from runner.comparison.race import RACE
from runner.comparison.search import Search
from runner.comparison.selection import ON_REPORTED_DATA, WinnerSelection
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.progress import Status
from runner.statistics.settings import Statistics
from runner.sweep.boards import Board, SweepCourse, build_boards, find_best, find_run
from runner.sweep.outcome import SweepOutcome
from runner.sweep.report.printing import show_compare_command, show_leaderboard, show_systems
from runner.sweep.reporting import build_reports, build_selection_files, build_tags
from runner.sweep.run import SweepRun
from runner.sweep.selection import Chosen
from runner.tracking.logged import LoggedRun


@dataclass(frozen=True, eq=False)
class SweepEnding:
    """How a sweep ended: its exit code, its leaderboards with their results, and its parent run.

    `chosen` is the result of the winner if one was selected on other data, `runs` has the logged combinations by run
    id.
    """

    exit_code: int
    boards: Sequence[Board] = ()
    parent: LoggedRun | None = None
    chosen: Result | None = None
    runs: Mapping[str, LoggedRun] = field(default_factory=dict)


def report(
    run: SweepRun,
    wanted: Sequence[str],
    primary: str,
    statistics: Statistics,
    output: Path | None,
    chosen: Sequence[Chosen] = (),
    search: Search | None = None,
    files: Mapping[str, str] | None = None,
    total: int | None = None,
) -> SweepEnding:
    """Report the wanted combinations and the selected winners, close the sweep, and return how it ended.

    Leaderboards are ordered by the `primary` measure. A search also passes its description, additional files, and the
    total number of its combinations.
    """
    outcome, total = run.outcome, total or len(wanted)
    if not (run.changed or outcome.interrupted):
        what = f"{len(search.trials):,} trials" if search else f"{total:,} combinations"
        console.note(f"all {what} are already finished; nothing to do")
    results = {combination: outcome.results[combination] for combination in wanted if combination in outcome.results}
    best = find_best([c.result for c in chosen if c.result] if chosen else list(results.values()))
    selections = [(c.measured, c.selection) for c in chosen]
    race = {RACE: outcome.race.to_json()} if outcome.race else {}
    own_files = {**build_selection_files(selections), **race, **(files or {})}
    has_news = run.changed or not run.parent.reported
    log_reports = has_news or not all(run.parent.has(name, text) for name, text in own_files.items())
    if outcome.interrupted and len(results) < run.count_finished(wanted):  # an earlier report covers more
        log_reports, best = False, None
    empty = outcome.interrupted and not (results or outcome.failures)
    boards: list[Board] = []
    reports: dict[str, str] = {}
    logged: Mapping[str, LoggedRun] = {}
    try:
        with Status("logging the remaining results, comparing all results"):
            logged = run.parent.load_logged_runs()
            boards = [] if empty else _build(run, results, primary, statistics, dict(selections), search, logged)
        _show(boards, primary)
        log_reports = log_reports and not (empty or run.parent.left)
        if log_reports or (output and not empty):
            with Status("report"):
                reports = {**build_reports(boards, run.parallel, run.writer), **own_files}
        if output:
            replace_texts(output, reports)
    finally:  # even if a report fails, the parent run is closed
        with Status("logging the report"):
            tags = {**_build_tags(boards, best, outcome, logged), **build_tags(selections, run.writer)}
            parent = run.finish(best, reports if log_reports else {}, tags)
    _document(run, boards, parent, len(results), total)
    if not empty:
        _show_places(parent, [name for name in reports or ["report.html"] if name.endswith(".html")], output)
    _show_work(run, len(results), total, empty)
    return SweepEnding(
        outcome.exit_code, boards, parent, best if chosen else None, {of.id: of for of in logged.values()}
    )


def _build(
    run: SweepRun,
    results: Mapping[str, Result],
    primary: str,
    statistics: Statistics,
    selections: Mapping[str, WinnerSelection],
    search: Search | None,
    logged: Mapping[str, LoggedRun],
) -> list[Board]:
    """Return the leaderboards of a sweep with what is known about it; `logged` are the runs of its combinations."""
    runs = {combination: logged_run.id for combination, logged_run in logged.items()}
    course = SweepCourse(runs, selections, search, run.outcome.race)
    failures, load = list(run.outcome.failures.values()), partial(run.logged_rankings.load, runs=logged)
    return build_boards(results, failures, primary, statistics, course, load)


def _build_tags(
    boards: Sequence[Board], best: Result | None, outcome: SweepOutcome, logged: Mapping[str, LoggedRun]
) -> dict[str, str]:
    """Return the tags of the parent run on its best result."""
    tags = {ON_REPORTED_DATA: "true"} if any(b.leaderboard.is_best_of_several for b in boards) else {}
    runs = {combination: run.id for combination, run in logged.items()}
    best_run = "" if best is None else find_run(best, outcome.results, runs)
    return {**tags, "best_run": best_run} if best_run else tags


def _document(run: SweepRun, boards: Sequence[Board], parent: LoggedRun | None, done: int, total: int) -> None:
    """Print the sweep as JSON if that is wanted, and else the commands that compare the best combinations."""
    console.document(
        lambda: {
            "run": parent.id if parent else None,
            "combinations": total,
            "finished": done,
            "interrupted": run.outcome.interrupted,
            "leaderboards": [board.leaderboard.to_dict() for board in boards],
        }
    )
    for board in boards if run.parent.keeps_runs else ():
        show_compare_command(board.leaderboard, run.parent.overrides)


def _show(boards: Sequence[Board], primary: str) -> None:
    for board in boards:
        show_leaderboard(board.leaderboard, list(board.results.values()))
    if boards and (systems := boards[0].leaderboard.systems) is not None:
        show_systems(systems, primary)


def _show_places(parent: LoggedRun | None, names: Sequence[str], output: Path | None) -> None:
    """Print the run id of a sweep, for use in other commands, and the places of its reports."""
    if parent:
        console.line(f"run: {parent.id}")
    for name in names:
        if output:
            console.line(f"report: {output / name}")
        elif parent:
            console.line(f"report: {parent.where(name)}")


def _show_work(run: SweepRun, done: int, total: int, empty: bool) -> None:
    """Print the work done and what remains."""
    outcome = run.outcome
    if outcome.work:
        console.note(f"work done: {', '.join(f'{kind} {n:,}' for kind, n in sorted(outcome.work.items()))}")
    if outcome.interrupted:
        console.line(f"stopped after {done:,} of {total:,}; run the same command to resume")
    if not run.parent.keeps_runs:
        console.line("not logged (tracking=none)")
    elif not (empty or run.parent.left):
        console.line(" ".join(["compare in MLflow: python -m runner ui", *run.parent.overrides]))
    if not empty and (place := run.parent.tracking.from_environment):
        console.line(place)
    if run.waiting:
        console.line(run.waiting)
