"""A comparison as JSON, with null for what is not known: all that is told elsewhere, and every query that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runner.reports.comparison import tables
from runner.reports.comparison.compare import Change, Comparison, Versus, times
from runner.reports.comparison.gate import Check


def comparison_json(comparison: Comparison, checks: Sequence[Check]) -> str:
    """Return all of a comparison as JSON, with null for what is not known."""
    systems = [
        {
            "label": label,
            "source": source,
            "name": result.name,
            "retriever": result.retriever,
            "config_hash": result.config_hash,
            "dataset_fingerprint": result.dataset.fingerprint,
            "errors": dict(result.failures),
            "ms_a_query": vars(times(result)),
        }
        for label, source, result in zip(comparison.labels, comparison.sources, comparison.results, strict=True)
    ]
    content = {
        "baseline": comparison.labels[0],
        "primary": comparison.primary,
        "same": comparison.same,
        "notes": list(comparison.notes),
        "statistics": vars(comparison.statistics),
        "tests": comparison.tests,
        "systems": systems,
        "verdicts": tables.verdicts(comparison),
        "measures": {
            measure: {"winner": comparison.winner(measure), "systems": _by_label(comparison, row)}
            for measure, row in comparison.table.items()
        },
        "no_result": {
            label: [at.to_dict() for at in result.abstention.thresholds] if result.abstention.no_result else []
            for label, result in zip(comparison.labels, comparison.results, strict=True)
        },
        "agreement": {
            label: {"queries": found.queries, **found.coefficients}
            for i, label in enumerate(comparison.labels)
            if i and (found := comparison.agreement_of(i)) is not None
        },
        "headroom": vars(comparison.headroom),
        "by_type": tables.by_type(comparison, list(comparison.table)),
        "queries": {
            label: [_change(change) for change in comparison.changes(i)]
            for i, label in enumerate(comparison.labels)
            if i
        },
        "gate": {
            "passed": not any(check.violated for check in checks),
            "violations": [check.told() for check in checks if check.violated],
            "checks": [vars(check) | {"outcome": tables.outcome(check)} for check in checks],
        },
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(content, option=options).decode()


def _by_label(comparison: Comparison, row: Sequence[Versus]) -> Mapping[str, Any]:
    return {label: vars(versus) for label, versus in zip(comparison.labels, row, strict=True)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "query": change.after.id,
        "text": change.after.text,
        "type": change.after.type,
        "expected": list(change.after.expected),
        "difference": change.difference,
    } | {
        place: {
            "values": dict(hard.values),
            "first_gold": hard.first_gold,
            "status": hard.status,
            "found": [{"id": i, "grade": grade} for i, grade in hard.retrieved[: tables.FOUND]],
        }
        for place, hard in (("before", change.before), ("after", change.after))
    }
