"""The end of a sweep: show its leaderboards, write its reports, close its parent run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from retrievers.files import replace_texts
from retrievers.work import kind_of
from runner.comparison.race import RACE
from runner.comparison.recommendation import recommend
from runner.comparison.search import Search
from runner.comparison.selection import ON_REPORTED_DATA, WinnerSelection
from runner.config.arguments import format_override
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.numbers import format_count
from runner.pages.progress import Status
from runner.statistics.settings import Statistics
from runner.sweep.boards import Board, SweepCourse, build_boards, find_best, find_run
from runner.sweep.compose import Composer
from runner.sweep.declared import Declared
from runner.sweep.outcome import SweepOutcome
from runner.sweep.report.printing import show_compare_command, show_leaderboard, show_recommendation, show_systems
from runner.sweep.reporting import build_reports, build_selection_files, build_tags
from runner.sweep.run import SweepRun
from runner.sweep.selection import Chosen
from runner.sweep.winner import SCRIPT, WINNER, build_winner_files
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


@dataclass(frozen=True, eq=False)
class SweepContent:
    """What a sweep reports: the wanted combinations by the primary measure, and the selected winners.

    A search also has a description, files of its own, and the total number of its combinations.
    """

    wanted: Sequence[str]
    primary: str
    statistics: Statistics
    chosen: Sequence[Chosen] = ()
    search: Search | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    planned: int | None = None

    @property
    def total(self) -> int:
        """Return the number of combinations, of which a search may have tried only some."""
        return self.planned or len(self.wanted)

    @property
    def selections(self) -> list[tuple[str, WinnerSelection]]:
        """Return the fingerprint of each dataset that a winner was selected on, and the selection."""
        return [(chosen.measured, chosen.selection) for chosen in self.chosen]


class Closing:
    """A sweep at its end: what there is to report, and which of it goes to the parent run."""

    def __init__(self, run: SweepRun, content: SweepContent) -> None:
        results = run.outcome.results
        self.run, self.content, self.outcome = run, content, run.outcome
        self.results = {name: results[name] for name in content.wanted if name in results}
        self.logged: Mapping[str, LoggedRun] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether the sweep was interrupted before any combination ended."""
        return self.outcome.interrupted and not (self.results or self.outcome.failures)

    @property
    def is_behind(self) -> bool:
        """Return whether an earlier report covers more: an interrupted command has not loaded all that was finished.

        If it replaced that report, its "best" would be that of the few combinations that it got to.
        """
        return self.outcome.interrupted and len(self.results) < self.run.count_finished(self.content.wanted)

    @property
    def must_log(self) -> bool:
        """Return whether the parent run needs a report: there is news, and none of it is still to be logged."""
        parent = self.run.parent
        if self.is_behind or self.is_empty or parent.left:
            return False
        if self.run.changed or not parent.reported:
            return True
        return not all(parent.has(name, text) for name, text in self.own_files.items())

    @cached_property
    def own_files(self) -> dict[str, str]:
        """Return the files that belong to the whole sweep: its selections, its race and those of its search."""
        race = {RACE: self.outcome.race.to_json()} if self.outcome.race else {}
        return {**build_selection_files(self.content.selections), **race, **self.content.files}

    def build_winner(self, boards: Sequence[Board], composer: Composer) -> dict[str, str]:
        """Return the files of the recommended combination; none without a choice, or for several datasets."""
        advice = recommend(boards[0].leaderboard) if len(boards) == 1 else None
        if advice is None:
            return {}
        experiment = self.run.parent.experiments[list(boards[0].results)[advice.row.position]]
        title = f"{advice.row.label}, which the last words of a sweep recommend"
        return build_winner_files(experiment, composer, title)

    @property
    def best(self) -> Result | None:
        """Return the best result, that of a selected winner if there is one; None if an earlier report covers more."""
        if self.is_behind:
            return None
        chosen = self.content.chosen
        return find_best([c.result for c in chosen if c.result] if chosen else list(self.results.values()))

    def build_boards(self) -> list[Board]:
        """Return the leaderboards with what is known about the sweep; none for an empty one."""
        content = self.content
        self.logged = self.run.parent.load_logged_runs()
        if self.is_empty:
            return []
        runs = {combination: logged_run.id for combination, logged_run in self.logged.items()}
        if self.run.changed:
            self.run.parent.open()
        sweep = self.run.parent.find_run()
        course = SweepCourse(runs, dict(content.selections), content.search, self.outcome.race, sweep)
        load = partial(self.run.logged_rankings.load, runs=self.logged)
        failures = list(self.outcome.failures.values())
        return build_boards(self.results, failures, content.primary, content.statistics, course, load)


