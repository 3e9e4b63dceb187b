"""An explained difference as JSON, with null for unknown values: all terms, all causes and the share of each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from runner.comparison.gate import Check, conclude
from runner.features.explain.report import tables
from runner.features.explain.terms import CAUSES, TERMS, Explanation


def explanation_json(explanation: Explanation, checks: Sequence[Check] = ()) -> str:
    """Return an explanation and the checks of its gate as JSON."""
    design, causes = explanation.design, explanation.causes
    content: dict[str, Any] = {
        "baseline": {"label": explanation.labels[0], "source": explanation.sources[0]},
        "candidate": {"label": explanation.labels[1], "source": explanation.sources[1]},
        "primary": explanation.primary,
        "verdict": tables.verdict(explanation),
        "changed": {
            "settings": [{"name": s.name, "before": s.before, "after": s.after} for s in design.settings],
            "data": list(design.parts),
        },
        "measures": {measure: _convert_measure(explanation, measure) for measure in explanation.measures},
        "causes": {
            "documents": {kind: list(causes.documents.get(kind, ())) for kind in tables.KINDS},
            "displaced_gold": [asdict(one) for one in causes.displaced],
            "displacing_documents": dict(causes.displacing),
            "gold": [asdict(one) for one in causes.gold],
            "judgments": [asdict(one) for one in causes.judgments],
            "queries": [asdict(one) for one in causes.queries],
        },
        "moved": {
            "counts": asdict(explanation.count_moved()),
            "queries": [asdict(query) | {"causes": query.causes} for query in explanation.moved],
        },
        "shares": {
            term: [
                {"query": explanation.queries.ids[i], "share": share}
                for i, share in explanation.list_shares(term, explanation.primary)
            ]
            for term in CAUSES
        },
        "evaluations": explanation.evaluations,
        "sampled_orders": len(design.orders),
        "statistics": vars(explanation.statistics),
        "notes": tables.about(explanation),
        "gate": {
            "verdict": conclude(checks),
            "passed": conclude(checks) == "pass",
            "violations": [tables.describe_check(check) for check in checks if check.verdict == "fail"],
            "undecided": [tables.describe_check(check) for check in checks if check.verdict == "undecided"],
            "checks": [vars(check) | {"cost": None, "reason": tables.describe_check(check)} for check in checks],
        },
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(content, option=options).decode()


def _convert_measure(explanation: Explanation, measure: str) -> dict[str, Any]:
    before, after = explanation.compute_means(measure)
    names = {title: name for name, title in TERMS.items()}
    terms = {names[term.name]: term.to_dict() for term in explanation.list_terms(measure)}
    total = explanation.build_total(measure).to_dict()
    family = explanation.find_family(measure)
    return {"baseline": before, "candidate": after, "family": family, "total": total, "terms": terms}
