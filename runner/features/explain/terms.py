"""Why a measure differs between two results: terms for code and settings, documents, judgments and queries.

Works on scores that are already measured; evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from retrievers.choices import OneOf
from runner.comparison.compare import Comparison, TableStatistics, compute_mean
from runner.comparison.families import Family, find_family
from runner.evaluation.result import QueryTable
from runner.features.explain.causes import Causes
from runner.features.explain.reversals import MovedCounts, MovedQuery, count_moved
from runner.features.explain.settings_changes import SettingChange
from runner.statistics.attribution import (
    Attribution,
    Coalition,
    Floats,
    Step,
    attribute,
    compute_significance,
    list_sampled_steps,
    list_steps,
)
from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference

TERMS: Mapping[str, str] = {
    "code": "code and settings",
    "documents": "documents",
    "judgments": "judgments",
    "queries": "queries",
    "total": "total",
}
"""The names of the terms in settings and in reports."""

TermName = Annotated[str, OneOf(TERMS)]

CAUSES = tuple(name for name in TERMS if name != "total")
"""The terms that add up to the total."""

SETTINGS = "settings"
"""The factor of all settings together."""

BEFORE, AFTER = frozenset({"recorded baseline"}), frozenset({"recorded candidate"})
"""The recorded results, which differ from an evaluation with the same settings and data if the code has changed."""

CODE = "code since the record"
"""The part of the term of code and settings that an evaluation with the recorded settings and data shows."""


def name_setting(name: str) -> str:
    """Return the name of a setting in a coalition."""
    return f"setting {name}"


@dataclass(frozen=True, eq=False)
class Design:
    """The factors that changed, and how often each setting is averaged over orders.

    `parts` are the changed parts of the data and `settings` the changed settings. `orders` are sampled orders of the
    settings; empty if all orders count.
    """

    parts: Sequence[str]
    settings: Sequence[SettingChange]
    orders: Sequence[Sequence[str]] = ()

    @property
    def factors(self) -> list[str]:
        """Return the factors that changed."""
        return [*([SETTINGS] if self.settings else []), *self.parts]

    @property
    def changes(self) -> dict[str, str]:
        """Return the names in reports of the settings and parts that changed, by their names in coalitions."""
        names = {name_setting(setting.name): setting.name for setting in self.settings}
        return names | {part: part for part in self.parts}

    @property
    def everything(self) -> Coalition:
        """Return the coalition of the candidate."""
        return frozenset(self.changes)

    def expand(self, factors: Coalition) -> Coalition:
        """Return a coalition of factors as one of settings and parts."""
        names = {name_setting(setting.name) for setting in self.settings} if SETTINGS in factors else set()
        return frozenset(factors - {SETTINGS} | names)

    def list_single_reversals(self) -> list[Coalition]:
        """Return the coalitions of the candidate with one change reversed."""
        return [self.everything - {change} for change in self.changes]

    def list_factor_steps(self, factor: str) -> list[Step]:
        """Return the steps of a factor."""
        steps = list_steps(factor, self.factors)
        return [(weight, self.expand(after), self.expand(before)) for weight, after, before in steps]

    def list_setting_steps(self, name: str) -> list[Step]:
        """Return the steps of one setting, within each step of all settings together (Owen 1977)."""
        names = [name_setting(setting.name) for setting in self.settings]
        own = (
            list_sampled_steps(name_setting(name), self.orders)
            if self.orders
            else list_steps(name_setting(name), names)
        )
        return [
            (outer * inner, frozenset(others | after), frozenset(others | before))
            for outer, _, others in self.list_factor_steps(SETTINGS)
            for inner, after, before in own
        ]


@dataclass(frozen=True)
class EffectTerm:
    """A term of a difference of two results, tested as one itself, and its parts.

    `least` and `most` are its smallest and largest value over the states of the other factors. An unchanged factor has
    the effect 0.
    """

    name: str
    difference: Difference
    least: float
    most: float
    changed: bool = True
    parts: Sequence[EffectTerm] = ()

    @property
    def effect(self) -> float:
        """Return the size of the term."""
        return self.difference.mean

    def to_dict(self) -> dict[str, Any]:
        """Return the term for JSON and data frames, with the fields of its difference beside the others."""
        own = self.difference
        tested = {name: getattr(own, name) for name in ("low", "high", "p", "corrected", "significant")}
        return {
            "name": self.name,
            "effect": self.effect,
            **tested,
            "least": self.least,
            "most": self.most,
            "differing": own.differing,
            "queries": own.queries,
            "changed": self.changed,
            "parts": [part.to_dict() for part in self.parts],
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """The difference between two results and the values that explain it.

    `values` has, for each measure, the value of each query in each coalition; the queries are those of both sides, the
    shared ones once. `on_candidate_data` compares the baseline's and the candidate's settings on the candidate's data.
    `moved` are the queries that moved, with what restores them. `evaluations` is how many evaluations this took, and
    `rules` are the measures of a gate.
    """

    labels: tuple[str, str]
    sources: tuple[str, str]
    design: Design
    statistics: TableStatistics
    primary: str
    values: Mapping[str, Mapping[Coalition, Floats]]
    queries: QueryTable
    clusters: Clusters | None
    causes: Causes
    moved: Sequence[MovedQuery]
    on_candidate_data: Comparison
    evaluations: int
    notes: Sequence[str] = ()
    rules: Sequence[str] = ()
    _terms: dict[str, list[EffectTerm]] = field(default_factory=dict, repr=False)
    _totals: dict[str, EffectTerm] = field(default_factory=dict, repr=False)

    @property
    def measures(self) -> list[str]:
        """Return the measures that both results have, the primary one first."""
        return list(self.values)

    def count_queries(self) -> tuple[int, int, int]:
        """Return how many queries count in the baseline, in the candidate and in both, by the primary measure."""
        before, after = (~np.isnan(self.values[self.primary][side]) for side in (BEFORE, AFTER))
        return int(before.sum()), int(after.sum()), int((before & after).sum())

    def count_moved(self) -> MovedCounts:
        """Count the queries that moved by what restores them."""
        return count_moved(self.moved, [*self.design.changes.values()])

    def compute_means(self, measure: str) -> tuple[float, float]:
        """Return the recorded means of the baseline and of the candidate."""
        values = self.values[measure]
        return compute_mean(values[BEFORE]), compute_mean(values[AFTER])

    def list_terms(self, measure: str) -> list[EffectTerm]:
        """Return the four terms of a measure; their effects add up to the difference of the recorded means."""
        if measure not in self._terms:
            self._terms.update(self._build_terms(self._list_family(measure)))
        return self._terms[measure]

    def build_total(self, measure: str) -> EffectTerm:
        """Return the difference of the recorded means as a term."""
        if measure not in self._totals:
            family = self._list_family(measure)
            totals = self._test([[("total", self.attribute("total", other))] for other in family])
            self._totals.update((other, total) for other, (total,) in zip(family, totals, strict=True))
        return self._totals[measure]

    def find_family(self, measure: str) -> Family:
        """Return the family of measures that the tests of a measure are corrected with."""
        return find_family(measure, self.primary, self.rules)

    def _list_family(self, measure: str) -> list[str]:
        return [other for other in self.measures if self.find_family(other) == self.find_family(measure)]

    def attribute(self, term: TermName, measure: str, selected: NDArray[np.bool_] | None = None) -> Attribution | None:
        """Return a term over all queries, or over those `selected`; None if its factor did not change."""
        steps = self.list_term_steps(term)
        return self._attribute(steps, measure, selected) if steps else None

    def is_paired(self, term: str) -> bool:
        """Return whether a term compares the same queries with themselves."""
        return "queries" not in self.design.parts or term not in ("queries", "total")

    def list_term_steps(self, term: TermName) -> list[Step]:
        """Return the steps of a term; none if its factor did not change."""
        if term == "total":
            return [(1.0, AFTER, BEFORE)]
        if term == "code":
            return [
                *self._list_code_steps(),
                *(self.design.list_factor_steps(SETTINGS) if self.design.settings else []),
            ]
        return self.design.list_factor_steps(term) if term in self.design.parts else []

    def _list_code_steps(self) -> list[Step]:
        """Return the steps from the recorded results to evaluations with the same settings and data."""
        steps = [(1.0, frozenset[str](), BEFORE), (1.0, AFTER, self.design.everything)]
        values = self.values.values()
        return [
            step for step in steps if not all(np.array_equal(of[step[1]], of[step[2]], equal_nan=True) for of in values)
        ]

    def _attribute(self, steps: Sequence[Step], measure: str, selected: NDArray[np.bool_] | None = None) -> Attribution:
        values = self.values[measure]
        if selected is not None:
            values = {coalition: np.where(selected, column, np.nan) for coalition, column in values.items()}
        return attribute(values, steps)

    def _build_terms(self, family: Sequence[str]) -> dict[str, list[EffectTerm]]:
        """Return the terms of each measure of a family."""
        terms = self._test([[(name, self.attribute(name, measure)) for name in CAUSES] for measure in family])
        parts = self._test([self._list_parts(measure) for measure in family])
        return {
            measure: [replace(code, parts=own), *others]
            for measure, (code, *others), own in zip(family, terms, parts, strict=True)
        }

    def _list_parts(self, measure: str) -> list[tuple[str, Attribution | None]]:
        """Return the parts of code and settings, if there are several."""
        code, settings = self._list_code_steps(), self.design.settings
        parts = [(CODE, code)] if code else []
        parts += [(str(setting), self.design.list_setting_steps(setting.name)) for setting in settings]
        return [(name, self._attribute(steps, measure)) for name, steps in parts] if len(parts) > 1 else []

    def _test(self, measures: Sequence[Sequence[tuple[str, Attribution | None]]]) -> list[list[EffectTerm]]:
        """Return the terms of measures with intervals and p-values, corrected for all changed ones among them."""
        some = [(name, own) for terms in measures for name, own in terms if own is not None]
        paired = [self.is_paired(name) for name, _ in some]
        tested = iter(compute_significance([own for _, own in some], paired, self.statistics, self.clusters))
        unchanged = Difference(0.0, 0.0, 0.0, 1.0, 1.0)
        return [
            [
                EffectTerm(TERMS.get(name, name), unchanged, 0.0, 0.0, changed=False)  # a part has a name of its own
                if own is None
                else EffectTerm(TERMS.get(name, name), next(tested), own.least, own.most)
                for name, own in terms
            ]
            for terms in measures
        ]

    def list_shares(self, term: TermName, measure: str) -> list[tuple[int, float]]:
        """Return the queries that add to a term, as positions with their shares, the largest loss first.

        The shares of all queries add up to the term. A query that only one side has a share in the term of the queries
        that is not of interest by itself, so that term has none.
        """
        own = None if term == "queries" else self.attribute(term, measure)
        if own is None:
            return []
        positions = np.flatnonzero(np.abs(np.nan_to_num(own.shares)) > 1e-12)
        return sorted(((int(i), float(own.shares[i])) for i in positions), key=lambda pair: (pair[1], pair[0]))
