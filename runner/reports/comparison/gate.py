"""What a result must not fall below, and what it must not lose against a baseline: rules, and whether they hold.

A loss counts when it is larger than allowed and, unless `alpha` is null, a paired test over the queries says that it
is not noise. What can't be measured does not hold. Knows nothing of where a comparison is from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from runner.analysis.comparison import Differences
from runner.analysis.corrections import correct
from runner.analysis.grading import SCALE
from runner.analysis.paired_tests import PAIRED_TESTS
from runner.analysis.significance import compute_differences
from runner.config.objects import ConfigError, suggestion
from runner.metrics.measures import parse
from runner.reports.comparison.comparability import GRADE, OTHERS, TN_RATE, per_query
from runner.reports.comparison.compare import Comparison, Floats, TableStatistics, mean, tested
from runner.reports.rendering.numbers import format_count, number, p_value, percent, score, score4
from runner.result import Result

PRIMARY = "primary"
"""What the results' own primary measure is called in a rule."""

EVERY_TYPE = "*"
"""What all query types are called in a rule."""

PERCENT = 2
"""A limit from here on, of a measure that goes to 1, may be thought of in percent."""

Floors = dict[str, float]
Drops = dict[str, Annotated[float, Field(ge=0)]]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Gate:
    """The rules: least values and largest drops of measures, overall and by query type, and errors that are allowed.

    A measure is written as in ir_measures or in words (`P@5`, `precision@5`, `mrr`), `primary` is the results' own,
    `tn_rate` that of the queries whose right answer is nothing, `grade` a language model's. The type `*` is every type.
    `alpha` is how sure a drop must be, by the p-value corrected for all drops that are looked at, those over all
    queries and those by type apart; null makes every larger drop count.
    """

    floors: Floors = Field(default_factory=dict)
    floors_by_type: dict[str, Floors] = Field(default_factory=dict)
    drops: Drops = Field(default_factory=dict)
    drops_by_type: dict[str, Drops] = Field(default_factory=dict)
    alpha: float | None = Field(default=0.05, gt=0, lt=1)
    max_errors: int | None = Field(default=None, ge=0)

    @field_validator("floors", "drops")
    @classmethod
    def _known(cls, rules: dict[str, float]) -> dict[str, float]:
        return {measure_called(name): limit for name, limit in rules.items()}

    @field_validator("floors_by_type", "drops_by_type")
    @classmethod
    def _known_by_type(cls, rules: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {kind: cls._known(of_type) for kind, of_type in rules.items()}


@dataclass(frozen=True)
class Check:
    """A rule, and how a system did by it.

    `before` is the baseline's value (NaN for a floor), `after` the system's, `limit` what is allowed: the least value,
    the largest drop, the most errors. `p` is the corrected p-value of a drop that is larger than allowed. The queries
    are `too_few` where such a drop could not have been sure, whatever became of them. `cost` is what a TN rate cost
    the answerable queries, in words.
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
    cost: str = ""

    @property
    def drop(self) -> float:
        """Return how much was lost."""
        return self.before - self.after

    def told(self) -> str:
        """Return in a line what became of the rule."""
        what = f"{self.system}: {self.measure}" + (f" of type {self.type}" if self.type else "")
        if self.rule == "errors":
            failed = format_count(int(self.after), "query", "queries")
            return f"{self.system}: {failed} raised an error, {number(int(self.limit))} may"
        if math.isnan(self.after):
            return f"{what} can't be measured: no query counts"
        if self.rule == "floor":
            return (
                f"{what} is {score4(self.after)}{self.cost}, {'below' if self.violated else 'at least'} {self.limit:g}"
            )
        fell = f"{what} fell by {score4(self.drop)}, from {score4(self.before)} to {score4(self.after)}{self.cost}"
        if not self.drop > self.limit:
            return f"{fell}: {self.limit:g} is allowed" if self.drop > 0 else f"{what} did not fall{self.cost}"
        sure = "" if math.isnan(self.p) else f" (p {'' if self.p < 0.001 else '= '}{p_value(self.p)})"
        unsure = ", with too few queries to tell" if self.too_few else ", which may be noise"
        return f"{fell}: more than {self.limit:g}{sure}" + ("" if self.violated else unsure)


def measure_called(name: str) -> str:
    """Return the measure that a rule names; raises `MeasureError`."""
    return name if name in (PRIMARY, *OTHERS) else str(parse(name))


def checked(gate: Gate, comparison: Comparison) -> list[Check]:
    """Return how each system but the first does by the rules; raises `ConfigError` for one that nothing fits."""
    found: list[Check] = []
    for system in range(1, len(comparison.results)):
        found += _floors(gate, comparison, system)
        found += _drops(gate, comparison, system)
        if gate.max_errors is not None:
            errors = len(comparison.results[system].failures)
            label = comparison.labels[system]
            before = len(comparison.results[0].failures)
            found.append(
                Check(label, "errors", "errors", "", before, errors, gate.max_errors, violated=errors > gate.max_errors)
            )
    return found


def _floors(gate: Gate, comparison: Comparison, system: int) -> Iterator[Check]:
    """Yield the checks of least values, each over all queries that count for the system."""
    result, label = comparison.results[system], comparison.labels[system]
    for kind, measure, limit in _rules(gate.floors, gate.floors_by_type, "floors", comparison):
        value = mean(_of_type(per_query(result, measure), kind, comparison))
        cost = describe_cost(result) if measure == TN_RATE else ""
        yield Check(label, "floor", measure, kind, math.nan, value, limit, violated=not value >= limit, cost=cost)


def _drops(gate: Gate, comparison: Comparison, system: int) -> list[Check]:
    """Return the checks of drops, each over the queries that count for both.

    Those over all queries are one family of tests, those by type another: many types make no other drop less sure.
    """
    results, label = (comparison.results[0], comparison.results[system]), comparison.labels[system]
    families: dict[bool, list[tuple[Check, Floats]]] = {}
    for kind, measure, limit in _rules(gate.drops, gate.drops_by_type, "drops", comparison):
        scores = np.array([_of_type(per_query(result, measure), kind, comparison) for result in results])
        scores[:, np.isnan(scores).any(axis=0)] = np.nan
        cost = describe_cost(results[1]) if measure == TN_RATE else ""
        check = Check(label, "drop", measure, kind, mean(scores[0]), mean(scores[1]), limit, cost=cost)
        families.setdefault(bool(kind), []).append((check, compute_differences(scores[1], scores[0])))
    return [each for family in families.values() for each in _judged(family, gate.alpha, comparison)]


def _judged(family: Sequence[tuple[Check, Floats]], alpha: float | None, comparison: Comparison) -> Iterator[Check]:
    """Yield the checks of drops that are corrected for together."""
    rows, statistics = None, comparison.statistics
    if alpha is not None:  # with so many permutations that even one test of them alone can be below alpha
        enough = max(statistics.permutations, math.ceil(2 / alpha))
        as_sure = replace(statistics, alpha=alpha, permutations=enough)
        rows = tested(np.array([differences for _, differences in family]), as_sure, comparison.cluster_numbers)
    for i, (check, _) in enumerate(family):
        if math.isnan(check.drop):
            yield replace(check, violated=True)
        elif check.drop <= check.limit + 1e-12:
            yield check
        elif rows is None or alpha is None:
            yield replace(check, violated=True)
        else:
            p = float(rows.p_values[i])
            yield replace(check, p=p, violated=p < alpha, too_few=_least(rows, i, statistics) >= alpha)


def _least(rows: Differences, i: int, statistics: TableStatistics) -> float:
    """Return the corrected p-value that a drop would have if all of its queries had lost, all else being equal."""
    smallest = PAIRED_TESTS[statistics.test].smallest_p(int(rows.units[i]))
    p_values = rows.uncorrected.copy()
    p_values[i] = min(p_values[i], smallest)
    return float(correct(p_values, statistics.correction)[i])


def describe_cost(result: Result) -> str:
    """Return what a result's TN rate cost its answerable queries, in brackets."""
    everything = result.abstention.everything
    lost, rejected = score(everything.recall_lost), percent(everything.left_with_nothing)
    return f" (recall lost {lost}, answerable queries rejected {rejected})"


def _of_type(values: Floats, kind: str, comparison: Comparison) -> Floats:
    of_type = np.array([kind in ("", each) for each in comparison.queries.types])
    return np.where(of_type, values, np.nan)


def _rules(
    overall: Mapping[str, float], by_type: Mapping[str, Mapping[str, float]], place: str, comparison: Comparison
) -> Iterator[tuple[str, str, float]]:
    """Yield the type ("" for all queries), the measure and the limit of each rule."""
    types = sorted({*comparison.queries.types} - {""})
    for name, limit in overall.items():
        yield "", _measured(name, limit, place, comparison), limit
    for kind, rules in by_type.items():
        if kind != EVERY_TYPE and kind not in types:
            raise ConfigError(f"gate.{place}_by_type.{kind}: no query is of this type; {suggestion(kind, types)}")
        for name, limit in rules.items():
            measure = _measured(name, limit, f"{place}_by_type.{kind}", comparison)
            yield from ((each, measure, limit) for each in _types(kind, types, measure, comparison))


def _types(kind: str, types: Sequence[str], measure: str, comparison: Comparison) -> Sequence[str]:
    """Return the types that a rule is about: of every type, those that have queries which the measure is for."""
    if kind != EVERY_TYPE:
        return [kind]
    values = per_query(comparison.results[0], measure)
    return [each for each in types if not np.isnan(_of_type(values, each, comparison)).all()]


def _measured(name: str, limit: float, place: str, comparison: Comparison) -> str:
    """Return the measure of a rule, whose limit it can reach; a drop needs one that means the same in all results."""
    measure = comparison.primary if name == PRIMARY else name
    known = set.intersection(*({*result.measures, *OTHERS} for result in comparison.results))
    if place.startswith("drops"):
        known &= {*comparison.table}
    if measure not in known:
        raise ConfigError(f"gate.{place}.{name}: not measured, or not alike, in all; {suggestion(measure, known)}")
    least, greatest = _range(measure)
    low, high = (0.0, greatest - least) if place.startswith("drops") else (least, greatest)
    if not low <= limit <= high:
        meant = f"; did you mean {limit / 100:g}?" if limit >= PERCENT and limit / 100 <= high else ""
        what = "a drop of it" if place.startswith("drops") else "it"
        raise ConfigError(f"gate.{place}.{name}={limit:g}: {what} is from {low:g} to {high:g}{meant}")
    return measure


def _range(measure: str) -> tuple[float, float]:
    """Return the least and the greatest value of a measure, infinite where nobody says."""
    if measure == GRADE:
        return SCALE.least, SCALE.greatest
    return (0.0, 1.0) if measure == TN_RATE or parse(measure).built_in else (-math.inf, math.inf)
