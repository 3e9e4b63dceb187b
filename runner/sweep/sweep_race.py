"""The race of a running sweep: drops combinations, logs these, and records the course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from runner.comparison.race import RACE, DroppedCombination, RaceRecord
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.sweep.computation import Computation
from runner.sweep.finished import FinishedCombinations
from runner.sweep.outcome import SweepOutcome
from runner.sweep.parent import SweepParent
from runner.sweep.racing import Challenge, RaceBlock, check_race, hold_race, race_trials, start_record
from runner.sweep.result_log import ResultLog
from runner.sweep.settings import SweepSettings


class SweepRace:
    """Races combinations of a sweep. Finished ones are loaded, and are never dropped."""

    def __init__(
        self,
        settings: SweepSettings,
        bench: Bench,
        outcome: SweepOutcome,
        parent: SweepParent,
        finished: FinishedCombinations,
        log: ResultLog,
        computation: Computation,
    ) -> None:
        self._settings, self._bench, self._outcome, self._parent = settings, bench, outcome, parent
        self._finished, self._log, self._computation = finished, log, computation

    def hold(self, combinations: Mapping[str, Experiment]) -> dict[str, Experiment]:
        """Race combinations and return the survivors, to be evaluated; log the others as dropped."""
        check_race(combinations, self._bench)
        self._parent.experiments.update(combinations)
        loaded = {c: self._finished.load(c, experiment) for c, experiment in combinations.items()}
        finished = {c: result for c, result in loaded.items() if result is not None}
        earlier = self._parent.read_report(RACE)
        record, survivors = hold_race(combinations, finished, self._bench, self._settings, self._measure, earlier)
        self._outcome.race = record
        if record.to_json() != earlier:
            self._parent.open()
            self._log_drops(record, combinations)
        return survivors

    def hold_trials(
        self, challenges: Mapping[str, Challenge], best: Result
    ) -> tuple[Sequence[DroppedCombination], dict[str, Experiment]]:
        """Race trials against the best result so far; log and return the dropped ones, and return the others.

        Trials that were finished before do not race and are in neither.
        """
        new = {c: one for c, one in challenges.items() if self._finished.load(c, one.experiment) is None}
        if not new:
            return [], {}
        experiments = {c: one.experiment for c, one in new.items()}
        check_race(experiments, self._bench)
        self._parent.experiments.update(experiments)
        record, others = race_trials(new, best, self._bench, self._settings, self._measure)
        self._log_drops(record, experiments)
        return record.dropped, others

    def describe(self, trials: Sequence[str], dropped: Sequence[DroppedCombination]) -> None:
        """Record the race of a search, given the identities of its trials."""
        first = next(iter(self._parent.experiments.values()))
        record = start_record({trials[0]: first}, self._bench, self._settings)
        self._outcome.race = replace(record, combinations=trials, dropped=dropped)

    def _log_drops(self, record: RaceRecord, experiments: Mapping[str, Experiment]) -> None:
        for one in record.dropped:
            self._log.log_drop(experiments[one.combination], one, record)

    def _measure(self, blocks: Mapping[str, RaceBlock]) -> Mapping[str, NDArray[np.float64] | None]:
        self._parent.open()
        return self._computation.measure(blocks)
