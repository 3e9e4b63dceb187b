"""The course of a sequential gate as sentences, a table, JSON and JUnit XML."""

from __future__ import annotations

from typing import Any

from runner.comparison.gate import Gate, conclude
from runner.comparison.report.ci import list_outcomes
from runner.comparison.report.tables import bounds
from runner.features.accept.acceptance import Acceptance, Blocks, Decision
from runner.pages.junit import JUnitCase, JUnitSuite, render_junit
from runner.pages.numbers import format_count, format_signed, percent, score4
from runner.pages.tables import Column, Table


def decisions_table(acceptance: Acceptance, gate: Gate) -> Table:
    """Return the rules with the values on the searched queries."""
    columns = [
        Column("verdict"),
        Column("measure"),
        Column("baseline", score4, numeric=True, spare=2),
        Column("value", score4, numeric=True, spare=1),
        Column("difference", format_signed, numeric=True),
        Column(f"{percent(1 - (gate.alpha or 0.0))} at any time", bounds, numeric=True),
        Column("allowed", lambda value: f"{value:g}", numeric=True),
    ]
    rows = [
        [c.verdict, c.measure, c.before, c.after, -c.drop, (decision.low, decision.high), c.limit]
        for decision in acceptance.decisions
        for c in [decision.check]
    ]
    return Table(columns, rows)


def describe_acceptance(acceptance: Acceptance, gate: Gate, blocks: Blocks) -> list[str]:
    """Return what was searched and saved, what the verdict means, and why the means are not those of the dataset."""
    total, searched = acceptance.total, len(acceptance.queries)
    calls = f", and up to {acceptance.saved_calls:,} calls of language models" if acceptance.saved_calls else ""
    saved = f"This saved {acceptance.saved:,} searches ({percent(acceptance.saved / total)}){calls}."
    course = (
        f"Sequential: {searched:,} of {total:,} queries with gold were searched, in "
        f"{format_count(acceptance.blocks, 'block', 'blocks')} of up to {blocks.block:,}, in random order (seed "
        f"{blocks.seed}). {saved if acceptance.saved else 'None were saved.'}"
    )
    risk = f"{(gate.alpha or 0.0) / 2:g}"
    meaning = {
        "noninferior": f"A wrong pass and a wrong fail have a probability of at most {risk} each, whenever it stops.",
        "regression": f"A pass is about these {total:,} queries: a drop of more than the limit on all of them has a "
        f"probability of at most {risk}. A fail shows a loss, with the same risk.",
    }[gate.proof]
    return [course, f"{meaning} Means and intervals are of the searched queries, and not measures of the dataset."]


def describe_decision(decision: Decision) -> str:
    """Return a rule in a sentence."""
    check = decision.check
    return (
        f"{check.measure} {check.verdict}: difference {format_signed(-check.drop)} "
        f"{bounds((decision.low, decision.high))} at any time, a drop of {check.limit:g} is allowed"
    )


def acceptance_junit(acceptance: Acceptance, gate: Gate) -> str:
    """Return the rules as JUnit XML."""
    outcomes = list_outcomes(gate)
    cases = [
        JUnitCase("gate.drop", f"{d.check.measure} drops at most {d.check.limit:g}", outcomes[d.check.verdict],
                  describe_decision(d))
        for d in acceptance.decisions
    ]  # fmt: skip
    return render_junit([JUnitSuite(f"{acceptance.candidate} against {acceptance.baseline}", cases)])


def convert_acceptance(acceptance: Acceptance, gate: Gate, blocks: Blocks) -> dict[str, Any]:
    """Return the course for JSON."""
    rules = [
        {
            "measure": d.check.measure, "verdict": d.check.verdict, "limit": d.check.limit, "before": d.check.before,
            "after": d.check.after, "low": d.low, "high": d.high, "reason": describe_decision(d),
        }
        for d in acceptance.decisions
    ]  # fmt: skip
    verdict = conclude(acceptance.checks)
    return {
        "sequential": True,
        "baseline": acceptance.baseline,
        "candidate": acceptance.candidate,
        "primary": acceptance.primary,
        "gate": {"verdict": verdict, "passed": verdict == "pass", "proof": gate.proof, "rules": rules},
        "statistics": {"alpha": gate.alpha, "block": blocks.block, "seed": blocks.seed},
        "of": acceptance.total,
        "searched": len(acceptance.queries),
        "blocks": acceptance.blocks,
        "saved": {"searches": acceptance.saved, "calls": acceptance.saved_calls},
        "queries": list(acceptance.queries),
    }
