"""A comparison for CI systems: JUnit XML, and the annotations and step summary of GitHub Actions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from runner.comparison.compare import Change, Comparison
from runner.comparison.gate import Check, Gate, Verdict
from runner.comparison.report import gate_rules, tables
from runner.pages.junit import JUnitCase, JUnitSuite, render_junit
from runner.pages.numbers import gist, score

Outcome = Literal["passed", "failed", "error", "skipped"]

_UNDECIDED: Mapping[str, Outcome] = {"fail": "error", "pass": "passed", "warn": "skipped"}
"""The outcome of an undecided rule by `Gate.undecided`."""

LARGEST_SUMMARY = 1_000_000
"""The most bytes of a step summary; GitHub refuses more than 1 MiB."""

_CUT = "\n\nThis summary is truncated; `output=FOLDER` writes the whole report.\n"


def comparison_junit(comparison: Comparison, checks: Sequence[Check], gate: Gate) -> str:
    """Return the rules of a gate as JUnit XML: a suite for each candidate, a case for each rule.

    An undecided rule is an error if an undecided gate fails, passes if it passes, and is skipped if it warns.
    """
    outcomes = list_outcomes(gate)
    return render_junit(
        [
            JUnitSuite(
                f"{label} against {comparison.labels[0]}",
                [_case(check, outcomes) for check in checks if check.system == label],
            )
            for label in comparison.labels[1:]
        ]
    )


def list_outcomes(gate: Gate) -> dict[Verdict, Outcome]:
    """Return the outcome in JUnit of each verdict."""
    return {"pass": "passed", "fail": "failed", "undecided": _UNDECIDED[gate.undecided]}


def _case(check: Check, outcomes: Mapping[Verdict, Outcome]) -> JUnitCase:
    limits = {"floor": f"at least {check.limit:g}", "drop": f"drops at most {check.limit:g}"}
    others = {"errors": f"at most {check.limit:g} errors", "locked": f"every rule, at the locked split {check.measure}"}
    name = f"{check.measure} {limits[check.rule]}" if check.rule in limits else others[check.rule]
    of_type = f", queries of type {check.type}" if check.type else ""
    return JUnitCase(f"gate.{check.rule}", name + of_type, outcomes[check.verdict], gate_rules.describe_check(check))


def is_github(wanted: Literal["auto", "always", "never"]) -> bool:
    """Return whether to write for GitHub Actions: always, never, or where a workflow runs."""
    return wanted == "always" or (wanted == "auto" and os.environ.get("GITHUB_ACTIONS") == "true")


def iter_annotations(comparison: Comparison, checks: Sequence[Check], queries: int, gate: Gate) -> Iterator[str]:
    """Yield workflow commands: one for each rule that does not pass, and the largest losses of each candidate.

    A violated rule is an error; an undecided one is, too, unless an undecided gate passes. The losses are warnings if
    a rule does not pass, otherwise notices.
    """
    levels = {"fail": "error", "undecided": {"fail": "error", "warn": "warning", "pass": "notice"}[gate.undecided]}
    unmet = gate_rules.list_open_checks(checks)
    for check in unmet:
        yield _annotate(levels[check.verdict], "Retrieval gate", gate_rules.describe_check(check))
    level = "warning" if unmet else "notice"
    for system in range(1, len(comparison.labels)):
        for change in tables.losses(comparison, system)[:queries]:
            title = f"Query {change.after.id} of {comparison.labels[system]}"
            yield _annotate(level, title, _describe_loss(change, comparison.primary))


def _describe_loss(change: Change, primary: str) -> str:
    before, after = (score(of.values[primary]) for of in (change.before, change.after))
    ranks = [of.first_gold or "none" for of in (change.before, change.after)]
    return f"{gist(change.after.text)}: {primary} {before} to {after}, first gold at rank {ranks[0]} to {ranks[1]}"


def _annotate(level: str, title: str, message: str) -> str:
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    heading = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title={heading.replace(':', '%3A').replace(',', '%2C')}::{escaped}"


def cut_summary(markdown: str) -> str:
    """Return a step summary that GitHub accepts."""
    encoded = markdown.encode()
    if len(encoded) <= LARGEST_SUMMARY:
        return markdown
    return encoded[: LARGEST_SUMMARY - len(_CUT)].decode(errors="ignore") + _CUT
