"""Decide a gate while a configuration is searched: after each block of queries, at any time with the same error rate.

The queries come in random order. A rule passes or fails as soon as a bet on the differences to the baseline has won
enough (`runner.statistics.betting`); the gate passes when all rules have passed, and fails when one has failed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.llm.model_calls import iter_model_calls
from runner.comparison.comparability import NotComparable, compute_depth
from runner.comparison.gate import PRIMARY, Check, Gate, Verdict, conclude, measure_span
from runner.config.objects import ConfigError
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.blocks import score_block
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.measures import parse
from runner.pages.progress import Status
from runner.statistics.betting import SequentialTest
from runner.statistics.clusters import by_cluster, number_clusters

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@settings(frozen=True, config={"extra": "forbid"})
class Blocks:
    """The number of queries (or clusters of variants) of a block, and the seed of their order."""

    block: int = Field(default=20, ge=1)
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Decision:
    """A rule on a measure: its check on the searched queries, and an interval of the difference valid at any time."""

    check: Check
    low: float
    high: float


@dataclass(frozen=True)
class Acceptance:
    """The course of a sequential gate: its decisions, and the ids of the searched queries among the `total` ones.

    `saved_calls` is the largest number of calls of language models that the other queries would have needed.
    """

    baseline: str
    candidate: str
    primary: str
    decisions: Sequence[Decision]
    queries: Sequence[str]
    total: int
    blocks: int
    saved_calls: int

    @property
    def checks(self) -> list[Check]:
        """Return the checks of the rules."""
        return [decision.check for decision in self.decisions]

    @property
    def saved(self) -> int:
        """Return how many queries were not searched."""
        return self.total - len(self.queries)


def accept(experiment: Experiment, baseline: Result, gate: Gate, bench: Bench, blocks: Blocks) -> Acceptance:
    """Search block by block until the gate is decided, and return the course.

    Raises `ConfigError` for a gate that cannot be decided in this way, `NotComparable` for a baseline on other data,
    and `RetrieverError` if a search fails.
    """
    limits = _resolve_limits(gate, experiment)
    dataset = bench.dataset(experiment)
    before = _align_baseline(baseline, experiment, dataset, list(limits))
    grader, *_ = bench.datasets.build_grader(experiment)
    rows = np.flatnonzero((grader.golds > 0) & ~np.isnan(before).any(axis=0))
    if not len(rows):
        raise NotComparable(f"no query has gold and a value in {baseline.name}; evaluate the baseline again")
    clusters = number_clusters(dataset.queries.clusters)
    units = rows if clusters is None else clusters[rows]
    order = np.random.default_rng(blocks.seed).permutation(np.unique(units))
    largest = float(np.unique(units, return_counts=True)[1].max())
    searched, after = rows[:0], np.empty((len(limits), 0))
    decisions: list[Decision] = []
    with Status("accept") as status:
        for start in range(0, len(order), blocks.block):
            status.note(f"{len(searched):,} of {len(rows):,} queries")
            block = rows[np.isin(units, order[start : start + blocks.block])]
            searched = np.concatenate((searched, block))
            after = np.hstack((after, _score(experiment, block, bench, list(limits))))
            place = {unit: i for i, unit in enumerate(order.tolist())}
            own = searched if clusters is None else clusters[searched]
            numbers = np.array([place[unit] for unit in own.tolist()])
            decisions = [
                _decide(name, limit, gate, before[m, searched], after[m], numbers, len(order), largest, len(limits))
                for m, (name, limit) in enumerate(limits.items())
            ]
            if conclude([decision.check for decision in decisions]) != "undecided":
                break
    left = [dataset.queries.inputs[row] for row in np.setdiff1d(rows, searched).tolist()]
    calls = sum(calls.calls for calls in iter_model_calls(experiment.retriever, dataset.corpus, left))
    return Acceptance(
        baseline.name, experiment.name, str(experiment.metrics.primary_measure), decisions,
        [dataset.queries.ids[row] for row in searched.tolist()], len(rows), start // blocks.block + 1, calls,
    )  # fmt: skip


def _decide(
    name: str,
    limit: float,
    gate: Gate,
    before: Floats,
    after: Floats,
    numbers: Rows,
    whole: int,
    largest: float,
    rules: int,
) -> Decision:
    """Return the decision on a rule after the searched queries, given the place of the unit of each in the order."""
    level = (gate.alpha or 0.0) / 2
    test = SequentialTest(
        limit, measure_span(name), level, level / rules, whole, gate.proof == "regression", largest
    )  # fmt: skip
    of_units = by_cluster((after - before)[None], numbers.astype(np.int64))
    passes, fails = (float(stop[0]) for stop in test.find_stops(of_units.sums, of_units.counts))
    verdict: Verdict = "undecided" if math.isinf(min(passes, fails)) else "pass" if passes <= fails else "fail"
    check = Check(
        "candidate", "drop", name, "", float(before.mean()), float(after.mean()), limit, verdict=verdict,
        proof=gate.proof, queries=len(before),
    )  # fmt: skip
    return Decision(check, *test.bound_mean(of_units.sums[0], of_units.counts[0]))


def _score(experiment: Experiment, rows: Rows, bench: Bench, names: Sequence[str]) -> Floats:
    """Return the measures of a block; raises `RetrieverError` if a query failed."""
    scored = score_block(experiment, rows.tolist(), bench, [parse(name) for name in names])
    if scored.errors or not scored.settled:
        place, error = next(iter(scored.errors.items()), (0, "a temporary error"))
        query = bench.dataset(experiment).queries.ids[rows[place]]
        raise RetrieverError(
            f"{experiment.name}: the search for {query} failed ({error}), so nothing is decided; run the same command "
            "to resume"
        )
    return scored.values


def _resolve_limits(gate: Gate, experiment: Experiment) -> Mapping[str, float]:
    """Return the limit of each measure; raises `ConfigError` for rules that cannot be decided block by block."""
    others = ("floors", "floors_by_type", "drops_by_type", "max_errors", "locked")
    if given := next((name for name in others if getattr(gate, name) not in ({}, None)), None):
        raise ConfigError(f"gate.{given}: accept decides only drops over all queries; use compare for other rules")
    if not gate.drops or gate.alpha is None:
        missing = "drops" if not gate.drops else "alpha"
        example = {"drops": "'gate.drops={primary: 0.01}'", "alpha": "gate.alpha=0.05"}[missing]
        raise ConfigError(f"gate.{missing}: accept needs it; set for example {example}")
    primary = str(experiment.metrics.primary_measure)
    limits = {primary if name == PRIMARY else name: limit for name, limit in gate.drops.items()}
    for name, limit in limits.items():
        if not (math.isfinite(measure_span(name)) and name in map(str, experiment.metrics.expanded)):
            raise ConfigError(f"gate.drops.{name}: accept needs a measure of rankings with values from 0 to 1")
        if not limit <= measure_span(name):
            raise ConfigError(f"gate.drops.{name}={limit:g}: should be from 0 to {measure_span(name):g}")
        if experiment.source.gold == "spans" and not parse(name).needs_spans:
            raise ConfigError(f"gate.drops.{name}: with dataset.gold=spans, accept needs a measure of words")
    return limits


def _align_baseline(baseline: Result, experiment: Experiment, dataset: Dataset, names: Sequence[str]) -> Floats:
    """Return the values of the baseline in the order of the dataset (measures x queries); raises `NotComparable`."""
    if baseline.dataset.fingerprint != dataset.fingerprint:
        raise NotComparable(
            f"{baseline.name} was measured on other data ({baseline.dataset.fingerprint[:8] or 'unknown'}, here "
            f"{dataset.fingerprint[:8]}); evaluate the baseline on this dataset first"
        )
    depths = compute_depth(baseline), min(experiment.metrics.depth, len(dataset.corpus))
    if depths[0] != depths[1] and (whole := [name for name in names if "@" not in name]):
        raise NotComparable(
            f"{whole[0]} depends on the depth of the rankings, which is {depths[0]} in {baseline.name} and "
            f"{depths[1]} here; set metrics.depth={depths[0]}"
        )
    places = {query: i for i, query in enumerate(baseline.queries.ids)}
    if missing := [query for query in dataset.queries.ids if query not in places]:
        raise NotComparable(f"{baseline.name} lacks {len(missing):,} queries of this dataset, such as {missing[0]}")
    order = [places[query] for query in dataset.queries.ids]
    return np.array([baseline.of(name)[order] for name in names])
