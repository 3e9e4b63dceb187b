"""The sections of the report of a comparison in their order, and the report as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from runner.comparison.compare import Change, Comparison
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check, Verdict, conclude
from runner.comparison.report import bounds, data, gate_rules, steps, tables
from runner.pages.markdown import escape, render_sections
from runner.pages.numbers import format_signed, score
from runner.pages.sections import ReportSection

MARKS: Mapping[Verdict, str] = {
    "pass": "\N{WHITE HEAVY CHECK MARK}",
    "fail": "\N{CROSS MARK}",
    "undecided": "\N{WARNING SIGN}",
}


def comparison_markdown(
    comparison: Comparison, checks: Sequence[Check] = (), queries: int = 5, effect: DataEffect | None = None
) -> str:
    """Return the report of a comparison with at most so many gained and lost `queries` of each system."""
    parts = [
        f"# {escape(tables.heading(comparison))}",
        *(f"**{escape(verdict)}**" for verdict in tables.verdicts(comparison)),
        *describe_gate(checks, gate_rules.describe_check),
        *render_sections(iter_sections(comparison, checks, effect, queries)),
    ]
    return "\n\n".join(parts) + "\n"


def describe_gate(checks: Sequence[Check], describe_check: Callable[[Check], str]) -> Iterator[str]:
    """Yield the verdict of a gate and its reasons."""
    if checks:
        yield f"{MARKS[conclude(checks)]} {escape(gate_rules.gate_verdict(checks))}"
    if reasons := gate_rules.list_reasons(checks):
        yield "\n".join(f"- {escape(describe_check(check))}" for check in reasons)


def iter_sections(
    comparison: Comparison, checks: Sequence[Check], effect: DataEffect | None, queries: int
) -> Iterator[ReportSection]:
    """Yield the sections; Markdown has at most so many gained and lost `queries` of each system."""
    few, others = comparison.headline, list(enumerate(comparison.labels[1:], 1))
    suffixes = {i: f" of {label}" if len(others) > 1 else "" for i, label in others}
    differences = [f"Differences: {label}" if len(others) > 1 else "Differences" for _, label in others]
    yield ReportSection("Rules", gate_rules.gate_table(checks), "rules", folded=True)
    if effect is not None:
        yield ReportSection(data.TITLE, data.effect_table(effect), "summary", " ".join(data.describe(effect)))
    yield ReportSection("Measures", tables.measures_table(comparison, few), "measures")
    for i, title in enumerate(differences, 1):
        yield ReportSection(title, tables.differences_table(comparison, i, few), "summary")
        lost = steps.steps_table(comparison, i)
        yield ReportSection(f"Gold lost by step{suffixes[i]}", lost, "summary", steps.NOTE if lost.rows else "")
        sliced = bounds.bounds_table(comparison, i)
        yield ReportSection(f"{bounds.TITLE}{suffixes[i]}", sliced, "summary", bounds.NOTE if sliced.rows else "")
    yield ReportSection("Queries without gold", tables.no_result_table(comparison), "details")
    yield ReportSection("By query type", tables.types_table(comparison), "details")
    yield ReportSection("Agreement", tables.agreement_table(comparison), "details")
    yield ReportSection("Time", tables.times_table(comparison), "plots")
    for i, of in suffixes.items():
        for what, changes in (("gains", tables.gains(comparison, i)), ("losses", tables.losses(comparison, i))):
            lines = "\n".join(_describe_change(change, comparison.primary) for change in changes[:queries])
            title = f"The largest {what}{of} ({min(queries, len(changes))} of {len(changes)})"
            yield ReportSection(title, (), "", markdown=lines or None, folded=True)
    every = {title: tables.differences_table(comparison, i) for i, title in enumerate(differences, 1)}
    every = {"": tables.measures_table(comparison), **every}
    yield ReportSection(f"All {len(comparison.table)} measures", every, "", folded=True)
    by_type = tables.types_table(comparison, list(comparison.table))
    yield ReportSection("All measures by query type", by_type, "all", markdown="")
    yield ReportSection("Compared results", tables.systems_table(comparison), "results")
    yield ReportSection("Method", tables.about(comparison), "results")


def _describe_change(change: Change, primary: str) -> str:
    query, (before, after) = change.after, (score(of.values[primary]) for of in (change.before, change.after))
    line = f"- **{escape(query.id)}** {escape(query.text)}: {before} to {after} ({format_signed(change.difference)})"
    for place, documents in tables.list_retrieved(change):
        shown = (f"**{escape(i)}** ({grade})" if grade > 0 else escape(i) for i, grade in documents)
        line += f"\n  - {place}: {', '.join(shown) or 'nothing'}"
    return line
