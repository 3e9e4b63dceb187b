"""An evaluation as Markdown, for a pull request or a wiki.

Whatever comes from data is escaped. Knows nothing of plots.
"""

from __future__ import annotations

from collections.abc import Iterable

from runner.reports.evaluation import grades, insights, tables
from runner.reports.evaluation.insights import Insights
from runner.reports.evaluation.tables import Hard
from runner.reports.rendering import numbers
from runner.reports.rendering.markdown import escaped, section
from runner.result import Result

RETRIEVED = 10
"""How many retrieved documents are shown of a query."""


MARKS = {"pass": "\N{CHECK MARK}", "partial": "~", "fail": "\N{MULTIPLICATION X}"}


def result_markdown(result: Result, found: Insights, hardest: int = 10) -> str:
    """Return the report of one evaluation and its insights."""
    d, missed = result.dataset, insights.failures_table(result, found, hardest)
    low_high = numbers.interval(result.intervals.get(result.primary))
    whole = [f"**{escaped(m)}**: {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    parts = [
        f"# Retrieval evaluation: {escaped(result.name)}",
        "\n".join(
            [
                f"- **Dataset**: {escaped(tables.heading(result))}",
                f"- **Retriever**: {escaped(result.retriever)}",
                *([f"- **Answered by**: {escaped(address)}"] if (address := tables.answered_by(result)) else []),
                f"- **{escaped(result.primary)}**: {numbers.score(result.means.get(result.primary))}, "
                f"{tables.intervals_of(result)} {low_high}",
                f"- **Outcome**: {escaped(tables.outcomes_line(result))}",
                *([f"- **Hole rate**: {escaped(holes)}"] if (holes := tables.hole_rate(result)) else []),
                f"- **Fingerprints**: dataset `{d.fingerprint}`, corpus `{d.corpus_fingerprint}`, "
                f"config `{result.config_hash}`",
                *(f"- **Warning**: {escaped(warning)}" for warning in tables.warnings(result)),
            ]
        ),
        *section("Summary measures", tables.measures_table(result)),
        *([" | ".join(whole)] if whole else []),
        *section(tables.no_result_title(result), tables.abstention_table(result)),
        *section("Answered although nothing is right", tables.no_result_queries(result, hardest)),
        *_grades(result, hardest),
        *_threshold(found),
        *section("By query type", tables.types_table(result)),
        *section(
            "Foretold by the scores alone",
            insights.predictors_table(found),
            escaped(insights.predictors_note(result)),
        ),
        *section("Diagnostics", tables.settings_table(result.diagnostics)),
        *section("Queries that raised an error", tables.errors_table(result)),
        *section("Why gold is missed", insights.classes_table(found), escaped(insights.failures_note(found))),
        *section("Missed, with the evidence", missed, insights.evidence_note(missed)),
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
        *section("A language model's grades", grades.grade_table(result), escaped(grades.missing_line(result))),
        *section("Its verdicts", grades.verdict_table(result)),
        *section("The lowest grades", grades.lowest_table(result, lowest)),
    ]


def _threshold(found: Insights) -> list[str]:
    title, note = "Choosing a threshold", escaped(insights.thresholds_note(found))
    parts = section(title, insights.thresholds_table(found), note)
    return parts or ([f"## {title}", note] if note else [])


def _hardest(result: Result, limit: int) -> list[str]:
    queries = tables.hardest(result, limit)
    return ["## Hardest queries", *(_query(query, result) for query in queries)] if queries else []


def _query(query: Hard, result: Result) -> str:
    lines = [f"### {escaped(query.id)}: {escaped(query.text)}", ""]
    if query.type:
        lines.append(f"- **Type**: {escaped(query.type)}")
    lines.append(f"- **Expected**: {_some(map(escaped, query.expected))}")
    if result.found is not None:
        found = (f"**{escaped(i)}** ({grade})" if grade > 0 else escaped(i) for i, grade in query.found)
        lines.append(f"- **Retrieved** (gold in bold): {_some(found)}")
    lines.append(f"- **First gold at rank**: {numbers.number(query.first_gold)}")
    lines.append("- " + ", ".join(f"{escaped(m)} {numbers.score(value)}" for m, value in query.values.items()))
    lines.append(f"- **Status**: {MARKS.get(query.status, '')} {escaped(query.status)}")
    return "\n".join(lines)


def _some(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = f" and {len(shown) - RETRIEVED:,} more" if len(shown) > RETRIEVED else ""
    return (", ".join(shown[:RETRIEVED]) or "nothing") + more
