"""The rankings of the best results of a sweep, which are in memory or in logged runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from retrievers.texts import fetch_documents
from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench
from runner.evaluation.result import Result, ResultError
from runner.sweep.boards import BestRankings
from runner.sweep.finished import load_result
from runner.sweep.outcome import SweepOutcome
from runner.sweep.parent import SweepParent
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun


class LoggedRankings:
    """Loads the rankings of results that a sweep keeps without them."""

    def __init__(self, outcome: SweepOutcome, parent: SweepParent, bench: Bench, tracker: BackgroundTracker) -> None:
        self._outcome, self._parent, self._bench, self._tracker = outcome, parent, bench, tracker

    def load(self, combinations: Mapping[int, str], runs: Mapping[str, LoggedRun]) -> BestRankings:
        """Return the results of combinations, given by rank, with their rankings, and the documents that these name.

        Rankings are in memory or in the logged `runs`; a result whose rankings are in neither is left out. The misses
        of the first are explained with the texts of a corpus that is small enough for it.
        """
        best: dict[int, Result] = {}
        for rank, combination in combinations.items():
            result = self._outcome.results[combination]
            if result.hits is None and combination in runs:
                with suppress(ResultError, ConfigError):  # the report can do without
                    result = load_result(runs[combination], self._tracker, rankings=True)
            if result.hits is not None:
                best[rank] = result
        if not best:
            return BestRankings()
        experiment = self._parent.experiments[combinations[min(best)]]
        documents = self._bench.dataset(experiment).documents
        if not len(documents):
            names = [name for result in best.values() if result.hits for name in result.hits.documents]
            documents = fetch_documents(experiment.retriever, documents, names)
        return BestRankings.of(best, documents, partial(self._bench.read_words, experiment))
