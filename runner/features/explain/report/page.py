"""An explained difference as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.comparison.gate import Check
from runner.comparison.report.gate_rules import gate_verdict
from runner.features.explain.report import tables
from runner.features.explain.report.sections import iter_sections
from runner.features.explain.report.waterfall import build_waterfall
from runner.features.explain.terms import Explanation
from runner.pages.page import render

TEMPLATE = Path(__file__).with_name("page.html.jinja")

LISTED = 500
"""How many rows of each list a page has; the JSON file has all."""


def explanation_page(explanation: Explanation, checks: Sequence[Check] = ()) -> str:
    """Return the page of an explanation."""
    return render(
        TEMPLATE,
        explanation=explanation,
        explanation_tables=tables,
        checks=checks,
        gate=gate_verdict(checks),
        sections=list(iter_sections(explanation, LISTED, checks)),
        waterfall=build_waterfall(explanation, explanation.primary),
    )
