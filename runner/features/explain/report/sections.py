"""The sections of the report of an explained difference in their order, and the report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.comparison.gate import Check
from runner.comparison.report.sections import describe_gate
from runner.features.explain.report import tables
from runner.features.explain.terms import Explanation
from runner.pages.markdown import escape, render_sections
from runner.pages.sections import ReportSection

LISTED = 20
"""How many rows of each list a comment has; the JSON file has all."""


def explanation_markdown(explanation: Explanation, checks: Sequence[Check] = ()) -> str:
    """Return the report of an explanation."""
    parts = [
        f"# {escape(tables.heading(explanation))}",
        f"**{escape(tables.verdict(explanation))}**",
        *describe_gate(checks, tables.describe_check),
        *render_sections(iter_sections(explanation, LISTED, checks)),
    ]
    return "\n\n".join(parts) + "\n"


def iter_sections(
    explanation: Explanation, limit: int | None = None, checks: Sequence[Check] = ()
) -> Iterator[ReportSection]:
    """Yield the sections; each list of causes has at most `limit` rows."""
    effects = tables.terms_table(explanation, explanation.primary)
    yield ReportSection(f"Effects on {explanation.primary}", effects, "report")
    yield ReportSection("What changed", tables.describe_changes(explanation), "report")
    for title, note, build in (
        ("Queries that moved", tables.describe_moved(explanation), tables.build_moved_table),
        ("Displaced gold", tables.describe_displaced(explanation), tables.build_displaced_table),
        ("Displacing documents", "New and changed documents that displaced gold.", tables.build_displacing_table),
        ("Changed gold", tables.CHANGED_GOLD, tables.build_gold_table),
        ("Changed judgments", "On queries and documents that both sides have.", tables.build_judgments_table),
        ("Changed queries", "A reworded query counts as removed and added.", tables.build_queries_table),
        ("Queries by contribution", "What a query adds to an effect.", tables.build_shares_table),
    ):
        yield ReportSection(title, build(explanation, limit), "report", note, printed="table")
    yield ReportSection("All measures", tables.measures_table(explanation), "report")
    yield ReportSection("Rules of the gate", tables.gate_table(checks), "report")
    yield ReportSection("Method", tables.about(explanation), "report")
