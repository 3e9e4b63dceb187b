"""Explain the difference between two results: evaluate the settings of both on mixtures of their data.

The store makes this cheap: an index is built once for each version of the documents, and a search that differs only in
its judgments is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.comparison.comparability import NotComparable, find_shared_measures, reorder_queries, score_queries
from runner.comparison.compare import Comparison, TableStatistics, build_comparison
from runner.comparison.data_effect import check_shared_queries
from runner.comparison.headline import GRADE
from runner.comparison.labels import label_results
from runner.config.consent import Consent
from runner.datasets.mixing import DatasetPair
from runner.evaluation.bench import Bench
from runner.evaluation.result import QueryTable, Result
from runner.features.explain.causes import Causes, DataContrast, find_causes
from runner.features.explain.mixed_evaluation import MixedEvaluation, load_data
from runner.features.explain.reversals import QueryStates, find_moved_queries
from runner.features.explain.settings_changes import SettingChange, list_settings_changes
from runner.features.explain.terms import AFTER, BEFORE, Design, Explanation, TermName, name_setting
from runner.results.lookup import Named
from runner.statistics.attribution import Coalition, Floats, iter_coalitions, sample_orders
from runner.statistics.clusters import number_clusters

CANDIDATES_DATA = "With the settings of both on the candidate's data."


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class ExplanationSettings:
    """What is explained and how: the primary measure (None: that of the results), and the term that a gate checks.

    `baseline_data` and `candidate_data` replace recorded settings of a dataset that has moved. Up to `exact_settings`
    changed settings are averaged over all orders, more of them over `orders` sampled ones. `examples` is how many rows
    of a list the terminal shows.
    """

    primary: str | None = None
    term: TermName = "code"
    baseline_data: dict[str, Any] = Field(default_factory=dict)
    candidate_data: dict[str, Any] = Field(default_factory=dict)
    exact_settings: int = Field(default=4, ge=1, le=10)
    orders: int = Field(default=16, ge=2)
    examples: int = Field(default=5, ge=0)


def explain_difference(
    baseline: Named,
    candidate: Named,
    statistics: TableStatistics,
    options: ExplanationSettings,
    open_bench: Callable[[], Bench],
    consent: Consent,
    rules: Sequence[str] = (),
) -> Explanation:
    """Explain the difference of a candidate from a baseline; raises `NotComparable` with the reason if it cannot.

    `rules` are the measures of a gate, which are not exploratory (`runner.comparison.families`).

    Nothing is evaluated if the records alone suffice: the data are the same, and only one setting or the code differs.
    """
    task = _Task(baseline, candidate, statistics, options, rules)
    if not task.has_same_data:
        return task.explain_by_evaluation(open_bench(), consent)
    if len(task.changes) + task.has_other_code <= 1:
        return task.explain_records(task.changes)
    try:
        return task.explain_by_evaluation(open_bench(), consent)
    except NotComparable as reason:
        return task.explain_records(_join_changes(task.changes), f"Code and settings are not split, because {reason}.")


class _Task:
    """What is to be explained, and what the records say about it."""

    def __init__(
        self,
        baseline: Named,
        candidate: Named,
        statistics: TableStatistics,
        options: ExplanationSettings,
        rules: Sequence[str],
    ) -> None:
        self._names, self._statistics, self._options, self._rules = (baseline, candidate), statistics, options, rules
        self._results = first, second = baseline.result, candidate.result
        check_shared_queries(first, second)
        for key, named in (("baseline", baseline), ("candidate", candidate)):
            if not named.result.dataset.fingerprint:
                raise NotComparable(
                    f"{key}={named.source}: a report does not identify its documents, so a difference from it cannot "
                    "be explained; choose a run or a record"
                )
        primary = options.primary or first.primary
        if options.primary is None and second.primary != primary:
            raise NotComparable(
                f"the primary measures differ ({primary} of {first.name}, {second.primary} of {second.name}); choose "
                "one with explain.primary=MEASURE"
            )
        self._notes: list[str] = []
        shared = find_shared_measures([first, second], primary, self._notes)
        self._measures = [measure for measure in shared if measure != GRADE]
        baseline_ids = frozenset(first.queries.ids)
        self._shared_ids = [query for query in second.queries.ids if query in baseline_ids]
        self.changes = list_settings_changes(first.config, second.config)
        self.has_same_data = first.dataset.fingerprint == second.dataset.fingerprint

    @property
    def has_other_code(self) -> bool:
        """Return whether the records identify different code."""
        before, after = (result.environment.get("code") for result in self._results)
        return bool(before and after and before != after)

    def explain_records(self, changes: Sequence[SettingChange], note: str = "") -> Explanation:
        """Explain two results on the same data by their records."""
        first, second = self._results
        columns = _Columns(first.queries.ids, second.queries.ids, frozenset(second.queries.ids))
        design = Design([], changes)
        ends = {frozenset[str](): first, design.everything: second}
        aligned = reorder_queries(first, second.queries.ids)
        states = {coalition: self._read_states(result) for coalition, result in ends.items()}
        notes = [note] if note else []
        return self._build(design, columns, ends, states, Causes({}), [aligned, second], 0, notes)

    def explain_by_evaluation(self, bench: Bench, consent: Consent) -> Explanation:
        """Explain two results by evaluating mixtures of their settings and data."""
        pair = self._load(bench, consent)
        moved = {**self._options.baseline_data, **self._options.candidate_data}
        evaluation = MixedEvaluation(self._results, pair, self.changes, bench, consent, moved)
        nothing, notes = frozenset[str](), list[str]()
        design = self._choose_design(pair)
        evaluation.check([nothing, design.everything])
        try:
            evaluation.check([*iter_coalitions(_list_steps(design)), *design.list_single_reversals()])
        except NotComparable as reason:
            joined = _join_changes(self.changes)
            notes.append(f"Settings are not split, because a mixture of them is invalid: {reason}.")
            design = replace(design, settings=joined, orders=())
            evaluation = MixedEvaluation(self._results, pair, joined, bench, consent, moved)
        everything = design.everything
        kept = {nothing, everything, *(everything - {part} for part in pair.changed), frozenset(pair.changed)}
        wanted = [nothing, everything, *iter_coalitions(_list_steps(design)), *kept, *design.list_single_reversals()]
        evaluations, states = {}, {}
        for coalition in dict.fromkeys(wanted):
            result = evaluation.evaluate(coalition)
            states[coalition] = self._read_states(result)
            evaluations[coalition] = result if coalition in kept else result.light()
        causes = Causes({})
        if pair.changed:
            contrasts = [
                DataContrast(
                    evaluations[everything - {part} if part in pair.changed else everything], evaluations[everything]
                )
                for part in ("documents", "judgments")
            ]
            ends = evaluations[nothing], evaluations[everything]
            causes = find_causes(pair, ends, contrasts[0], contrasts[1], self._measures[0])
        columns = _Columns(pair.first.queries.ids, pair.second.queries.ids, pair.shared_queries)
        notes += self._describe_reproduction(evaluations[nothing], evaluations[everything])
        compared = [evaluations[frozenset(pair.changed)], evaluations[everything]]
        return self._build(design, columns, evaluations, states, causes, compared, len(evaluations), notes)

    def _load(self, bench: Bench, consent: Consent) -> DatasetPair:
        baseline, candidate = self._names
        second = load_data("candidate", candidate, self._options.candidate_data, bench, consent)
        if self.has_same_data:
            return DatasetPair(second, second)
        first = load_data("baseline", baseline, self._options.baseline_data, bench, consent)
        if (first.judgments.spans is None) != (second.judgments.spans is None):
            raise NotComparable(
                "dataset.gold: gold is spans in only one of the results, which cannot be mixed with judgments; "
                "evaluate both with the same dataset.gold"
            )
        return DatasetPair(first, second)

    def _choose_design(self, pair: DatasetPair) -> Design:
        """Return the factors; the orders of many settings are sampled."""
        names = [name_setting(change.name) for change in self.changes]
        is_sampled = len(names) > self._options.exact_settings
        orders = sample_orders(names, self._options.orders, self._statistics.seed) if is_sampled else ()
        return Design(pair.changed, self.changes, orders)

    def _describe_reproduction(self, *evaluations: Result) -> list[str]:
        """Return remarks on evaluations with the same settings and data as a record that differ from it."""
        remarks = []
        for key, recorded, again in zip(("baseline", "candidate"), self._results, evaluations, strict=True):
            before, now = (_list_versions(result) for result in (recorded, again))
            changed = [f"{name} {old} to {now[name]}" for name, old in before.items() if now.get(name, old) != old]
            others = sorted(name for name, old in _code(recorded).items() if _code(again).get(name) != old)
            if others:
                remarks.append(f"The code of {', '.join(others)} has changed since the {key} was recorded.")
            if changed:
                remarks.append(f"Versions have changed since the {key} was recorded: {', '.join(changed)}.")
        return remarks

    def _build(
        self,
        design: Design,
        columns: _Columns,
        evaluations: Mapping[Coalition, Result],
        states: Mapping[Coalition, QueryStates],
        causes: Causes,
        compared: Sequence[Result],
        count: int,
        notes: Sequence[str],
    ) -> Explanation:
        first, second = self._results
        values = {
            measure: {
                BEFORE: columns.align(score_queries(first, measure), first.queries.ids, 0),
                AFTER: columns.align(score_queries(second, measure), second.queries.ids, 1),
            }
            | {
                coalition: columns.align(
                    score_queries(result, measure), result.queries.ids, int(_has_candidate_queries(coalition, design))
                )
                for coalition, result in evaluations.items()
            }
            for measure in self._measures
        }
        table = columns.merge(first.queries, second.queries)
        baseline, candidate = self._names
        labels = label_results([first, second])
        return Explanation(
            labels=(labels[0], labels[1]),
            sources=(baseline.source, candidate.source),
            design=design,
            statistics=self._statistics,
            primary=self._measures[0],
            values=values,
            queries=table,
            clusters=number_clusters(table.clusters),
            causes=causes,
            moved=find_moved_queries(
                self._shared_ids,
                self._read_states(first),
                self._read_states(second),
                {design.everything - coalition: states[coalition] for coalition in states},
                design.changes,
            ),
            on_candidate_data=self._compare(compared, labels),
            evaluations=count,
            notes=[*self._notes, *notes],
            rules=self._rules,
        )

    def _read_states(self, result: Result) -> QueryStates:
        """Return the states of the queries of both results in an evaluation."""
        return QueryStates.of(result, self._measures[0], self._shared_ids)

    def _compare(self, compared: Sequence[Result], labels: Sequence[str]) -> Comparison:
        return build_comparison(
            compared, self._measures, self._statistics, labels=labels, sources=labels, same=CANDIDATES_DATA, notes=[],
            rules=self._rules,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Columns:
    """The queries of both sides in one order: the candidate's, then those that only the baseline has."""

    baseline: Sequence[str]
    candidate: Sequence[str]
    shared: frozenset[str]

    @property
    def others(self) -> list[str]:
        """Return the ids of the queries that only the baseline has."""
        return [query for query in self.baseline if query not in self.shared]

    def align(self, values: Floats, ids: Sequence[str], side: int) -> Floats:
        """Return the values of queries of a side in the common order, NaN for the others."""
        places = {query: i for i, query in enumerate(self.candidate) if side or query in self.shared}
        if not side:
            places |= {query: len(self.candidate) + i for i, query in enumerate(self.others)}
        aligned = np.full(len(self.candidate) + len(self.others), np.nan)
        for query, value in zip(ids, values.tolist(), strict=True):
            aligned[places[query]] = value
        return aligned

    def merge(self, baseline: QueryTable, candidate: QueryTable) -> QueryTable:
        """Return the recorded queries of both sides in the common order."""
        parts = _select_rows(candidate, self.candidate), _select_rows(baseline, self.others)
        columns = {}
        for name in vars(candidate):
            both = [list(getattr(part, name)) for part in parts]
            if name == "clusters" and any(chain(*both)):
                both = [labels or [""] * len(part.ids) for labels, part in zip(both, parts, strict=True)]
            is_complete = all(len(column) == len(part.ids) for column, part in zip(both, parts, strict=True))
            columns[name] = [*both[0], *both[1]] if is_complete else ()
        return QueryTable(**columns)


