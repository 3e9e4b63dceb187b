"""Selects the winner of a sweep and measures it on the reported data.

The winner is selected on another split, or by cross-validation over queries, so that the queries that it is reported on
do not take part in the selection. Grids and searches select in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from runner.comparison.constraints import compare_figures, meets_all
from runner.comparison.headline import select_headline
from runner.comparison.selection import KFOLD, DefaultComparison, Figures, FoldWinner, WinnerSelection
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.source import DatasetSource
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.pages import console
from runner.statistics.clusters import number_clusters
from runner.statistics.comparison import compare
from runner.statistics.selection import (
    choose_nested,
    estimate_nested_intervals,
    folds,
    means,
    measure_nested_gain,
)
from runner.statistics.settings import Statistics
from runner.statistics.significance import compute_differences
from runner.sweep.declared import Declared
from runner.sweep.identity import identify_combinations
from runner.sweep.products import Combination
from runner.sweep.run import SweepRun

SPLIT = "dataset.split"

TUNING_SPLITS = ("dev", "validation", "train")
"""The splits that a search selects on by default; the first one that the dataset has is used."""


def place(wanted: str, source: DatasetSource) -> str:
    """Return the split to select on, or `KFOLD`; raises `ConfigError` for an unknown split."""
    splits = source.splits()
    if wanted in (KFOLD, source.split, *splits):
        return wanted
    others = ", ".join(split for split in splits if split != source.split)
    there = f"the dataset's other splits are {others}" if others else "the dataset has no other split"
    raise ConfigError(
        f"sweep.select_on={wanted}: no such split; {there}; set {KFOLD} to select by cross-validation, or "
        f"{source.split} to select on the reported data"
    )


def place_of_search(source: DatasetSource) -> str:
    """Return what a search selects on by default: a tuning split, else `KFOLD`."""
    others = [split for split in TUNING_SPLITS if split in source.splits() and split != source.split]
    return others[0] if others else KFOLD


def refuse_splits(axes: Collection[str]) -> None:
    """Raise `ConfigError` for an axis of splits, because selection and report use one split each."""
    if SPLIT in axes:
        raise ConfigError(
            f"{SPLIT}: cannot be an axis with sweep.select_on, which reports on one split; give it one value"
        )


@dataclass(frozen=True, eq=False)
class Chosen:
    """A selection, the fingerprint of its data, and the result to report (None if that evaluation failed)."""

    measured: str
    selection: WinnerSelection
    result: Result | None


@dataclass(frozen=True, eq=False)
class Selecting:
    """A selection on the split `on` (or `KFOLD`) of one dataset, reported on the split of `source`.

    `points` are the combinations by their identity on the split that candidates are evaluated on.
    """

    declared: Declared
    run: SweepRun
    statistics: Statistics
    source: DatasetSource
    on: str
    points: dict[str, Combination] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on == KFOLD:
            self.folds()  # raises an error before any work if there are too few queries

    @property
    def measured(self) -> Dataset:
        """Return the dataset that candidates are evaluated on."""
        elsewhere = self.on not in (KFOLD, self.source.split)
        return self.declared.bench.datasets.load(replace(self.source, split=self.on) if elsewhere else self.source)

    def identify(self, points: Sequence[Combination]) -> list[tuple[str, Experiment]]:
        """Return the identity of each point and the experiment that evaluates it."""
        experiments = self.declared.experiments([self._move_to_split(point) for point in points]) if points else []
        pairs = [(next(iter(self._identify([experiment]))), experiment) for experiment in experiments]
        for point, (combination, _) in zip(points, pairs, strict=True):
            self.points.setdefault(combination, point)
        return pairs

    def folds(self) -> NDArray[np.int64]:
        """Return the fold of each query, stratified by query type; raises `ConfigError` for a single query.

        Variants of a query are in the same fold.
        """
        dataset = self.measured
        n = len(dataset.queries)
        golds = [j.golds(n) for j in (dataset.judgments, *dataset.judgments.by_search_type.values())]
        counted = np.any(np.stack(golds) > 0, axis=0)
        clusters = number_clusters(dataset.queries.clusters)
        if clusters is not None and len(np.unique(clusters[counted])) == 1:
            raise ConfigError(
                f"sweep.select_on={KFOLD}: all queries with gold of {dataset.name} are in one cluster, but at least "
                "two clusters are needed"
            )
        if np.count_nonzero(counted) < 2:
            raise ConfigError(
                f"sweep.select_on={KFOLD}: {dataset.name} has {counted.sum()} queries with gold, but at least "
                "two are needed"
            )
        return folds(dataset.queries.types, counted, seed=self.declared.settings.seed, clusters=clusters)

    def rank(self, combinations: Collection[str]) -> list[str]:
        """Return the combinations with a result, best first, in the order of a leaderboard."""
        results = self.run.outcome.results

        def merit(combination: str) -> tuple[float, str]:
            mean = _mean(results[combination], results[combination].primary)
            return math.inf if math.isnan(mean) else -mean, results[combination].name

        return sorted((c for c in combinations if c in results), key=merit)

    def evaluate_reported(self, combinations: Sequence[str]) -> dict[str, Result]:
        """Return the results of candidates on the reported data, evaluating them there if necessary."""
        if self.on in (KFOLD, self.source.split):
            return {combination: self.run.outcome.results[combination] for combination in combinations}
        experiments = [
            replace(experiment, name=f"{experiment.name} ({self.source.split})")
            for experiment in self.declared.experiments([self.points[combination] for combination in combinations])
        ]
        wanted: dict[str, Experiment] = {}
        candidate_of: dict[str, str] = {}
        for experiment, candidate in zip(experiments, combinations, strict=True):
            for combination, identified in self._identify([experiment]).items():
                wanted.setdefault(combination, identified)
                candidate_of.setdefault(combination, candidate)
        for _ in self.run.evaluate(wanted, contenders=()):
            pass
        results = self.run.outcome.results
        return {candidate: results[c] for c, candidate in candidate_of.items() if c in results}

    def choose(self, candidates: Collection[str], by_fold: Sequence[Collection[str]] = ()) -> Chosen | None:
        """Select the best candidate by the primary measure and evaluate it on the reported data.

        Return None if no candidate has a value. In cross-validation, `by_fold` has the candidates of each fold, by
        default all.
        """
        candidates = self._list_meeting(candidates)
        ordered = self.rank(candidates)
        if not ordered:
            return None
        best = self.run.outcome.results[ordered[0]]
        if math.isnan(_mean(best, best.primary)):  # no query has gold
            return None
        if self.on == KFOLD:
            return self._cross_validated(best, candidates, [self._list_meeting(fold) for fold in by_fold])
        reported = self.evaluate_reported(ordered[:1]).get(ordered[0])
        selection, default = self._selection(best, reported), self._find_default(ordered[0], reported)
        if reported is not None and default is not None:
            selection = replace(selection, default=compare_with_default(reported, default, self.statistics))
        return Chosen(best.dataset.fingerprint, selection, reported)

    def _list_meeting(self, candidates: Collection[str]) -> Collection[str]:
        """Return the candidates that meet the constraints where they were evaluated; say so if none does."""
        constraints, results = self.declared.settings.constraints, self.run.outcome.results
        if not constraints:
            return candidates
        meeting = [c for c in candidates if c in results and meets_all(results[c], constraints)]
        if not meeting:
            limits = " and ".join(map(str, constraints))
            console.note(f"no combination was selected: none of {len(candidates):,} has {limits}")
        return meeting

    def _identify(self, experiments: Sequence[Experiment]) -> dict[str, Experiment]:
        return identify_combinations(experiments, self.declared.bench)

    def _move_to_split(self, point: Combination) -> Combination:
        """Return a point on the split to select on."""
        if self.on in (KFOLD, self.source.split):
            return point
        others = [line for line in point.overrides if line.partition("=")[0].lstrip("+") != SPLIT]
        return replace(point, overrides=(*others, f"{SPLIT}={self.on}"))

    def _cross_validated(
        self, best: Result, candidates: Collection[str], by_fold: Sequence[Collection[str]]
    ) -> Chosen | None:
        fold_of = self.folds()
        every = self.rank({*candidates, *(c for fold in by_fold for c in fold)})
        results = [self.run.outcome.results[combination] for combination in every]
        scores = np.stack([result.of(best.primary) for result in results])
        of_each = [set(fold) for fold in by_fold] or [set(candidates)] * (fold_of.max() + 1)
        among = np.array([[c in fold for c in every] for fold in of_each])
        if not among.any(axis=1).all():
            return None
        nested_choice = choose_nested(scores, fold_of, among)
        winners = [results[winner] for winner in nested_choice.winners]
        intervals = estimate_nested_intervals(
            *(scores, np.stack([result.scores for result in results], axis=1), fold_of, among),
            confidence=self.statistics.confidence,
            resamples=self.declared.settings.resamples,
            seed=self.statistics.seed,
            clusters=best.queries.cluster_numbers,
        )
        reported = _join_folds(best, winners, fold_of, intervals)
        held = [means(nested_choice.held_out[None], fold_of == fold)[0] for fold in range(len(winners))]
        seen = [means(w.of(w.primary)[None], (fold_of >= 0) & (fold_of != i))[0] for i, w in enumerate(winners)]
        fold_winners = [
            FoldWinner(winner.name, int(np.count_nonzero(fold_of == fold)), float(seen[fold]), float(held[fold]))
            for fold, winner in enumerate(winners)
        ]
        default = self._find_default(self.rank(candidates)[0], reported)
        selection = replace(
            self._selection(best, reported),
            folds=fold_winners,
            default=None if default is None else self._compare_nested(scores, fold_of, among, reported, default),
        )
        return Chosen(best.dataset.fingerprint, selection, reported)

    def _compare_nested(
        self,
        scores: NDArray[np.float64],
        fold_of: NDArray[np.int64],
        among: NDArray[np.bool_],
        reported: Result,
        default: Result,
    ) -> DefaultComparison | None:
        """Compare what a cross-validation selects with the default settings, by a test that repeats the selection.

        A paired test would take the held-out values for those of a system that was given.
        """
        comparison = compare_with_default(reported, default, self.statistics)
        if comparison is None:
            return None
        p, interval = measure_nested_gain(
            compute_differences(scores, default.of(default.primary)[None]),
            *(fold_of, among),
            level=1 - self.statistics.confidence,
            permutations=self.declared.settings.resamples,
            seed=self.statistics.seed,
            clusters=reported.queries.cluster_numbers,
        )
        low, high = interval.tolist()
        repeated = replace(comparison.difference, p=p, corrected=p, low=low, high=high)
        return replace(comparison, difference=repeated)

    def _find_default(self, winner: str, reported: Result | None) -> Result | None:
        """Return the result of the default settings on the reported data; None if the winner was selected on these."""
        if reported is None or self.on == self.source.split:
            return None
        point = self.declared.default_of(self.points[winner]) or self._default_choice(winner)
        default = None if point is None else self._default_result(point)
        if default is None or default.dataset.fingerprint != reported.dataset.fingerprint:
            return None
        return default

    def _default_choice(self, winner: str) -> Combination | None:
        """Return the default choices of the swept groups if they are among the candidates.

        Otherwise they are not evaluated, because they may need a model that the user did not request.
        """
        point = self.declared.default_choice_of(self.points[winner])
        if point is None:
            return None
        (combination,) = self._identify(self.declared.experiments([self._move_to_split(point)]))
        return point if combination in self.points else None

    def _default_result(self, point: Combination) -> Result | None:
        """Return the result of the default settings on the reported data, None if the evaluation fails."""
        results = self.run.outcome.results
        try:
            (experiment,) = self.declared.experiments([point])
        except (ConfigError, DatasetError, RetrieverError) as error:
            console.note(f"the default settings could not be evaluated for comparison: {error}")
            return None
        wanted = self._identify([replace(experiment, name=f"default settings ({self.source.split})")])
        (combination,) = wanted
        if combination not in results:
            for _ in self.run.evaluate(wanted, contenders=()):
                pass
        return results.get(combination)

    def _selection(self, best: Result, reported: Result | None) -> WinnerSelection:
        figures = {}
        if reported is not None:
            names = select_headline(best.primary, best.measures)
            figures = {m: Figures(_mean(best, m), _mean(reported, m), reported.intervals[m]) for m in names}
        return WinnerSelection(
            dataset=best.dataset.name,
            on=self.on,
            reported_on=self.source.split,
            winner=best.name,
            swept=best.swept,
            primary=best.primary,
            queries=int(np.count_nonzero(~np.isnan((reported or best).of(best.primary)))),
            figures=figures,
            constraints=compare_figures(self.declared.settings.constraints, best, reported),
        )


def compare_with_default(winner: Result, default: Result, statistics: Statistics) -> DefaultComparison | None:
    """Compare two results by the primary measure, without a correction; return None if no query has a value in both."""
    differences = compute_differences(winner.of(winner.primary)[None], default.of(winner.primary)[None])
    if np.isnan(differences).all():
        return None
    alone = replace(statistics, correction="none")
    comparison = compare(differences, alone, winner.queries.cluster_numbers)
    return DefaultComparison(_mean(default, winner.primary), comparison.describe(0), alone)


def _mean(result: Result, measure: str) -> float:
    """Return a mean, NaN for null."""
    mean = result.means[measure]
    return math.nan if mean is None else float(mean)


def _join_folds(
    best: Result, winners: Sequence[Result], fold_of: NDArray[np.int64], intervals: NDArray[np.float64]
) -> Result:
    """Return a result in which each query has the values of the winner that was selected without the query's fold."""
    scores = np.stack([best.scores, *(winner.scores for winner in winners)])[fold_of + 1, :, np.arange(len(fold_of))].T
    types = np.array(best.queries.types)

    def fold_means(queries: NDArray[np.bool_]) -> Mapping[str, float]:
        return dict(zip(best.measures, means(scores, queries).tolist(), strict=True))

    return replace(
        best,
        scores=scores,
        means=fold_means(fold_of >= 0),
        intervals={name: (low, high) for name, (low, high) in zip(best.measures, intervals.tolist(), strict=True)},
        by_type={
            kind: {**by_type, **fold_means((fold_of >= 0) & (types == kind)), "queries": by_type["queries"]}
            for kind, by_type in best.by_type.items()
        },
        hits=None,
    )