def report(run: SweepRun, content: SweepContent, declared: Declared) -> SweepEnding:
    """Report what a sweep found, close it, and return how it ended."""
    closing, outcome, output = Closing(run, content), run.outcome, declared.output
    if not (run.changed or outcome.interrupted):
        search = content.search
        what = f"{len(search.trials):,} trials" if search else f"{content.total:,} combinations"
        console.note(f"all {what} are already finished; nothing to do")
    boards: list[Board] = []
    reports: dict[str, str] = {}
    must_log = False
    try:
        with Status("logging the remaining results, comparing all results"):
            boards = closing.build_boards()
        _show(boards, content.primary)
        must_log = closing.must_log
        if must_log or (output and not closing.is_empty):
            with Status("report"):
                winner = closing.build_winner(boards, declared.composer)
                reports = {**build_reports(boards, run.parallel, run.writer), **closing.own_files, **winner}
        if output:
            replace_texts(output, reports)
    finally:  # even if a report fails, the parent run is closed
        with Status("logging the report"):
            own = _build_tags(boards, closing.best, outcome, closing.logged)
            tags = {**own, **build_tags(content.selections, run.writer)}
            parent = run.finish(closing.best, reports if must_log else {}, tags)
    _document(run, boards, parent, len(closing.results), content.total)
    if not closing.is_empty:
        _show_places(parent, [name for name in reports or ["report.html"] if name.endswith(".html")], output)
    _show_work(closing)
    if not (outcome.interrupted or run.waiting):  # otherwise, the last words are how to go on
        _show_winner(parent, output)
        show_recommendation([board.leaderboard for board in boards], run.parent.overrides)
    best = closing.best if content.chosen else None
    return SweepEnding(outcome.exit_code, boards, parent, best, {of.id: of for of in closing.logged.values()})


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
            "leaderboards": [board.leaderboard.to_dict() | {"recommended": _rank(board)} for board in boards],
        }
    )
    for board in boards if run.parent.keeps_runs else ():
        show_compare_command(board.leaderboard, run.parent.overrides)


def _rank(board: Board) -> int | None:
    advice = recommend(board.leaderboard)
    return None if advice is None else advice.row.rank


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


def _show_winner(parent: LoggedRun | None, output: Path | None) -> None:
    """Print the commands that run the recommended combination, and search with it, if it was written here."""
    folder = output or (parent and parent.folder)
    if folder and (folder / WINNER).is_file():
        place = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
        preset = format_override("experiment", str(place / WINNER))
        console.line(f"run what is recommended: {shlex.join(['python', '-m', 'runner', preset])}")
        console.line(f"search with it: {shlex.join(['python', str(place / SCRIPT), 'A question'])}")


def _describe_work(work: Mapping[str, int]) -> str:
    """Return how many searches and parts of indexes were computed; `work` counts pieces of work by kind."""
    searches = sum(n for kind, n in work.items() if kind_of(kind).stage == "search")
    others = sum(work.values()) - searches
    counts = [format_count(searches, "search", "searches")] if searches else []
    counts += [format_count(others, "part of indexes", "parts of indexes")] if others else []
    return f"computed {' and '.join(counts)}; later sweeps reuse these"


def _show_work(closing: Closing) -> None:
    """Print the work done and what remains."""
    run, outcome = closing.run, closing.outcome
    if outcome.work:
        console.note(_describe_work(outcome.work))
    if outcome.interrupted:
        done, total = len(closing.results), closing.content.total
        console.line(f"stopped after {done:,} of {total:,}; run the same command to resume")
    if not run.parent.keeps_runs:
        console.line("not logged (tracking=none)")
    elif not (closing.is_empty or run.parent.left):
        console.line(" ".join(["compare in MLflow: python -m runner ui", *run.parent.overrides]))
    if not closing.is_empty and (place := run.parent.tracking.from_environment):
        console.line(place)
    if run.waiting:
        console.line(run.waiting)
