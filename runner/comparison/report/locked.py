"""The answers of a locked split as Markdown, JSON and HTML, which show nothing else of the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson

from runner.comparison.compare import Comparison
from runner.comparison.gate import Check
from runner.comparison.report import gate_rules, tables
from runner.comparison.report.json import convert_checks
from runner.comparison.report.sections import describe_gate
from runner.pages.markdown import escape
from runner.pages.page import render

TEMPLATE = Path(__file__).with_name("locked.html.jinja")

WHY = (
    "A locked split shows only its answers: who sees scores or differences can fit settings to its queries, and the "
    "levels would no longer hold."
)


def answers_markdown(comparison: Comparison, checks: Sequence[Check]) -> str:
    """Return the answers for a comment on a pull request."""
    title = f"# {escape(tables.heading(comparison))}"
    return "\n\n".join([title, *describe_gate(checks, gate_rules.describe_check), WHY]) + "\n"


def answers_json(comparison: Comparison, checks: Sequence[Check]) -> str:
    """Return the answers as JSON."""
    content = {
        "baseline": comparison.labels[0],
        "candidates": list(comparison.labels[1:]),
        "gate": convert_checks(checks),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def answers_page(comparison: Comparison, checks: Sequence[Check]) -> str:
    """Return the answers as a page."""
    return render(TEMPLATE, heading=tables.heading(comparison), checks=checks, gate_rules=gate_rules, why=WHY)
