"""A comparison as Markdown for a comment on a pull request; long parts are folded, and data is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.compare import Change, Comparison
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check
from runner.reports.comparison import data, tables
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.rendering.numbers import format_signed, score

PASSED, FAILED = "\N{WHITE HEAVY CHECK MARK}", "\N{CROSS MARK}"


def comparison_markdown(
    comparison: Comparison, checks: Sequence[Check] = (), queries: int = 5, effect: DataEffect | None = None
) -> str:
    """Return the report of a comparison with at most so many gained and lost `queries` of each system."""
    few = comparison.headline
    parts = [
        f"# {escape(tables.heading(comparison))}",
        *(f"**{escape(verdict)}**" for verdict in tables.verdicts(comparison)),
        *_gate(checks),
        *_effect(effect),
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
        _fold(f"All {len(comparison.table)} measures", every),
        "## Compared results",
        markdown_table(tables.systems_table(comparison)),
        "\n".join(f"- {escape(line)}" for line in tables.about(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def _gate(checks: Sequence[Check]) -> list[str]:
    if not checks:
        return []
    violated = [check for check in checks if check.violated]
    lines = [f"{FAILED if violated else PASSED} {escape(tables.gate_verdict(checks))}"]
    if violated:
        lines.append("\n".join(f"- {escape(tables.describe_check(check))}" for check in violated))
    return [*lines, _fold("Rules", [markdown_table(tables.gate_table(checks))])]


def _effect(effect: DataEffect | None) -> list[str]:
    if effect is None:
        return []
    return [*map(escape, data.describe(effect)), *section(data.TITLE, data.effect_table(effect)), "## Measures"]


def _changes(comparison: Comparison, i: int, label: str, limit: int) -> list[str]:
    gains, losses = tables.gains(comparison, i), tables.losses(comparison, i)
    parts = []
    for what, changes in (("gains", gains), ("losses", losses)):
        if changes:
            lines = "\n".join(_change(change, comparison.primary) for change in changes[:limit])
            of = "" if len(comparison.labels) == 2 else f" of {label}"
            parts.append(_fold(f"The largest {what}{of} ({min(limit, len(changes))} of {len(changes)})", [lines]))
    return parts


def _change(change: Change, primary: str) -> str:
    query, (before, after) = change.after, (score(of.values[primary]) for of in (change.before, change.after))
    line = f"- **{escape(query.id)}** {escape(query.text)}: {before} to {after} ({format_signed(change.difference)})"
    for place, documents in tables.list_retrieved(change):
        shown = (f"**{escape(i)}** ({grade})" if grade > 0 else escape(i) for i, grade in documents)
        line += f"\n  - {place}: {', '.join(shown) or 'nothing'}"
    return line


def _fold(title: str, parts: Sequence[str]) -> str:
    return "\n\n".join([f"<details><summary>{_html(title)}</summary>", *parts, "</details>"])


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
