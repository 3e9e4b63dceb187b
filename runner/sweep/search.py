"""Runs a search: Optuna suggests combinations step by step and learns from their results.

Axes may be those of a grid, and intervals. Combinations that were finished by this search, or by a grid of the same
name, are not evaluated again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.store import fingerprint
from runner.comparison.comma_separated import format_csv
from runner.comparison.criteria import COSTS, Criterion, find_objective
from runner.comparison.leaderboard import FailedCombination
from runner.comparison.race import DroppedCombination, parse_dropped
from runner.comparison.search import SEARCH, FrontPoint, Search, SearchTrial
from runner.comparison.selection import KFOLD
from runner.config.objects import ConfigError, build_settings, suggestion
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.formulas import is_merit
from runner.metrics.settings import MetricSettings
from runner.pages.progress import Progress
from runner.statistics.racing import ErrorBudget
from runner.statistics.selection import FOLDS, find_front, means
from runner.statistics.settings import Statistics
from runner.sweep.closing import SweepContent, SweepEnding, report
from runner.sweep.declared import Declared
from runner.sweep.plan import plan_search
from runner.sweep.racing import Challenge
from runner.sweep.reporting import ReportWriter
from runner.sweep.run import SweepRun
from runner.sweep.selection import Selecting, place, place_of_search, refuse_splits
from runner.sweep.settings import SweepSettings
from runner.sweep.space import SearchSpace
from runner.sweep.study import Sampler, Studies, Study
from runner.tracking.background import BackgroundTracker
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
from runner.tracking.tracing import log_exchanges

TRIALS = "trials.csv"
"""The file of all trials with their settings and values."""


@settings(frozen=True, config={"extra": "forbid"})
class SearchSettings:
    """The `hydra.sweeper` node of a search.

    `n_trials` is the total number of trials; to resume, run the same command again. `objectives` are measures (higher
    is better) and names of `COSTS` (lower is better); null means only the primary measure. `storage` is the address of
    an Optuna database, journal:FILE or memory; null means optuna.db next to the database of runs.
    """

    n_trials: int = Field(default=40, ge=1)
    sampler: Sampler = "tpe"
    seed: int = Field(default=0, ge=0)
    objectives: list[str] | None = None
    storage: str | None = None


def search(declared: Declared, node: Mapping[str, Any], writer: ReportWriter) -> SweepEnding:
    """Run, log and report a search; return how it ended. Raises errors of settings before any work."""
    own = build_settings(SearchSettings, node, "hydra.sweeper")
    if declared.settings.sample is not None:
        raise ConfigError("sweep.sample: has no effect on a search; set hydra.sweeper.n_trials instead")
    space = SearchSpace(declared.products)
    points = space.probes(own.seed)
    probes = declared.experiments(points)
    if space.unrestricted:  # otherwise, a point that is not among the probes may use it
        declared.check_read(points)
    metrics = declared.metrics(probes)
    objectives, statistics = _objectives(own.objectives, metrics), probes[0].statistics
    sources = {(repr(probe.source), repr(probe.chunking)): probe.source for probe in probes}
    refuse_splits(space.axes)
    if len(sources) > 1:
        raise ConfigError("dataset: a search supports only one dataset; for several, use a grid: hydra/sweeper=grid")
    (source,) = sources.values()
    select_on = declared.settings.select_on
    on = place(select_on, source) if select_on else place_of_search(source)
    race = _check_race(own, declared.settings, objectives, statistics, on)
    choice: dict[str, object] = {
        "method": "search",
        "select_on": on,
        "sampler": own.sampler,
        "sampler_seed": own.seed,
        "seed": declared.settings.seed,
        "objectives": [objective.name for objective in objectives],
        "race": race,
        "resamples": declared.settings.resamples if on == KFOLD else None,
        "space": space.identity,
    }
    head = declared.sweep(space.axes, own.n_trials, probes, choice)
    if declared.settings.dry_run:
        return SweepEnding(plan_search(declared, head, FOLDS if on == KFOLD else 0, probes[0]))
    studies = Studies(
        own.storage or _beside(declared.tracking), own.sampler, own.seed, space, [o.larger for o in objectives]
    )
    with (
        log_exchanges(declared.tracking, declared.traces),
        BackgroundTracker(declared.tracking) as tracker,
        SweepRun(head, declared.settings, declared.bench, tracker, writer) as run,
    ):
        selecting = Selecting(declared, run, statistics, source, on)
        about = {"sweep": head.id, "objectives": [o.name for o in objectives], "selected_on": on}
        which = fingerprint("study", *map(str, about.values()), space.identity, selecting.measured.fingerprint, *race)
        searching = Searching(own, objectives, selecting, studies)
        try:
            searching.go(f"{head.name[:100]} {which[:12]}", about)
        except KeyboardInterrupt:
            run.outcome.interrupted = True
        return searching.report()


_Charge = tuple[float, float]
"""The error rate of the race of a trial, and the mean of the best trial that it raced against."""


class Line:
    """A study, the queries that its values are computed on (None: all), and its trials' combinations, in order."""

    def __init__(self, study: Study, queries: NDArray[np.bool_] | None, trials: Sequence[str] = ()) -> None:
        self.study, self.queries, self.trials = study, queries, list(trials)

    def missing(self, n_trials: int) -> int:
        """Return the number of trials still to run."""
        return 0 if self.study.exhausted else max(n_trials - len(self.trials), 0)


