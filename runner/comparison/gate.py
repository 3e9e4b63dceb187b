"""Check rules for a comparison: minimum values, largest drops from the baseline, and the largest number of errors.

A minimum value or a number of errors passes or fails. A drop can also be undecided, if there are too few queries to
tell (`Gate.proof`). A rule whose measure has no value fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import yaml
from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.comparison.comparability import score_queries
from runner.comparison.compare import Comparison, Floats, TableStatistics, compute_mean
from runner.comparison.headline import GRADE, TN_RATE, UNRANKED_MEASURES
from runner.config import CONF
from runner.config.objects import ConfigError, build, suggestion
from runner.evaluation.grading import SCALE
from runner.evaluation.result import Result
from runner.metrics.measures import parse
from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference, compare
from runner.statistics.corrections import CORRECTIONS, level_of_each
from runner.statistics.noninferiority import bound_losses, queries_to_exclude
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
Verdict = Literal["pass", "fail", "undecided"]

EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 1, "undecided": 4}
"""The exit codes of a command with a gate."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Gate:
    """Minimum values and largest drops of measures, overall and by query type, and the largest number of errors.

    A measure is written as in ir_measures or in words (`P@5`, `precision@5`, `mrr`); `primary` is that of the results,
    `tn_rate` that of the queries without gold, `grade` that of a language model. The type `*` stands for every type.
    With `proof` regression, a drop within its limit passes, a larger one fails if it is significant at `alpha`, and is
    undecided otherwise. With noninferior, a drop passes if a loss beyond the limit is excluded, fails if a loss is
    significant, and is undecided otherwise. If `alpha` is null, every drop beyond its limit fails. `undecided` says
    whether an undecided gate fails, passes, or passes with a warning. `locked` names a locked split, which only answers
    whether all rules hold, and `looks` is how many questions it answers (`runner.comparison.locked`).
    """

    access: ClassVar[Access] = Access()

    floors: Floors = Field(default_factory=dict)
    floors_by_type: dict[str, Floors] = Field(default_factory=dict)
    drops: Drops = Field(default_factory=dict)
    drops_by_type: dict[str, Drops] = Field(default_factory=dict)
    alpha: float | None = Field(default=0.05, gt=0, lt=1)
    proof: Literal["regression", "noninferior"] = "regression"
    undecided: Literal["fail", "pass", "warn"] = "fail"
    max_errors: int | None = Field(default=None, ge=0)
    locked: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    looks: int = Field(default=100, ge=1, le=10_000)

    @field_validator("floors", "drops")
    @classmethod
    def _parse_rules(cls, rules: dict[str, float]) -> dict[str, float]:
        return {parse_measure(name): limit for name, limit in rules.items()}

    @field_validator("floors_by_type", "drops_by_type")
    @classmethod
    def _parse_rules_by_type(cls, rules: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {kind: cls._parse_rules(of_type) for kind, of_type in rules.items()}

    @model_validator(mode="after")
    def _check_alpha(self) -> Gate:
        if self.proof == "noninferior" and self.alpha is None:
            raise ValueError("proof=noninferior excludes a loss at a level; set alpha, for example to 0.05")
        return self

    @model_validator(mode="after")
    def _check_locked(self) -> Gate:
        if self.locked is not None and self.proof != "noninferior":
            raise ValueError(f"locked={self.locked} answers what is proven; set proof=noninferior")
        if self.locked is not None and not (self.drops or self.drops_by_type):
            raise ValueError(
                f"locked={self.locked} needs a rule on a drop, for example drops={{primary: 0}}: not worse"
            )
        return self

    @property
    def measures(self) -> list[str]:
        """Return the measures of the drops over all queries, other than the primary one."""
        return [name for name in self.drops if name != PRIMARY]


@dataclass(frozen=True)
class Look:
    """A question to the locked split `split`: its number, at which level it was answered, and how many are left.

    `budget` is the number of all questions, and `is_repeated` whether this one was asked before.
    """

    split: str
    number: int
    budget: int
    left: int
    level: float
    is_repeated: bool = False


@dataclass(frozen=True)
class Check:
    """A rule and whether a system satisfies it.

    `before` is the value of the baseline (NaN for a minimum), `after` that of the system, and `limit` the minimum
    value, the largest drop or the largest number of errors. `p` is the corrected p-value of a drop, and `hidden` the
    largest drop that the data do not exclude. If it is undecided, `more` further queries would decide it, on
    `differing` of which the systems would differ; both are NaN otherwise. `cost` of a TN rate is the share of the
    answerable queries that get no results. The rule "locked" is that all rules hold, and `look` the look at the split.
    """

    system: str
    rule: Literal["floor", "drop", "errors", "locked"]
    measure: str
    type: str
    before: float
    after: float
    limit: float
    p: float = math.nan
    verdict: Verdict = "pass"
    proof: Literal["regression", "noninferior"] = "regression"
    hidden: float = math.nan
    queries: int = 0
    more: float = math.nan
    differing: float = math.nan
    cost: float | None = None
    look: Look | None = None

    @property
    def drop(self) -> float:
        """Return the loss from the baseline."""
        return self.before - self.after

    @property
    def exceeds(self) -> bool:
        """Return whether the drop is larger than allowed."""
        return self.drop > self.limit + 1e-12


def load_gate(name: str) -> Gate:
    """Return a gate of `conf/gate` by its name; raises `ConfigError`."""
    names = sorted(file.stem for file in (CONF / "gate").glob("*.yaml"))
    if name not in names:
        raise ConfigError(f"gate={name}: no such choice; choose from {', '.join(names)}")
    files = [(CONF / "gate" / f"{one}.yaml").read_text(encoding="utf-8") for one in ("none", name)]
    content = {key: value for file in files for key, value in yaml.safe_load(file).items() if key != "defaults"}
    gate: Gate = build(content, "gate")
    return gate


def find_allowed_loss() -> float:
    """Return the largest drop of the primary measure that the default gate allows."""
    return load_gate("default").drops[PRIMARY]


def parse_measure(name: str) -> str:
    """Return the measure that a rule names; raises `MeasureError`."""
    return name if name in (PRIMARY, *UNRANKED_MEASURES) else str(parse(name))


def conclude(checks: Sequence[Check]) -> Verdict:
    """Return the verdict on all rules: one that fails outweighs one that is undecided."""
    verdicts = {check.verdict for check in checks}
    return "fail" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "pass"


def find_exit_code(gate: Gate, checks: Sequence[Check]) -> int:
    """Return the exit code of a command whose gate has these checks."""
    verdict = conclude(checks)
    return EXIT_CODES["pass" if verdict == "undecided" and gate.undecided != "fail" else verdict]


def count_untestable(result: Result) -> tuple[dict[str, int], int]:
    """Return the query types ("" for all) with too few queries for any drop to be significant, and the fewest needed.

    Each has the number of its queries (or clusters); the test and the level are the defaults of `compare` and `Gate`.
    """
    fewest = PAIRED_TESTS[TableStatistics().test].count_required_queries(Gate().alpha or 0.0)
    values, types = result.of(result.primary), np.array(result.queries.types)
    numbers = result.queries.cluster_numbers
    units = np.arange(len(values)) if numbers is None else numbers
    sizes = {
        kind: len(np.unique(units[~np.isnan(values) & ((types == kind) | (not kind))]))
        for kind in ("", *sorted({*result.queries.types} - {""}))
    }
    return {kind: size for kind, size in sizes.items() if 0 < size < fewest}, fewest


def check_gate(gate: Gate, comparison: Comparison) -> list[Check]:
    """Check each system except the first; raises `ConfigError` for a rule that applies to nothing."""
    drops = _check_drops(gate, comparison)
    checks: list[Check] = []
    for system in range(1, len(comparison.results)):
        checks += check_floors(gate, comparison, system)
        checks += drops[system - 1]
        checks += check_errors(gate, comparison, system)
    return checks


def check_errors(gate: Gate, comparison: Comparison, system: int) -> Iterator[Check]:
    """Yield the check of the number of failed queries, if it is limited."""
    if gate.max_errors is not None:
        before, errors = (len(comparison.results[i].failures) for i in (0, system))
        verdict: Verdict = "fail" if errors > gate.max_errors else "pass"
        yield Check(comparison.labels[system], "errors", "errors", "", before, errors, gate.max_errors, verdict=verdict)


def check_floors(gate: Gate, comparison: Comparison, system: int) -> Iterator[Check]:
    """Yield the checks of minimum values, each over all queries that count for the system."""
    result, label = comparison.results[system], comparison.labels[system]
    for kind, measure, limit in iter_rules(gate.floors, gate.floors_by_type, "floors", comparison):
        value = compute_mean(select_type(score_queries(result, measure), kind, comparison))
        cost = result.abstention.everything.left_with_nothing if measure == TN_RATE else None
        verdict: Verdict = "pass" if value >= limit else "fail"
        yield Check(label, "floor", measure, kind, math.nan, value, limit, verdict=verdict, cost=cost)


def _check_drops(gate: Gate, comparison: Comparison) -> list[list[Check]]:
    """Return the checks of the drops of each system but the first, over the queries that count for all systems.

    The drops of the primary measure over all queries are one family of tests, those of other measures another
    (`runner.comparison.families`), and those by type a third, so that many types do not weaken the other tests.
    """
    others, candidates = range(1, len(comparison.results)), comparison.candidates
    families: dict[str, list[tuple[Check, Floats]]] = {}
    checks: dict[int, list[Check]] = {system: [] for system in others}
    for kind, measure, limit in iter_rules(gate.drops, gate.drops_by_type, "drops", comparison):
        name = "types" if kind else comparison.find_family(measure)
        scores = np.array([select_type(values, kind, comparison) for values in comparison.scores[measure]])
        for system in others:
            result, before, after = comparison.results[system], *(compute_mean(scores[i]) for i in (0, system))
            cost = result.abstention.everything.left_with_nothing if measure == TN_RATE else None
            check = Check(comparison.labels[system], "drop", measure, kind, before, after, limit, cost=cost)
            if system in candidates:
                families.setdefault(name, []).append((check, compute_differences(scores[system], scores[0])))
            else:
                checks[system].append(judge_drop(check, gate))
    statistics, clusters = comparison.statistics, comparison.cluster_numbers
    of_choice = {"primary": [comparison.table[comparison.primary][i].difference for i in candidates]}
    for family, rows in families.items():
        judged = judge_drops(
            rows, gate, statistics, clusters,
            systems=len(candidates), tested=of_choice.get(family) if comparison.among else None,
        )  # fmt: skip
        for place, system in enumerate(candidates):
            checks[system] += judged[place :: len(candidates)]
    return [checks[system] for system in others]


def judge_drops(
    family: Sequence[tuple[Check, Floats]],
    gate: Gate,
    statistics: TableStatistics,
    clusters: Clusters | None,
    weights: Floats | None = None,
    systems: int = 1,
    tested: Sequence[Difference] | None = None,
) -> list[Check]:
    """Return the checks of a family of drops, each with its paired differences; p-values are corrected together.

    With weights (drops x queries), a query counts as that many. A rule passes for one of the `systems` only if it
    passes by itself, so the bound of a hidden loss is corrected for their number, but not for that of the rules.
    `tested` are the differences if they are corrected otherwise.
    """
    if gate.alpha is None:
        return [judge_drop(check, gate) for check, _ in family]
    differences = np.array([differences for _, differences in family])
    # Enough permutations for a single test to reach a p-value below alpha.
    statistics = replace(statistics, permutations=max(statistics.permutations, math.ceil(2 / gate.alpha)))
    test, correction = PAIRED_TESTS[statistics.test], statistics.correction
    rows = compare(differences, statistics, clusters, weights)
    own_level = gate.alpha / (systems if CORRECTIONS[correction].depends_on_family else 1)
    of_family = level_of_each(rows.uncorrected, gate.alpha, correction)
    limits = np.array([check.limit for check, _ in family])
    ranges = np.array([measure_span(check.measure) for check, _ in family])
    intervals = test.compute_intervals(
        differences, own_level, statistics.permutations, statistics.seed, clusters, weights
    )
    hidden = bound_losses(differences, intervals, own_level, ranges, clusters, weights)
    is_open = hidden > limits + 1e-12 if gate.proof == "noninferior" else np.zeros(len(family), dtype=np.bool_)
    to_pass = np.full(len(family), math.nan)
    to_pass[is_open] = queries_to_exclude(
        differences[is_open], limits[is_open], own_level, ranges[is_open], clusters,
        None if weights is None else weights[is_open],
    )  # fmt: skip
    to_fail = rows.count_needed(of_family)
    fewest = test.count_required_queries(of_family)
    checks = []
    for i, (check, _) in enumerate(family):
        own = rows.describe(i) if tested is None else tested[i]
        shown = max(to_fail[i] if tested is None else own.needed, fewest)
        needed = to_pass[i] if gate.proof == "noninferior" and not check.exceeds else shown
        checks.append(judge_drop(check, gate, replace(own, needed=float(needed)), float(hidden[i]), int(rows.units[i])))
    return checks


def judge_drop(
    check: Check, gate: Gate, tested: Difference | None = None, hidden: float = math.nan, units: int = 0
) -> Check:
    """Return a check of a drop with its verdict.

    `tested` is the difference with its corrected p-value and the number of queries that would decide it, `hidden` the
    largest loss that is not excluded, and `units` the number of queries; without a test, every larger drop fails.
    """
    if math.isnan(check.drop) or (tested is None and check.exceeds):
        return replace(check, verdict="fail")
    if tested is None or gate.alpha is None:
        return check
    check = replace(check, p=tested.corrected, hidden=hidden, queries=units, proof=gate.proof)
    is_shown = tested.corrected < gate.alpha and check.drop > 0
    is_within = hidden <= check.limit + 1e-12 if gate.proof == "noninferior" else not check.exceeds
    if is_within:
        return check
    if is_shown:
        return replace(check, verdict="fail")
    more = max(tested.needed - units, 1.0)
    share = tested.differing / tested.queries if tested.queries else math.nan
    return replace(check, verdict="undecided", more=more, differing=share * more)


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


def measure_span(measure: str) -> float:
    """Return the largest possible drop of a measure, infinite if unknown."""
    least, greatest = _range(measure)
    return greatest - least


def _range(measure: str) -> tuple[float, float]:
    """Return the smallest and the largest value of a measure, infinite if unknown."""
    if measure == GRADE:
        return SCALE.least, SCALE.greatest
    return (0.0, 1.0) if measure == TN_RATE or parse(measure).built_in else (-math.inf, math.inf)