def _select_rows(table: QueryTable, ids: Sequence[str]) -> QueryTable:
    places = {query: i for i, query in enumerate(table.ids)}
    order = [places[query] for query in ids]
    return QueryTable(**{n: [c[i] for i in order] if (c := getattr(table, n)) else () for n in vars(table)})


def _list_steps(design: Design) -> list[Any]:
    """Return the steps of all factors, and of single settings if there are several."""
    steps = [step for factor in design.factors for step in design.list_factor_steps(factor)]
    if len(design.settings) > 1:
        steps += [step for setting in design.settings for step in design.list_setting_steps(setting.name)]
    return steps


def _has_candidate_queries(coalition: Coalition, design: Design) -> bool:
    return "queries" in coalition or ("queries" not in design.parts and coalition == design.everything)


def _join_changes(changes: Sequence[SettingChange]) -> list[SettingChange]:
    """Return changed settings as one."""
    if len(changes) < 2:
        return list(changes)
    names, before, after = (
        ", ".join(texts) for texts in zip(*((c.name, c.before, c.after) for c in changes), strict=True)
    )
    return [SettingChange(names, before, after, tuple(place for change in changes for place in change.places))]


def _code(result: Result) -> Mapping[str, str]:
    return result.environment.get("code") or {}


def _list_versions(result: Result) -> dict[str, str]:
    """Return the recorded versions of Python and of packages."""
    environment = result.environment
    versions = {"python": environment.get("python", ""), **environment.get("packages", {})}
    return {name: version for name, version in versions.items() if version}
