"""A comparison as JSON, with null for unknown values: all tables, and every query that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runner.comparison.compare import Change, Comparison, Versus, summarise_times
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check, conclude
from runner.comparison.report import gate_rules, tables
from runner.comparison.report.data import convert_effect
from runner.comparison.report.steps import convert_steps
from runner.comparison.unjudged import bound_slices


def comparison_json(comparison: Comparison, checks: Sequence[Check], effect: DataEffect | None = None) -> str:
    """Return a comparison and the checks of its gate as JSON, with null for unknown values."""
    systems = [
        {
            "label": label,
            "source": source,
            "name": result.name,
            "retriever": result.retriever,
            "config_hash": result.config_hash,
            "dataset_fingerprint": result.dataset.fingerprint,
            "errors": dict(result.failures),
            "hole_rates": dict(result.holes.rates) if result.holes else {},
            "ms_a_query": vars(summarise_times(result)),
        }
        for label, source, result in zip(comparison.labels, comparison.sources, comparison.results, strict=True)
    ]
    content = {
        "baseline": comparison.labels[0],
        "primary": comparison.primary,
        "same": comparison.same,
        "notes": list(comparison.notes),
        "statistics": {
            **vars(comparison.statistics),
            "among": comparison.among,
            "among_correction": comparison.choice_correction or None,
        },
        "tests": comparison.count_tests(),
        "systems": systems,
        "data": convert_effect(effect),
        "verdicts": tables.verdicts(comparison),
        "measures": {
            measure: {
                "winner": comparison.winner(measure),
                "family": comparison.find_family(measure),
                "systems": _by_label(comparison, row),
            }
            for measure, row in comparison.table.items()
        },
        "no_result": {
            label: [at.to_dict() for at in result.abstention.thresholds] if result.abstention.no_result else []
            for label, result in zip(comparison.labels, comparison.results, strict=True)
        },
        "agreement": {
            label: {"queries": pair.queries, **pair.coefficients} for label, pair in comparison.agreement.items()
        },
        "steps": {label: convert_steps(comparison, i) for i, label in enumerate(comparison.labels) if i},
        "bounds": {
            label: [vars(own) for own in bound_slices(comparison, i)] for i, label in enumerate(comparison.labels) if i
        },
        "headroom": vars(comparison.headroom),
        "by_type": tables.by_type(comparison, list(comparison.table)),
        "queries": {
            label: [_change(change) for change in comparison.list_changes(i)]
            for i, label in enumerate(comparison.labels)
            if i
        },
        "gate": convert_checks(checks),
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(content, option=options).decode()


def convert_checks(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the verdict of a gate and its rules, each with its reason."""
    return {
        "verdict": conclude(checks),
        "passed": conclude(checks) == "pass",
        "violations": [gate_rules.describe_check(check) for check in checks if check.verdict == "fail"],
        "undecided": [gate_rules.describe_check(check) for check in checks if check.verdict == "undecided"],
        "checks": [
            vars(check) | {"cost": gate_rules.describe_cost(check), "reason": gate_rules.describe_check(check)}
            for check in checks
        ],
    }


def _by_label(comparison: Comparison, row: Sequence[Versus]) -> Mapping[str, Any]:
    return {label: versus.to_dict() for label, versus in zip(comparison.labels, row, strict=True)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "query": change.after.id,
        "text": change.after.text,
        "type": change.after.type,
        "expected": list(change.after.expected),
        "difference": change.difference,
    } | {
        place: {
            "values": dict(query.values),
            "first_gold": query.first_gold,
            "status": query.status,
            "found": [{"id": i, "grade": grade} for i, grade in query.retrieved[: tables.LISTED]],
        }
        for place, query in (("before", change.before), ("after", change.after))
    }
