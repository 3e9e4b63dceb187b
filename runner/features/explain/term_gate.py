"""Check the rules of a gate for one term of an explained difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from runner.comparison.families import find_family
from runner.comparison.gate import Check, Gate, check_errors, check_floors, iter_rules, judge_drop, judge_drops
from runner.features.explain.terms import TERMS, Explanation, TermName
from runner.statistics.attribution import Attribution, compute_significance


def check_term(gate: Gate, explanation: Explanation, term: TermName) -> list[Check]:
    """Return the checks of a gate, whose drops are those of a term; raises `ConfigError` for a rule without a subject.

    The drop of a term is its negative, so `before` is 0 and `after` the term. A type that only one side has is not
    checked. Minimum values and errors are those of the candidate, as in `check_gate`.
    """
    comparison, types = explanation.on_candidate_data, explanation.queries.types
    families: dict[str, list[tuple[Check, Attribution | None]]] = {}
    for kind, measure, limit in iter_rules(gate.drops, gate.drops_by_type, "drops", comparison):
        own = explanation.attribute(term, measure, np.array([kind in ("", other) for other in types], dtype=np.bool_))
        effect = 0.0 if own is None else own.effect
        if not (kind and math.isnan(effect)):
            check = Check(TERMS[term], "drop", measure, kind, 0.0, effect, limit)
            family = "types" if kind else find_family(measure, comparison.primary, gate.measures)
            families.setdefault(family, []).append((check, own))
    judge = _judge_paired if explanation.is_paired(term) else _judge_samples
    drops = [check for family in families.values() for check in judge(family, gate, explanation)]
    return [*check_floors(gate, comparison, 1), *drops, *check_errors(gate, comparison, 1)]


def _judge_paired(
    family: Sequence[tuple[Check, Attribution | None]], gate: Gate, explanation: Explanation
) -> list[Check]:
    shape = len(explanation.queries.ids)
    rows = [(check, np.zeros(shape) if own is None else own.differences) for check, own in family]
    weights = np.array([np.ones(shape) if own is None else own.weights for _, own in family])
    return judge_drops(rows, gate, explanation.statistics, explanation.clusters, weights)


def _judge_samples(
    family: Sequence[tuple[Check, Attribution | None]], gate: Gate, explanation: Explanation
) -> list[Check]:
    """Return the checks of drops between two samples of queries, whose p-values are corrected together."""
    if gate.alpha is None:
        return [judge_drop(check, gate) for check, _ in family]
    terms = [own for _, own in family if own is not None]
    statistics = replace(explanation.statistics, confidence=1 - gate.alpha)
    tested = compute_significance(terms, [False] * len(terms), statistics, explanation.clusters)
    units = min(explanation.count_queries()[:2])
    return [
        judge_drop(check, gate, own, math.inf if math.isnan(own.low) else max(-own.low, 0.0), units)
        for (check, _), own in zip(family, tested, strict=True)
    ]
