"""Check rules for a comparison: minimum values, largest drops from the baseline, and the largest number of errors.

A drop violates its rule if it is larger than allowed and, unless `alpha` is null, significant by a paired test over the
queries. A rule whose measure has no value is violated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.comparison.comparability import score_queries
from runner.comparison.compare import Comparison, Floats, TableStatistics, compute_mean
from runner.comparison.headline import GRADE, TN_RATE, UNRANKED_MEASURES
from runner.config.objects import ConfigError, suggestion
from runner.evaluation.grading import SCALE
from runner.metrics.measures import parse
from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Differences, compare
from runner.statistics.corrections import correct
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.significance import compute_differences

PRIMARY = "primary"
"""In a rule, stands for the primary measure of the results."""

EVERY_TYPE = "*"
"""In a rule, stands for all query types."""

PERCENT = 2
"""A limit of at least this size, for a measure from 0 to 1, may have been meant as a percentage."""

Floors = dict[str, float]
Drops = dict[str, Annotated[float, Field(ge=0)]]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Gate:
    """Minimum values and largest drops of measures, overall and by query type, and the largest number of errors.

    A measure is written as in ir_measures or in words (`P@5`, `precision@5`, `mrr`); `primary` is that of the results,
    `tn_rate` that of the queries without gold, `grade` that of a language model. The type `*` stands for every type. A
    drop must be significant at `alpha`; its p-value is corrected for all checked drops over all queries, or for all
    drops by type. If `alpha` is null, every drop beyond its limit counts.
    """

    access: ClassVar[Access] = Access()

    floors: Floors = Field(default_factory=dict)
    floors_by_type: dict[str, Floors] = Field(default_factory=dict)
    drops: Drops = Field(default_factory=dict)
    drops_by_type: dict[str, Drops] = Field(default_factory=dict)
    alpha: float | None = Field(default=0.05, gt=0, lt=1)
    max_errors: int | None = Field(default=None, ge=0)

    @field_validator("floors", "drops")
    @classmethod
    def _parse_rules(cls, rules: dict[str, float]) -> dict[str, float]:
        return {parse_measure(name): limit for name, limit in rules.items()}

    @field_validator("floors_by_type", "drops_by_type")
    @classmethod
    def _parse_rules_by_type(cls, rules: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {kind: cls._parse_rules(of_type) for kind, of_type in rules.items()}


@dataclass(frozen=True)
class Check:
    """A rule and whether a system satisfies it.

    `before` is the value of the baseline (NaN for a minimum), `after` that of the system, and `limit` the minimum
    value, the largest drop or the largest number of errors. `p` is the corrected p-value of a drop beyond its limit.
    `too_few` marks a drop that could not have been significant with so few queries. `cost` of a TN rate is the
    share of the answerable queries that get no results.
    """

    system: str
    rule: Literal["floor", "drop", "errors"]
    measure: str
    type: str
    before: float
    after: float
    limit: float
    p: float = math.nan
    violated: bool = False
    too_few: bool = False
    cost: float | None = None

    @property
    def drop(self) -> float:
        """Return the loss from the baseline."""
        return self.before - self.after


def parse_measure(name: str) -> str:
    """Return the measure that a rule names; raises `MeasureError`."""
    return name if name in (PRIMARY, *UNRANKED_MEASURES) else str(parse(name))


def check_gate(gate: Gate, comparison: Comparison) -> list[Check]:
    """Check each system except the first; raises `ConfigError` for a rule that applies to nothing."""
    checks: list[Check] = []
    for system in range(1, len(comparison.results)):
        checks += check_floors(gate, comparison, system)
        checks += _check_drops(gate, comparison, system)
        checks += check_errors(gate, comparison, system)
    return checks


def check_errors(gate: Gate, comparison: Comparison, system: int) -> Iterator[Check]:
    """Yield the check of the number of failed queries, if it is limited."""
    if gate.max_errors is not None:
        before, errors = (len(comparison.results[i].failures) for i in (0, system))
        is_violated = errors > gate.max_errors
        label = comparison.labels[system]
        yield Check(label, "errors", "errors", "", before, errors, gate.max_errors, violated=is_violated)


def check_floors(gate: Gate, comparison: Comparison, system: int) -> Iterator[Check]:
    """Yield the checks of minimum values, each over all queries that count for the system."""
    result, label = comparison.results[system], comparison.labels[system]
    for kind, measure, limit in iter_rules(gate.floors, gate.floors_by_type, "floors", comparison):
        value = compute_mean(select_type(score_queries(result, measure), kind, comparison))
        cost = result.abstention.everything.left_with_nothing if measure == TN_RATE else None
        yield Check(label, "floor", measure, kind, math.nan, value, limit, violated=not value >= limit, cost=cost)


def _check_drops(gate: Gate, comparison: Comparison, system: int) -> list[Check]:
    """Return the checks of drops, each over the queries that count for both systems.

    Drops over all queries are one family of tests and drops by type another, so that many types do not weaken the
    test over all queries.
    """
    results, label = (comparison.results[0], comparison.results[system]), comparison.labels[system]
    families: dict[bool, list[tuple[Check, Floats]]] = {}
    for kind, measure, limit in iter_rules(gate.drops, gate.drops_by_type, "drops", comparison):
        scores = np.array([select_type(score_queries(result, measure), kind, comparison) for result in results])
        scores[:, np.isnan(scores).any(axis=0)] = np.nan
        cost = results[1].abstention.everything.left_with_nothing if measure == TN_RATE else None
        check = Check(label, "drop", measure, kind, compute_mean(scores[0]), compute_mean(scores[1]), limit, cost=cost)
        families.setdefault(bool(kind), []).append((check, compute_differences(scores[1], scores[0])))
    statistics, clusters = comparison.statistics, comparison.cluster_numbers
    return [c for family in families.values() for c in judge_drops(family, gate.alpha, statistics, clusters)]


def judge_drops(
    family: Sequence[tuple[Check, Floats]],
    alpha: float | None,
    statistics: TableStatistics,
    clusters: Clusters | None,
    weights: Floats | None = None,
) -> Iterator[Check]:
    """Yield the checks of a family of drops, each with its paired differences; p-values are corrected together.

    With weights (drops x queries), a query counts as that many.
    """
    rows = None
    if alpha is not None:  # enough permutations for a single test to reach a p-value below alpha
        enough = max(statistics.permutations, math.ceil(2 / alpha))
        of_gate = replace(statistics, alpha=alpha, permutations=enough)
        rows = compare(np.array([differences for _, differences in family]), of_gate, clusters, weights)
    for i, (check, _) in enumerate(family):
        if math.isnan(check.drop):
            yield replace(check, violated=True)
        elif check.drop <= check.limit + 1e-12:
            yield check
        elif rows is None or alpha is None:
            yield replace(check, violated=True)
        else:
            p = float(rows.p_values[i])
            yield replace(check, p=p, violated=p < alpha, too_few=_compute_least_p(rows, i, statistics) >= alpha)


def _compute_least_p(rows: Differences, i: int, statistics: TableStatistics) -> float:
    """Return the smallest possible p-value of a drop, if all its queries had lost and other tests did not change."""
    smallest = PAIRED_TESTS[statistics.test].smallest_p(int(rows.units[i]))
    p_values = rows.uncorrected.copy()
    p_values[i] = min(p_values[i], smallest)
    return float(correct(p_values, statistics.correction)[i])


def select_type(values: Floats, kind: str, comparison: Comparison) -> Floats:
    """Return the values of the queries of a type ("" for all), NaN for the others."""
    selected = np.array([kind in ("", of_query) for of_query in comparison.queries.types])
    return np.where(selected, values, np.nan)


def iter_rules(
    overall: Mapping[str, float], by_type: Mapping[str, Mapping[str, float]], place: str, comparison: Comparison
) -> Iterator[tuple[str, str, float]]:
    """Yield the type ("" for all queries), the measure and the limit of each rule."""
    types = sorted({*comparison.queries.types} - {""})
    for name, limit in overall.items():
        yield "", _resolve_measure(name, limit, place, comparison), limit
    for kind, rules in by_type.items():
        if kind != EVERY_TYPE and kind not in types:
            raise ConfigError(f"gate.{place}_by_type.{kind}: no query has this type; {suggestion(kind, types)}")
        for name, limit in rules.items():
            measure = _resolve_measure(name, limit, f"{place}_by_type.{kind}", comparison)
            yield from ((one_type, measure, limit) for one_type in _select_types(kind, types, measure, comparison))


def _select_types(kind: str, types: Sequence[str], measure: str, comparison: Comparison) -> Sequence[str]:
    """Return the types of a rule: for `EVERY_TYPE`, all with queries that the measure applies to."""
    if kind != EVERY_TYPE:
        return [kind]
    values = score_queries(comparison.results[0], measure)
    return [one for one in types if not np.isnan(select_type(values, one, comparison)).all()]


def _resolve_measure(name: str, limit: float, place: str, comparison: Comparison) -> str:
    """Return the measure of a rule; raises `ConfigError` if it is missing or cannot reach the limit.

    For a drop, the measure must have the same meaning in all results.
    """
    measure = comparison.primary if name == PRIMARY else name
    known = set.intersection(*({*result.measures, *UNRANKED_MEASURES} for result in comparison.results))
    if place.startswith("drops"):
        known &= {*comparison.table}
    if measure not in known:
        raise ConfigError(
            f"gate.{place}.{name}: not measured in all results, or measured differently; {suggestion(measure, known)}"
        )
    least, greatest = _range(measure)
    low, high = (0.0, greatest - least) if place.startswith("drops") else (least, greatest)
    if not low <= limit <= high:
        meant = f"; did you mean {limit / 100:g}?" if limit >= PERCENT and limit / 100 <= high else ""
        what = "a drop" if place.startswith("drops") else "the measure"
        raise ConfigError(
            f"gate.{place}.{name}={limit:g}: should be from {low:g} to {high:g}, the range of {what}{meant}"
        )
    return measure


def _range(measure: str) -> tuple[float, float]:
    """Return the smallest and the largest value of a measure, infinite if unknown."""
    if measure == GRADE:
        return SCALE.least, SCALE.greatest
    return (0.0, 1.0) if measure == TN_RATE or parse(measure).built_in else (-math.inf, math.inf)
