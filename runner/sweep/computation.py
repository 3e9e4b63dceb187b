"""Computes the combinations of a sweep; those that killed a process run last, in a separate process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrievers.access import find_access
from retrievers.base import iter_parts
from runner.comparison.leaderboard import FailedCombination
from runner.evaluation.bench import Bench, MeasuredExperiment
from runner.evaluation.experiment import Experiment
from runner.pages import console
from runner.pages.progress import Status
from runner.sweep.encoding import find_encodings
from runner.sweep.racing import RaceBlock
from runner.sweep.settings import SweepSettings
from runner.sweep.workers import Crew, answers, crew_of, crew_of_one, encode_documents
from runner.tracking.background import BackgroundTracker
from runner.tracking.under_way import UnderWay

Task = TypeVar("Task", bound=Experiment | RaceBlock)


class Computation:
    """Computes combinations; a context manager that ends the workers, which start with the first combination."""

    def __init__(self, sweep_id: str, settings: SweepSettings, bench: Bench, tracker: BackgroundTracker) -> None:
        self._settings, self._bench, self._tracker = settings, bench, tracker
        self._under_way = UnderWay(bench.store.run_files.sweeps, sweep_id, settings.resume)
        self._context = ExitStack()
        self._crew: Crew | None = None
        self._single_crew: Crew | None = None
        self._encoded: set[str] = set()

    def __enter__(self) -> Self:
        """Return the computation; no worker starts yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """End the workers."""
        self._context.__exit__(kind, what, at)

    def run(
        self, experiments: Mapping[str, Experiment]
    ) -> Iterator[tuple[str, MeasuredExperiment | FailedCombination]]:
        """Yield what each combination measured, or how it failed, in order of completion."""
        for combination, measured in self._run(experiments):
            if not isinstance(measured, FailedCombination):
                self._under_way.clear(combination)
            yield combination, measured

    def measure(self, blocks: Mapping[str, RaceBlock]) -> dict[str, NDArray[np.float64] | None]:
        """Return the values of each combination on its block of a race; None if its search failed."""
        return {c: None if isinstance(values, FailedCombination) else values for c, values in self._run(blocks)}

    def _run(self, tasks: Mapping[str, Experiment | RaceBlock]) -> Iterator[tuple[str, Any]]:
        if not tasks:
            return
        if self._crew is None:
            self._crew = self._context.enter_context(self._begin_crew())
        suspects = {c: tasks[c] for c in self._under_way.suspects & tasks.keys()}
        others = {c: task for c, task in tasks.items() if c not in suspects}
        for part in split_by_models(others):
            if self._settings.backend != "sequential":
                self._encode(part, self._crew)
            yield from answers(part, self._crew, self._settings.retries)
        if not suspects:
            return
        if self._single_crew is None:
            self._single_crew = self._context.enter_context(crew_of_one(self._bench))
        yield from answers(suspects, self._single_crew, 0)

    def _encode(self, tasks: Mapping[str, Experiment | RaceBlock], crew: Crew) -> None:
        """Encode the documents that combinations need, on all workers, once for each combination."""
        experiments = {c: _experiment_of(task) for c, task in tasks.items() if c not in self._encoded}
        self._encoded |= experiments.keys()
        for encoding in find_encodings(experiments, self._bench):
            workers = min(crew.size, len(encoding.missing))
            what = f"encoding {len(encoding.missing):,} shards of documents on {workers:,} workers"
            with Status(what):
                encode_documents(encoding, crew)

    @contextmanager
    def _begin_crew(self) -> Iterator[Crew]:
        """Yield the workers; with the sequential backend, record on disk which combination is running."""
        marked = self._settings.backend == "sequential"
        try:
            if marked:
                if name := self._under_way.open():
                    console.note(
                        f"last time, the process died while evaluating {name}; this combination now runs last, in "
                        "a process of its own"
                    )
                self._tracker.report_death(self._under_way.marker)
            with crew_of(self._settings, self._bench, self._under_way.begin if marked else None) as crew:
                yield crew
        finally:
            self._under_way.close()


def split_by_models(tasks: Mapping[str, Task]) -> list[dict[str, Task]]:
    """Return the combinations that need no pre-trained model or service, then the others, without an empty part.

    The first ones have results while the documents are still encoded for the others.
    """
    slow = {c: task for c, task in tasks.items() if needs_model(_experiment_of(task).retriever)}
    fast = {c: task for c, task in tasks.items() if c not in slow}
    return [part for part in (fast, slow) if part]


def _experiment_of(task: Experiment | RaceBlock) -> Experiment:
    return task.experiment if isinstance(task, RaceBlock) else task


def needs_model(settings: object) -> bool:
    """Return whether a retriever, or a part of it, needs a pre-trained model or a service."""
    access = find_access(type(settings))
    return (access is not None and access.needs is not None) or any(map(needs_model, iter_parts(settings)))
