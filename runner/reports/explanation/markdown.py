"""An explained difference as Markdown for a comment on a pull request; data is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.explanation import Explanation
from runner.comparison.gate import Check
from runner.reports.comparison.markdown import FAILED, PASSED
from runner.reports.comparison.tables import gate_verdict
from runner.reports.explanation import tables
from runner.reports.rendering.markdown import escape, markdown_table, section

LISTED = 20
"""How many rows of each list a comment has; the JSON file has all."""


def explanation_markdown(explanation: Explanation, checks: Sequence[Check] = ()) -> str:
    """Return the report of an explanation."""
    parts = [f"# {escape(tables.heading(explanation))}", f"**{escape(tables.verdict(explanation))}**"]
    if checks:
        violated = [check for check in checks if check.violated]
        parts.append(f"{FAILED if violated else PASSED} {escape(gate_verdict(checks))}")
        if violated:
            parts.append("\n".join(f"- {escape(tables.describe_check(check))}" for check in violated))
    parts.append(markdown_table(tables.terms_table(explanation, explanation.primary)))
    if lines := tables.describe_changes(explanation):
        parts.append("\n".join(f"- {escape(line)}" for line in lines))
    for title, text, table in tables.list_sections(explanation, LISTED):
        parts += section(title, table, escape(text))
    parts += section("All measures", tables.measures_table(explanation))
    parts += section("Rules of the gate", tables.gate_table(checks))
    parts.append("\n".join(f"- {escape(line)}" for line in tables.about(explanation)))
    return "\n\n".join(parts) + "\n"
