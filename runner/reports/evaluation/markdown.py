"""An evaluation as Markdown; everything from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from runner.comparison.queries import QueryOutcome, list_hardest
from runner.reports.evaluation import grades, insights, tables
from runner.reports.evaluation.insights import Insights
from runner.reports.rendering import numbers
from runner.reports.rendering.markdown import escape, section
from runner.result import Result

RETRIEVED = 10
"""Retrieved documents listed for a query."""

MARKS = {"pass": "\N{CHECK MARK}", "partial": "~", "fail": "\N{MULTIPLICATION X}"}


def result_markdown(result: Result, insight: Insights, hardest: int = 10) -> str:
    """Return the report of one evaluation and its insights."""
    d, missed = result.dataset, insights.failures_table(result, insight, hardest)
    low_high = numbers.interval(result.intervals.get(result.primary))
    whole = [f"**{escape(m)}**: {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    parts = [
        f"# Retrieval evaluation: {escape(result.name)}",
        "\n".join(
            [
                f"- **Dataset**: {escape(tables.heading(result))}",
                f"- **Retriever**: {escape(result.retriever)}",
                *([f"- **Answered by**: {escape(address)}"] if (address := tables.describe_addresses(result)) else []),
                *([f"- **Index**: {escape(index)}"] if (index := tables.describe_index(result)) else []),
                f"- **{escape(result.primary)}**: {numbers.score(result.means.get(result.primary))}, "
                f"{tables.intervals_of(result)} {low_high}",
                f"- **Outcome**: {escape(tables.outcomes_line(result))}",
                *([f"- **Hole rate**: {escape(holes)}"] if (holes := tables.hole_rate(result)) else []),
                f"- **Fingerprints**: dataset `{d.fingerprint}`, corpus `{d.corpus_fingerprint}`, "
                f"config `{result.config_hash}`",
                *(f"- **Warning**: {escape(warning)}" for warning in tables.warnings(result)),
            ]
        ),
        *section("Summary measures", tables.measures_table(result)),
        *([" | ".join(whole)] if whole else []),
        *section(tables.no_result_title(result), tables.abstention_table(result)),
        *section("False positives", tables.no_result_queries(result, hardest)),
        *_grades(result, hardest),
        *_threshold(insight),
        *section("By query type", tables.types_table(result)),
        *section(
            "Query performance prediction",
            insights.predictors_table(insight),
            escape(insights.predictors_note(result)),
        ),
        *section("Filters, by selectivity", tables.filters_table(result)),
        *section("Diagnostics", tables.diagnostics_table(result)),
        *section("Queries that raised an error", tables.errors_table(result)),
        *section(
            "Missed queries and their causes", insights.classes_table(insight), escape(insights.failures_note(insight))
        ),
        *section("Missed queries, with evidence", missed, insights.evidence_note(missed)),
        *_hardest(result, hardest),
        *section("Timings", tables.timings_table(result)),
        *section("Configuration", tables.settings_table(result.config)),
        *section("Environment", tables.settings_table(result.environment)),
    ]
    return "\n\n".join(parts) + "\n"


def _grades(result: Result, lowest: int) -> list[str]:
    if result.grades is None:
        return []
    return [
        *section("Grades by a language model", grades.grade_table(result), escape(grades.missing_line(result))),
        *section("Verdicts of the language model", grades.verdict_table(result)),
        *section("Lowest grades", grades.lowest_table(result, lowest)),
    ]


def _threshold(insight: Insights) -> list[str]:
    title, note = "Choosing a threshold", escape(insights.thresholds_note(insight))
    parts = section(title, insights.thresholds_table(insight), note)
    return parts or ([f"## {title}", note] if note else [])


def _hardest(result: Result, limit: int) -> list[str]:
    queries = list_hardest(result, limit)
    return ["## Hardest queries", *(_query(query, result) for query in queries)] if queries else []


def _query(query: QueryOutcome, result: Result) -> str:
    lines = [f"### {escape(query.id)}: {escape(query.text)}", ""]
    if query.type:
        lines.append(f"- **Type**: {escape(query.type)}")
    lines.append(f"- **Expected**: {_some(map(escape, query.expected))}")
    if result.hits is not None:
        documents = (f"**{escape(i)}** ({grade})" if grade > 0 else escape(i) for i, grade in query.retrieved)
        lines.append(f"- **Retrieved** (gold in bold): {_some(documents)}")
    lines.append(f"- **First gold at rank**: {numbers.number(query.first_gold)}")
    lines.append("- " + ", ".join(f"{escape(m)} {numbers.score(value)}" for m, value in query.values.items()))
    lines.append(f"- **Status**: {MARKS.get(query.status, '')} {escape(query.status)}")
    return "\n".join(lines)


def _some(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = f" and {len(shown) - RETRIEVED:,} more" if len(shown) > RETRIEVED else ""
    return (", ".join(shown[:RETRIEVED]) or "nothing") + more