class Searching:
    """A running search: the stored study and, for a cross-validated selection, another study for each fold.

    The study of a fold only sees the queries of the other folds, so that its winner is both found and selected without
    the queries that it is measured on. It is created again at every start, from the same seed and results.
    """

    def __init__(
        self, settings: SearchSettings, objectives: Sequence[Criterion], selecting: Selecting, studies: Studies
    ) -> None:
        self.settings, self.objectives, self.selecting, self.studies = settings, objectives, selecting, studies
        self.run, self.outcome = selecting.run, selecting.run.outcome
        self.lines: list[Line] = []
        self.dropped: dict[str, DroppedCombination] = {}
        self.budget = ErrorBudget(selecting.statistics.alpha)

    def go(self, name: str, about: Mapping[str, Any]) -> None:
        """Run trials until every study is complete, or a failure stops the search."""
        self.lines = [self._load_study(name, about)]
        if self.selecting.on == KFOLD:
            folds = self.selecting.folds()
            others = [(folds >= 0) & (folds != fold) for fold in range(folds.max() + 1)]
            self.lines += [Line(self.studies.passing(), queries) for queries in others]
        missing, before = self._missing(self.lines[0]), len(self.lines[0].trials)
        with Progress(missing, before, what="trials") as progress:
            if before and len(self.lines) > 1:
                progress.note("repeating the finished trials without each fold")
            while any(map(self._missing, self.lines)) and not self._is_to_end():
                self._round(progress)
            if not any(map(self._missing, self.lines)):
                progress.end_early()

    def report(self) -> SweepEnding:
        """Select the winner, report the stored study, and return how the search ended."""
        wanted = list(dict.fromkeys(self.lines[0].trials)) if self.lines else []
        if self.selecting.declared.settings.race and wanted:
            self.run.race.describe(wanted, list(self.dropped.values()))
        declared, chosen, result, files = self.selecting.declared, None, None, {}
        try:
            if not self.outcome.interrupted and not self._is_to_end() and self.selecting.rank(wanted):
                chosen = self.selecting.choose(wanted, [line.trials for line in self.lines[1:]])
                result = self._describe(wanted)
                files = self._files(result)
                if self.run.changed or declared.output or not self.run.parent.has(TRIALS, files[TRIALS]):
                    result = replace(result, importances=self._importances())
                    importances = orjson.dumps(result.importances, option=orjson.OPT_INDENT_2)
                    files["importances.json"] = importances.decode() + "\n"
                    files[SEARCH] = result.to_json()
        except KeyboardInterrupt:
            self.outcome.interrupted = True
        finally:  # even if a report fails, the parent run is closed
            content = SweepContent(
                wanted=wanted,
                primary=self.objectives[0].name,
                statistics=self.selecting.statistics,
                chosen=[chosen] if chosen else [],
                search=result,
                files=files,
                planned=self.settings.n_trials,
            )
            ending = report(self.run, content, declared)
        return ending

    def _load_study(self, name: str, about: Mapping[str, Any]) -> Line:
        """Return the stored study; if its results have changed, a new one with the current results."""
        study = self.studies.latest(name) if self.selecting.declared.settings.resume else None
        if study is None:
            return Line(self.studies.new(name, about, []), None)
        answers = study.list_answers()
        pairs = self.selecting.identify([trial.point for trial in answers])
        dropped = [parse_dropped(trial.dropped) if trial.dropped else None for trial in answers]
        for _ in self.run.evaluate({c: e for (c, e), drop in zip(pairs, dropped, strict=True) if drop is None}):
            pass
        now = [self._values(combination, None) for combination, _ in pairs]
        is_other = any(
            _differ(trial.values, values) if drop is None else drop.combination != combination
            for trial, values, drop, (combination, _) in zip(answers, now, dropped, pairs, strict=True)
        )
        # A stored trial has the values that its sampler learnt from. If they are not those of today, as after a change
        # of code or data, the next points would be chosen, and the importance of settings computed, from a mixture of
        # both. Nor may a resumed race start with its whole error rate again: three commands would spend three times
        # alpha.
        if is_other:  # trials that were dropped by other results take part again
            kept = [i for i, drop in enumerate(dropped) if drop is None]
            study = self.studies.new(name, about, [(answers[i], now[i]) for i in kept])
            return Line(study, None, [pairs[i][0] for i in kept])
        self.dropped = {drop.combination: drop for drop in dropped if drop is not None}
        self.budget.left -= sum(trial.alpha for trial in answers)
        return Line(study, None, [combination for combination, _ in pairs])

    def _round(self, progress: Progress) -> None:
        """Ask each study for some points, evaluate them together, and tell each study the values of its points."""
        share = max(_at_once(self.selecting.declared.settings) // len(self.lines), 1)
        unfinished = [line for line in self.lines if self._missing(line)]
        # The studies of folds start again with each command; they catch up first, so that all advance together.
        last = min(len(line.trials) for line in unfinished)
        requests = [
            (line, request)
            for line in unfinished
            if len(line.trials) < last + share
            for request in line.study.ask(min(self._missing(line), share))
        ]
        pairs = self.selecting.identify([request.point for _, request in requests])
        wanted = {combination: e for combination, e in pairs if combination not in self.outcome.failures}
        # Only points of the stored study are ranked and counted, not points of the studies of folds.
        main = [
            combination for (line, _), (combination, _) in zip(requests, pairs, strict=True) if line is self.lines[0]
        ]
        raced: dict[str, _Charge] = {}
        if self.selecting.declared.settings.race:
            wanted, raced = self._race(wanted)
        for _ in self.run.evaluate(wanted, progress, contenders=main):
            pass
        for _ in range(len(main) - len(wanted.keys() & set(main))):
            progress.advance()
        for (line, request), (combination, _) in zip(requests, pairs, strict=True):
            if combination in raced:
                line.study.charge(request, self._charge(combination, *raced.pop(combination)))
            if (drop := self.dropped.get(combination)) is not None:
                line.study.drop(request, combination, drop.to_json(), drop.queries, drop.mean)
                line.trials.append(combination)
            elif combination in self.outcome.results or combination in self.outcome.failures:
                line.study.tell(request, combination, self._values(combination, line.queries))
                line.trials.append(combination)

    def _race(self, wanted: Mapping[str, Experiment]) -> tuple[dict[str, Experiment], dict[str, _Charge]]:
        """Race new trials against the best one; return the combinations to evaluate, and the charges of the races."""
        wanted, line = {c: e for c, e in wanted.items() if c not in self.dropped}, self.lines[0]
        complete = (self.outcome.results.get(combination) for combination in line.trials)
        faultless = [result for result in complete if result is not None and not result.failures]
        best = max(faultless, key=lambda result: np.nan_to_num(result.means[result.primary]), default=None)
        new = {c: e for c, e in wanted.items() if c not in self.outcome.results}
        if best is None or not new:
            return wanted, {}
        alpha = self.budget.share(self._missing(line))
        challenges = {c: Challenge(e, alpha, len(line.trials) + i) for i, (c, e) in enumerate(new.items())}
        dropped, others = self.run.race.hold_trials(challenges, best)
        self.dropped |= {drop.combination: drop for drop in dropped}
        raced = dict.fromkeys([*(drop.combination for drop in dropped), *others], (alpha, best.means[best.primary]))
        return {c: others.get(c, e) for c, e in wanted.items() if c not in self.dropped}, raced

    def _charge(self, combination: str, alpha: float, best: float) -> float:
        """Return the part of the error rate that the race of a trial used up; a failed trial cannot be an error."""
        result = self.outcome.results.get(combination)
        if result is None and combination not in self.dropped:
            return 0.0
        return self.budget.charge(alpha, None if result is None else result.means[result.primary], best)

    def _missing(self, line: Line) -> int:
        return line.missing(self.settings.n_trials)

    def _is_to_end(self) -> bool:
        return self.selecting.declared.settings.fail_fast and bool(self.outcome.failures)

    def _values(self, combination: str, queries: NDArray[np.bool_] | None) -> list[float] | None:
        """Return the objectives of a combination on some queries, None if it failed or lacks a value."""
        result = self.outcome.results.get(combination)
        if result is None:
            return None
        values = [_value(result, objective, queries) for objective in self.objectives]
        return values if all(map(math.isfinite, values)) else None

    def _describe(self, wanted: Sequence[str]) -> Search:
        main, source = self.lines[0], self.selecting.source
        ended: list[Mapping[str, Result | FailedCombination | DroppedCombination]]
        ended = [self.outcome.results, self.outcome.failures, self.dropped]
        names = {combination: one.name for kind in ended for combination, one in kind.items()}
        return Search(
            study=main.study.name,
            sampler=self.settings.sampler,
            objectives=self.objectives,
            trials=[
                SearchTrial(i, names[c], self._values(c, None) or (), c in self.dropped)
                for i, c in enumerate(main.trials)
            ],
            front=self._front(wanted) if len(self.objectives) > 1 else (),
            selected_on=source.split if self.selecting.on == KFOLD else self.selecting.on,
            reported_on=source.split,
        )

    def _list_race(self, combination: str) -> dict[str, float]:
        """Return the columns of a dropped trial: its partial mean, and the number of queries behind it."""
        drop = self.dropped.get(combination)
        return {} if drop is None else {"race_queries": drop.queries, "race_partial_mean": drop.mean}

    def _importances(self) -> dict[str, dict[str, dict[str, float]]]:
        study, seed = self.lines[0].study, self.settings.seed
        return {objective.name: study.importances(i, seed) for i, objective in enumerate(self.objectives)}

    def _front(self, wanted: Sequence[str]) -> list[FrontPoint]:
        """Return the Pareto front, with the values on the reported data."""
        ordered = self.selecting.rank(wanted)
        nothing = [math.nan] * len(self.objectives)
        values = np.array([self._values(combination, None) or nothing for combination in ordered])
        on_front = np.flatnonzero(find_front(values, [objective.larger for objective in self.objectives]))
        reported = self.selecting.evaluate_reported([ordered[i] for i in on_front])
        points = []
        for i in on_front:
            result = reported.get(ordered[i])
            there = [_value(result, o, None) for o in self.objectives] if result else ()
            points.append(FrontPoint(int(i) + 1, self.outcome.results[ordered[i]].name, values[i].tolist(), there))
        return points

    def _files(self, result: Search) -> dict[str, str]:
        names = [objective.name for objective in self.objectives]
        rows = [
            {"trial": trial.number, "combination": combination}
            | dict(self.selecting.points[combination].swept)
            | dict(zip(names, trial.values, strict=False))
            | self._list_race(combination)
            for trial, combination in zip(result.trials, self.lines[0].trials, strict=True)
        ]
        files = {TRIALS: format_csv(list(dict.fromkeys(name for row in rows for name in row)), rows)}
        if result.front:
            files["pareto.csv"] = result.front_csv()
        return files


RACING = ("tpe", "random", "qmc", "grid")
"""The samplers that can race: they learn from dropped trials, or from none."""


def _check_race(
    own: SearchSettings, settings: SweepSettings, objectives: Sequence[Criterion], statistics: Statistics, on: str
) -> tuple[str, ...]:
    """Return the settings of a race that identify a search, none without a race; raises `ConfigError`."""
    if not settings.race:
        return ()
    if len(objectives) > 1:
        raise ConfigError("sweep.race: supports only one objective; remove it, or hydra.sweeper.objectives")
    if own.sampler not in RACING:
        raise ConfigError(
            f"sweep.race: the sampler {own.sampler} cannot use dropped trials; remove it, or set hydra.sweeper.sampler "
            f"to {', '.join(RACING)}"
        )
    if on == KFOLD:
        raise ConfigError(
            "sweep.race: drops combinations by all queries, but this search selects by cross-validation; set "
            "sweep.select_on to a split"
        )
    return "race", str(settings.race_block), f"{settings.race_margin:g}", f"{statistics.alpha:g}"


def _objectives(names: Sequence[str] | None, metrics: MetricSettings) -> list[Criterion]:
    """Return the objectives of a search, the primary measure first; raises `ConfigError`."""
    primary, known = str(metrics.primary_measure), [*map(str, metrics.expanded), *COSTS]
    for name in names or ():
        if name not in known:
            raise ConfigError(f"hydra.sweeper.objectives: {name} is not measured; {suggestion(name, known)}")
        if not is_merit(name):
            raise ConfigError(f"hydra.sweeper.objectives: {name} describes the judgments, not the retriever; remove it")
    if names is not None and primary not in names:
        raise ConfigError(
            f"hydra.sweeper.objectives: the primary measure {primary} is missing; add it, or set metrics.primary"
        )
    return [find_objective(name) for name in dict.fromkeys([primary, *(names or ())])]


def _value(result: Result, objective: Criterion, queries: NDArray[np.bool_] | None) -> float:
    """Return the mean of a measure over some queries (None: all), or another criterion; NaN without a value."""
    if queries is None or not objective.measure:
        return objective.value(result)
    return float(means(result.of(objective.measure)[None], queries)[0])


def _differ(before: Sequence[float] | None, now: Sequence[float] | None) -> bool:
    """Return whether the values of a trial have changed."""
    if before is None or now is None:
        return before is not now
    return not np.allclose(before, now, rtol=1e-12, atol=0)


def _at_once(settings: SweepSettings) -> int:
    """Return the number of combinations to evaluate in parallel."""
    return 1 if settings.backend == "sequential" else settings.workers or os.cpu_count() or 1


def _beside(tracking: Tracking) -> str:
    """Return the address of the database of studies: next to the database of runs if that is a file, else in mlruns."""
    return f"sqlite:///{choose_store(tracking).folder / 'optuna.db'}"
