"""A comparison as Markdown, short enough for a comment on a pull request; what is long is folded.

Whatever comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.reports.comparison import tables
from runner.reports.comparison.compare import Change, Comparison
from runner.reports.comparison.gate import Check
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.rendering.numbers import format_signed, score

PASSED, FAILED = "\N{WHITE HEAVY CHECK MARK}", "\N{CROSS MARK}"


def comparison_markdown(comparison: Comparison, checks: Sequence[Check] = (), queries: int = 5) -> str:
    """Return the report of a comparison; `queries` are how many gains and losses are told of each system."""
    few = tables.headline(comparison)
    parts = [
        f"# {escape(tables.heading(comparison))}",
        *(f"**{escape(verdict)}**" for verdict in tables.verdicts(comparison)),
        *_gate(checks),
        markdown_table(tables.measures_table(comparison, few)),
    ]
    for i, label in enumerate(comparison.labels[1:], 1):
        title = "Differences" if len(comparison.labels) == 2 else f"Differences: {escape(label)}"
        parts += [f"## {title}", markdown_table(tables.differences_table(comparison, i, few))]
    parts += section("Queries without gold", tables.no_result_table(comparison))
    parts += section("By query type", tables.types_table(comparison))
    parts += section("Agreement", tables.agreement_table(comparison))
    parts += section("Time", tables.times_table(comparison))
    for i, label in enumerate(comparison.labels[1:], 1):
        parts += _changes(comparison, i, label, queries)
    every = [markdown_table(tables.measures_table(comparison))]
    every += [markdown_table(tables.differences_table(comparison, i)) for i in range(1, len(comparison.labels))]
    parts += [
        _folded(f"All {len(comparison.table)} measures", every),
        "## What was compared",
        markdown_table(tables.systems_table(comparison)),
        "\n".join(f"- {escape(told)}" for told in tables.about(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def _gate(checks: Sequence[Check]) -> list[str]:
    if not checks:
        return []
    violated = [check for check in checks if check.violated]
    lines = [f"{FAILED if violated else PASSED} {escape(tables.gate_verdict(checks))}"]
    if violated:
        lines.append("\n".join(f"- {escape(check.told())}" for check in violated))
    return [*lines, _folded("Rules", [markdown_table(tables.gate_table(checks))])]


def _changes(comparison: Comparison, i: int, label: str, limit: int) -> list[str]:
    gains, losses = tables.gains(comparison, i), tables.losses(comparison, i)
    parts = []
    for what, changes in (("gains", gains), ("losses", losses)):
        if changes:
            told = "\n".join(_change(change, comparison.primary) for change in changes[:limit])
            of = "" if len(comparison.labels) == 2 else f" of {label}"
            parts.append(_folded(f"The largest {what}{of} ({min(limit, len(changes))} of {len(changes)})", [told]))
    return parts


def _change(change: Change, primary: str) -> str:
    query, (before, after) = change.after, (score(hard.values[primary]) for hard in (change.before, change.after))
    line = f"- **{escape(query.id)}** {escape(query.text)}: {before} to {after} ({format_signed(change.difference)})"
    for place, found in tables.found_told(change):
        shown = (f"**{escape(i)}** ({grade})" if grade > 0 else escape(i) for i, grade in found)
        line += f"\n  - {place}: {', '.join(shown) or 'nothing'}"
    return line


def _folded(title: str, parts: Sequence[str]) -> str:
    return "\n\n".join([f"<details><summary>{_html(title)}</summary>", *parts, "</details>"])


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
