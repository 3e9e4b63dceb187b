"""The rules of a gate as sentences and a table: which hold, and what would decide the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from runner.comparison.gate import Check, Gate, Look, Verdict, conclude
from runner.comparison.report.tables import queries
from runner.pages.numbers import format_count, number, p_value, percent, score4
from runner.pages.tables import Column, Table

_ORDER: Sequence[Verdict] = ("fail", "undecided", "pass")


def describe_check(check: Check) -> str:
    """Return in a line whether a rule is followed, with the values that it compares."""
    what = f"{check.system}: {check.measure}" + (f" of type {check.type}" if check.type else "")
    if check.look is not None:
        return f"{check.system}: {describe_look(check.look, check.verdict)}"
    if check.rule == "errors":
        failed = format_count(int(check.after), "query", "queries")
        return f"{check.system}: {failed} raised an error; {number(int(check.limit))} allowed"
    if math.isnan(check.after):
        return f"{what} cannot be measured, because no query has a value"
    cost = describe_cost(check)
    if check.rule == "floor":
        side = "below" if check.verdict == "fail" else "at least"
        return f"{what} is {score4(check.after)}{cost}, {side} {check.limit:g}"
    fell = f"{what} fell by {score4(check.drop)}, from {score4(check.before)} to {score4(check.after)}{cost}"
    return f"{fell if check.drop > 0 else f'{what} did not fall{cost}'}: {describe_proof(check)}"


def describe_look(look: Look, verdict: Verdict) -> str:
    """Return the answer of a locked split, which look it was, at which level, and how many looks are left."""
    shown = "every rule holds" if verdict == "pass" else "not shown that every rule holds"
    counted = " (the same question as before, which is not counted again)" if look.is_repeated else ""
    return (
        f"{shown}, at level {look.level:.2g}; look {look.number:,} of {look.budget:,} at the locked split "
        f"{look.split}{counted}, {format_count(look.left, 'look', 'looks')} left"
    )


def describe_proof(check: Check) -> str:
    """Return why a drop passes, fails or is undecided."""
    limit, excess = f"{check.limit:g}", "more than the" if check.exceeds else "within the"
    if math.isnan(check.p):  # nothing was tested
        return f"{excess} {limit} that is allowed"
    hidden = f"a loss of up to {score4(check.hidden)}" if math.isfinite(check.hidden) else "a loss of any size"
    on = f"with {format_count(check.queries, 'query', 'queries')}"
    p = f"p {'' if check.p < 0.001 else '= '}{p_value(check.p)}"
    if check.verdict == "pass":
        if check.proof == "noninferior":
            return f"a loss of more than {limit} is excluded (at most {score4(check.hidden)})"
        rest = f"{hidden} could be hidden" if score4(check.hidden) != score4(0.0) else "any loss is excluded"
        return f"within the {limit} that is allowed; {rest} {on}"
    if check.verdict == "fail":
        return f"{excess} {limit} that is allowed, and significant ({p})"
    if check.proof == "noninferior":
        why = f"{hidden} could be hidden {on}, and {limit} is allowed (a loss is not significant, {p})"
    else:
        why = f"more than the {limit} that is allowed, but not significant ({p} {on})"
    return f"{why}; {describe_more(check)}{_propose_floor(check)}"


def _propose_floor(check: Check) -> str:
    """Return the floor that fails an undecided rule without a test, where half of the baseline's value is lost."""
    if check.after > check.before / 2:
        return ""
    floor = f"{{{check.measure}: {check.before - check.limit:.4g}}}"
    setting = f"floors_by_type={{{check.type}: {floor}}}" if check.type else f"floors={floor}"
    return f"; a floor fails such a loss without a test: '+gate.{setting}'"


def describe_more(check: Check) -> str:
    """Return how many more queries, and of which kind, would decide a rule."""
    if math.isnan(check.more):
        return "it is unknown how many more queries would decide it"
    if math.isinf(check.more):
        return "no number of such queries would decide it"
    kind = "on which the systems differ; queries with equal results decide nothing"
    differing = f"{queries(math.ceil(check.differing))} of them" if check.differing >= 0 else "those"
    return f"about {queries(math.ceil(check.more))} more queries would decide it, {differing} {kind}"


def describe_cost(check: Check) -> str:
    """Return the cost of a TN rate to the answerable queries, in brackets; "" for other measures."""
    return "" if check.cost is None else f" (answerable queries rejected {percent(check.cost)})"


def gate_verdict(checks: Sequence[Check]) -> str:
    """Return in a line whether all rules are followed."""
    if not checks:
        return "gate: no rules"
    if split := next((check.look.split for check in checks if check.look), ""):
        passed = conclude(checks) == "pass"
        return (
            f"gate {'passed' if passed else 'undecided'}: the locked split {split} answers {'yes' if passed else 'no'}"
        )
    count = Counter(check.verdict for check in checks)
    unsure = f", {count['undecided']} undecided" if count["undecided"] else ""
    return {
        "pass": f"gate passed: {len(checks)} of {len(checks)} rules hold",
        "fail": f"gate failed: {count['fail']} of {len(checks)} rules violated{unsure}",
        "undecided": f"gate undecided: {count['undecided']} of {len(checks)} rules undecided, no rule violated",
    }[conclude(checks)]


def warn_undecided(checks: Sequence[Check], gate: Gate) -> str:
    """Return a warning if an undecided gate only warns, "" otherwise."""
    is_wanted = gate.undecided == "warn" and conclude(checks) == "undecided"
    return f"warning: {gate_verdict(checks)}" if is_wanted else ""


def list_open_checks(checks: Sequence[Check]) -> list[Check]:
    """Return the rules that do not pass, those that fail first."""
    return sorted((check for check in checks if check.verdict != "pass"), key=_order)


def list_reasons(checks: Sequence[Check]) -> list[Check]:
    """Return the rules that explain the verdict: those that do not pass, or else drops over all queries, or looks."""
    explaining = [check for check in checks if check.look or (check.rule == "drop" and not check.type)]
    return list_open_checks(checks) or explaining


def _order(check: Check) -> int:
    return _ORDER.index(check.verdict)


def gate_table(checks: Sequence[Check], limit: int | None = None) -> Table:
    """Return the rules, those that do not pass first."""
    columns = [
        Column("verdict"),
        Column("system", spare=1),
        Column("rule"),
        Column("measure"),
        Column("type", lambda kind: kind or "all"),
        Column("baseline", _format_rule_value, numeric=True, spare=2),
        Column("value", _format_rule_value, numeric=True),
        Column("allowed", lambda value: f"{value:g}", numeric=True),
        Column("could be hidden", score4, numeric=True, spare=4),
        Column("p", p_value, numeric=True, spare=3),
    ]
    rows = [
        [c.verdict, c.system, c.rule, c.measure, c.type, c.before, c.after, c.limit, c.hidden, c.p]
        for c in sorted(checks, key=_order)
    ]
    return Table(columns, rows[:limit])


def _format_rule_value(value: float) -> str:
    """Return the value of a measure, or a count, as text."""
    return number(value) if isinstance(value, int) else score4(value)
