"""An audit as a table and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from runner.features.audit.audit import Audit
from runner.pages.numbers import format_signed, interval_title, p_value, score
from runner.pages.tables import Column, Table

_ASSUMED = {
    "typical": "typical spread",
    "largest": "largest possible spread",
    "given": "given deviation",
    "exact": "exact, hits and misses",
}


def describe_value(audit: Audit) -> str:
    """Return the value with its interval by each assumption."""
    shown = [f"[{low:.3f}, {high:.3f}] ({_ASSUMED[kind]})" for kind, (low, high) in audit.intervals.items()]
    return (
        f"{audit.measure} {score(audit.value)} on {audit.queries:,} queries: {interval_title(1 - audit.alpha)} "
        f"{' or '.join(shown)}."
    )


def assumptions_table(audit: Audit) -> Table:
    """Return the difference by each assumption; empty without a baseline."""
    columns = [
        Column(f"difference {format_signed(audit.difference, 3)} with"),
        Column("deviation", score, numeric=True),
        Column(interval_title(round(1 - audit.level, 4)), numeric=True),
        Column("p", p_value, numeric=True),
        Column("queries needed", _format_needed, numeric=True),
    ]
    rows = [
        [_ASSUMED[a.name], a.deviation, f"[{a.interval[0]:+.3f}, {a.interval[1]:+.3f}]", a.p, a.needed]
        for a in audit.assumptions
    ]
    return Table(columns, rows)


def describe_difference(audit: Audit) -> Iterator[str]:
    """Yield what the numbers say about the difference; nothing without a baseline."""
    if not audit.assumptions:
        return
    first, level = audit.assumptions[0], f"{audit.level:.3g}"
    if audit.systems > 1:
        yield (
            f"{audit.systems:,} systems were tried, so each difference is tested at {level} instead of {audit.alpha:g} "
            "(Bonferroni)."
        )
    yield (
        f"At least {audit.fewest:,} of {audit.queries:,} queries differ; the smallest p possible is "
        f"{_format_p(audit.smallest_p)}{'' if audit.is_exact else ', if all of them do'}."
    )
    yield (
        f"{audit.queries:,} queries: differences below about {score(audit.detectable)} usually cannot be seen (power "
        f"80%, one test at {level}, {_ASSUMED[first.name]})."
    )
    if not audit.possible:
        why = f"p is {p_value(first.p)}" if audit.smallest_p < audit.level else f"no p below {level} is possible"
        yield f"Not significant at {level}: {why}."
    elif first.p < audit.level:
        yield f"With the {_ASSUMED[first.name]}, the difference is significant at {level}."
    else:
        yield (
            f"With a typical spread, the difference is not significant at {level}; it is if the differences of single "
            f"queries deviate by less than about {score(audit.enough)}. Ask for the scores of single queries."
        )


def _format_p(p: float) -> str:
    return f"{p:.1g}" if p < 0.001 else f"{p:.3f}"


def _format_needed(needed: float) -> str:
    return "-" if math.isinf(needed) else f"{needed:,.0f}"
