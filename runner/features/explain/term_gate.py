"""Check the rules of a gate for one term of an explained difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from runner.comparison.gate import Check, Gate, check_errors, check_floors, iter_rules, judge_drops
from runner.features.explain.terms import TERMS, Explanation, TermName
from runner.statistics.attribution import Attribution, compute_significance


def check_term(gate: Gate, explanation: Explanation, term: TermName) -> list[Check]:
    """Return the checks of a gate, whose drops are those of a term; raises `ConfigError` for a rule without a subject.

    The drop of a term is its negative, so `before` is 0 and `after` the term. A type that only one side has is not
    checked. Minimum values and errors are those of the candidate, as in `check_gate`.
    """
    comparison, types = explanation.on_candidate_data, explanation.queries.types
    families: dict[bool, list[tuple[Check, Attribution | None]]] = {}
    for kind, measure, limit in iter_rules(gate.drops, gate.drops_by_type, "drops", comparison):
        own = explanation.attribute(term, measure, np.array([kind in ("", other) for other in types], dtype=np.bool_))
        effect = 0.0 if own is None else own.effect
        if not (kind and math.isnan(effect)):
            check = Check(TERMS[term], "drop", measure, kind, 0.0, effect, limit)
            families.setdefault(bool(kind), []).append((check, own))
    judge = _judge_paired if explanation.is_paired(term) else _judge_samples
    drops = [check for family in families.values() for check in judge(family, gate.alpha, explanation)]
    return [*check_floors(gate, comparison, 1), *drops, *check_errors(gate, comparison, 1)]


def _judge_paired(
    family: Sequence[tuple[Check, Attribution | None]], alpha: float | None, explanation: Explanation
) -> Iterator[Check]:
    shape = len(explanation.queries.ids)
    rows = [(check, np.zeros(shape) if own is None else own.differences) for check, own in family]
    weights = np.array([np.ones(shape) if own is None else own.weights for _, own in family])
    return judge_drops(rows, alpha, explanation.statistics, explanation.clusters, weights)


def _judge_samples(
    family: Sequence[tuple[Check, Attribution | None]], alpha: float | None, explanation: Explanation
) -> Iterator[Check]:
    """Yield the checks of drops between two samples of queries, whose p-values are corrected together."""
    terms = [own for _, own in family if own is not None]
    tested = compute_significance(terms, [False] * len(terms), explanation.statistics, explanation.clusters)
    for (check, _), p_value in zip(family, [own.corrected for own in tested], strict=True):
        if math.isnan(check.drop) or (alpha is None and check.drop > check.limit + 1e-12):
            yield replace(check, violated=True)
        elif check.drop <= check.limit + 1e-12 or alpha is None:
            yield check
        else:
            yield replace(check, p=p_value, violated=p_value < alpha)
