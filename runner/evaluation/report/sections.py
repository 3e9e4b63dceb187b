"""The sections of the report of an evaluation in their order, and the report as Markdown; data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runner.comparison.insights import Insights
from runner.comparison.notes import warn_holes
from runner.comparison.queries import QueryOutcome, list_hardest
from runner.evaluation.report import grades, insights, tables
from runner.evaluation.result import Result
from runner.pages import numbers
from runner.pages.markdown import escape, markdown_table, render_sections
from runner.pages.sections import ReportSection, iter_added

RETRIEVED = 10
"""Retrieved documents listed for a query."""

MARKS = {"pass": "\N{CHECK MARK}", "partial": "~", "fail": "\N{MULTIPLICATION X}"}


def result_markdown(result: Result, insight: Insights, hardest: int = 10) -> str:
    """Return the report of one evaluation and its insights."""
    d = result.dataset
    low_high = numbers.interval(result.intervals.get(result.primary))
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
                *([f"- **Losses by step**: {escape(losses)}"] if (losses := tables.describe_losses(result)) else []),
                *([f"- **Hole rate**: {escape(holes)}"] if (holes := tables.hole_rate(result)) else []),
                f"- **Fingerprints**: dataset `{d.fingerprint}`, corpus `{d.corpus_fingerprint}`, "
                f"config `{result.config_hash}`",
                *(f"- **Warning**: {escape(warning)}" for warning in tables.warnings(result)),
                *([f"- **Unjudged hits**: {escape(holes)}"] if (holes := warn_holes(result)) else []),
            ]
        ),
        *render_sections(iter_sections(result, insight, hardest)),
    ]
    return "\n\n".join(parts) + "\n"


def iter_sections(result: Result, insight: Insights, limit: int) -> Iterator[ReportSection]:
    """Yield the sections; each list of queries has at most `limit`."""
    table, title = tables.measures_table(result), tables.no_result_title(result)
    whole = [f"**{escape(m)}**: {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    measures = [markdown_table(table)] * bool(table.rows) + [" | ".join(whole)] * bool(whole)
    note = tables.describe_judged(result)
    yield ReportSection("Summary measures", table, "measures", note, markdown="\n\n".join(measures))
    yield ReportSection("Measures without a cutoff", tables.whole_table(result), "measures", markdown="")
    note = "The effect of a score threshold on queries without gold, and its cost for queries with an answer."
    yield ReportSection(title, tables.abstention_table(result), "summary", note, printed="table")
    yield ReportSection("False positives", tables.no_result_queries(result, limit), "failures")
    if result.grades is not None:
        note = grades.missing_line(result)
        yield ReportSection("Grades by a language model", grades.grade_table(result), "summary", note)
        yield ReportSection("Verdicts of the language model", grades.verdict_table(result), "summary")
        yield ReportSection("Lowest grades", grades.lowest_table(result, limit), "failures")
    note, title = insights.thresholds_note(insight), "Choosing a threshold"
    if insight.tunings:
        yield ReportSection(title, insights.thresholds_table(insight), "summary", note, figure="thresholds")
    elif note:  # why there is no threshold
        yield ReportSection(title, [note], "summary")
    yield ReportSection("By query type", tables.types_table(result), "summary", figure="types", printed="table")
    title, note = "Query performance prediction", insights.predictors_note(result)
    yield ReportSection(title, insights.predictors_table(insight), "failures", note)
    yield ReportSection("Filters, by selectivity", tables.filters_table(result), "summary")
    yield ReportSection("Diagnostics", tables.diagnostics_table(result), "summary")
    yield ReportSection("Queries that raised an error", tables.errors_table(result), "failures", printed="errors")
    title, note = "Gold lost by step", tables.describe_losses(result)
    yield ReportSection(title, tables.losses_table(result), "summary", note, figure="losses")
    title, note = "Missed queries and their causes", insights.failures_note(insight)
    yield ReportSection(title, insights.classes_table(insight), "missed", note, printed="table")
    table = insights.failures_table(result, insight, limit)
    yield ReportSection("Missed queries, with evidence", table, "missed", insights.evidence_note(table))
    table = tables.hardest_table(result, limit)
    hardest = "\n\n".join(_describe_query(query, result) for query in list_hardest(result, limit))
    yield ReportSection("Hardest queries", table, "", markdown=hardest, printed="table")
    yield ReportSection("Timings", tables.timings_table(result), "summary")
    yield from iter_added("evaluation", result)
    yield ReportSection("Fingerprints", tables.fingerprints_table(result), "environment", markdown="")
    yield ReportSection("Configuration", tables.settings_table(result.config), "environment")
    yield ReportSection("Environment", tables.settings_table(result.environment), "environment")


def _describe_query(query: QueryOutcome, result: Result) -> str:
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
