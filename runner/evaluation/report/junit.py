"""An evaluation as JUnit XML: each query is a case, which fails if its first hits have no gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from runner.comparison.queries import QueryOutcome, build_query_outcome
from runner.evaluation.result import Result
from runner.pages.junit import JUnitCase, JUnitSuite, render_junit

_OUTCOMES: Mapping[str, Literal["passed", "failed", "error", "skipped"]] = {
    "pass": "passed",
    "partial": "passed",
    "true_negative": "passed",
    "fail": "failed",
    "false_positive": "failed",
    "unjudged": "skipped",
    "error": "error",
}

_LISTED = 5  # documents in a message


def evaluation_junit(result: Result) -> str:
    """Return the queries of a result as JUnit XML, one suite with the query types as groups."""
    return render_junit([JUnitSuite(result.name, [_case(result, i) for i in range(len(result.queries.ids))])])


def _case(result: Result, i: int) -> JUnitCase:
    query = build_query_outcome(result, i)
    times = result.timings.each_ms
    ms = times[i] if i < len(times) else None
    message = result.queries.errors[i] or _describe(query)
    group = ".".join(filter(None, (result.retriever, query.type)))
    return JUnitCase(
        group, f"{query.id}: {query.text}", _OUTCOMES.get(query.status, "passed"), message, (ms or 0) / 1000
    )


def _describe(query: QueryOutcome) -> str:
    """Return what a query expected and what it retrieved; "" for one that passed."""
    if query.status in ("pass", "true_negative"):
        return ""
    retrieved = ", ".join(name for name, _ in query.retrieved[:_LISTED]) or "nothing"
    return f"expected {', '.join(query.expected[:_LISTED]) or 'nothing'}; retrieved {retrieved}"
