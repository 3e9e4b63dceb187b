"""What is said of a comparison, in sentences and tables of values, for the console, Markdown and HTML alike.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runner.analysis.paired_tests import PAIRED_TESTS
from runner.reports.comparison.comparability import OTHERS
from runner.reports.comparison.compare import (
    NO_DIFFERENCE,
    Change,
    Comparison,
    TableStatistics,
    Times,
    Versus,
    mean,
    times,
)
from runner.reports.comparison.gate import Check
from runner.reports.comparison.significance import in_words
from runner.reports.evaluation.tables import abstention_table, recall_at_most
from runner.reports.rendering import numbers
from runner.reports.rendering.numbers import (
    format_signed,
    gist,
    milliseconds,
    number,
    p_value,
    percent,
    score,
    score4,
)
from runner.reports.rendering.tables import Column, Table

FOUND = 5
"""How many of the documents that a query found are told."""


def heading(comparison: Comparison) -> str:
    """Return what is compared to what."""
    first, *others = comparison.labels
    return f"{', '.join(others)} against {first}"


def verdicts(comparison: Comparison) -> list[str]:
    """Return of each system but the first, in a line, how much better it is, how surely, for whom, at what price."""
    return [_verdict(comparison, i) for i in range(1, len(comparison.results))]


def _verdict(comparison: Comparison, i: int) -> str:
    label, first = comparison.labels[i], comparison.labels[0]
    versus, primary = comparison.table[comparison.primary][i], comparison.primary
    if comparison.is_first(i):
        sources = " and ".join(dict.fromkeys((comparison.sources[0], comparison.sources[i])))
        return f"{label} and {first} are one and the same result ({sources}): name another to compare it with."
    if math.isnan(versus.difference):
        return f"{label} can't be compared to {first}: no query counts for all."
    p = f"{'' if versus.p < 0.001 else '= '}{p_value(versus.p)}".replace("<", "< ")
    sure = f"p {p} ({p_value(versus.corrected)} corrected for {_tests(comparison)})"
    if not versus.significant:
        sure += ", which may be luck"
        if math.isfinite(versus.needed):
            sure += f"; to see such a difference takes some {queries(versus.needed)} {_units(comparison)}"
    n = versus.wins + versus.ties + versus.losses
    by_query = f"better on {versus.wins:,}, as good on {versus.ties:,}, worse on {versus.losses:,} of {n:,} queries"
    if not versus.wins and not versus.losses:
        return f"{label} is as good as {first} in {primary}, on every query{_price(comparison, i)}."
    if abs(versus.difference) <= NO_DIFFERENCE:
        return f"{label} is as good as {first} in {primary} in the mean: {by_query}{_price(comparison, i)}."
    way = "better" if versus.difference > 0 else "worse"
    return (
        f"{label} is {way} than {first} in {primary} by {score4(abs(versus.difference))} "
        f"({relative(versus.relative)}; {numbers.interval_title(comparison.statistics.confidence)} of the difference "
        f"{bounds((versus.low, versus.high))}), {sure}: "
        f"{by_query}{_price(comparison, i)}."
    )


def _units(comparison: Comparison) -> str:
    """Return what counts as one observation: a query, or a cluster of its variants."""
    return "queries" if comparison.clusters is None else "clusters"


def _price(comparison: Comparison, i: int) -> str:
    own, first = (comparison.results[position].timings.median_ms for position in (i, 0))
    known = own is not None and first is not None
    return f"; {milliseconds(own)} ms a query against {milliseconds(first)} ms (medians)" if known else ""


def queries(count: float) -> str:
    """Return how many queries it would take as text: a dash where none would do, or nobody knows."""
    return numbers.DASH if not math.isfinite(count) else f"{count:,.0f}" if count < 1e6 else "millions of"


def relative(value: float) -> str:
    """Return a share with its sign."""
    return numbers.DASH if math.isnan(value) else f"{value:+.1%}"


def bounds(low_high: tuple[float, float]) -> str:
    """Return an interval of a difference as text."""
    return numbers.DASH if math.isnan(low_high[0]) else f"[{low_high[0]:+.3f}, {low_high[1]:+.3f}]"


def headline(comparison: Comparison) -> list[str]:
    """Return the few measures that stand for all: the primary, its cutoff's P and R, RR, and those not of a ranking."""
    _, _, cutoff = comparison.primary.rpartition("@")
    wanted = [comparison.primary, f"P@{cutoff}", f"R@{cutoff}", recall_at_most(comparison.table) or "", "RR", *OTHERS]
    return [measure for measure in dict.fromkeys(wanted) if measure in comparison.table]


def systems_table(comparison: Comparison) -> Table:
    """Return what is compared: where each is from, and how many of its queries failed."""
    columns = [Column("system"), Column("retriever", spare=2), Column("from", least=20)]
    columns += [Column(comparison.primary, score4, numeric=True), Column("errors", number, numeric=True, spare=1)]
    rows = [
        [label, result.retriever, source, comparison.table[comparison.primary][i].mean, len(result.failures)]
        for i, (label, source, result) in enumerate(
            zip(comparison.labels, comparison.sources, comparison.results, strict=True)
        )
    ]
    return Table(columns, rows)


def measures_table(comparison: Comparison, measures: Sequence[str] | None = None) -> Table:
    """Return the values of each measure in all systems, and which is the highest."""
    columns = [Column("measure"), *(Column(label, score4, numeric=True) for label in comparison.labels)]
    columns.append(Column("winner", spare=1))
    rows = [
        [m, *(versus.mean for versus in comparison.table[m]), comparison.winner(m)]
        for m in (comparison.table if measures is None else measures)
    ]
    return Table(columns, rows)


def no_result_table(comparison: Comparison) -> Table:
    """Return how the queries without gold went in each system, by score threshold, with what that cost the others."""
    parts = [abstention_table(result) for result in comparison.results]
    columns = list(parts[0].columns)
    if len({result.abstention.k for result in comparison.results}) > 1:
        columns = [replace(c, title="recall") if c.title.startswith("R@") else c for c in columns]
    rows = [[label, *row] for label, part in zip(comparison.labels, parts, strict=True) for row in part.rows]
    return Table([Column("system"), *columns], rows)


def differences_table(comparison: Comparison, i: int, measures: Sequence[str] | None = None) -> Table:
    """Return the differences of a system to the first, measure by measure."""
    columns = [
        Column("measure"),
        Column("difference", format_signed, numeric=True),
        Column("relative", relative, numeric=True, spare=2),
        Column(numbers.interval_title(comparison.statistics.confidence), bounds, numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=3),
        Column("corrected", p_value, numeric=True),
        Column("effect", lambda value: numbers.DASH if math.isnan(value) else f"{value:+.2f}", numeric=True, spare=4),
        Column("W/T/L", numeric=True, spare=3),
        Column(f"{_units(comparison)} needed", queries, numeric=True, spare=5),
    ]
    return Table(columns, [_difference_row(m, comparison.table[m][i]) for m in (measures or comparison.table)])


def _difference_row(measure: str, v: Versus) -> list[Any]:
    won = f"{v.wins}/{v.ties}/{v.losses}"
    return [measure, v.difference, v.relative, (v.low, v.high), v.p, v.corrected, v.effect, won, v.needed]


def types_table(comparison: Comparison, measures: Sequence[str] | None = None) -> Table:
    """Return measures by query type in all systems, with how many queries each is over."""
    measures = headline(comparison) if measures is None else measures
    columns = [Column("type"), Column("queries", number, numeric=True, spare=2)]
    columns.append(Column("measure", spare=3 if len(measures) == 1 else 0))
    columns += [Column(label, score4, numeric=True) for label in comparison.labels]
    columns.append(Column("winner", spare=1))
    rows = [
        [of["type"], of["queries"], of["measure"], *of["means"], of["winner"]] for of in by_type(comparison, measures)
    ]
    return Table(columns, rows)


def by_type(comparison: Comparison, measures: Sequence[str]) -> list[dict[str, Any]]:
    """Return the means of measures by query type, where one counts."""
    found = []
    for kind, queries in comparison.types().items():
        for measure in measures:
            scores = comparison.scores[measure][:, queries]
            means = [mean(row) for row in scores]
            if not math.isnan(means[0]):
                found.append(
                    {
                        "type": kind,
                        "measure": measure,
                        "queries": int(np.count_nonzero(~np.isnan(scores[0]))),
                        "means": means,
                        "winner": comparison.highest(means),
                    }
                )
    return found


def times_table(comparison: Comparison) -> Table:
    """Return how long a query takes, empty where nobody knows."""
    columns = [Column("ms a query"), Column("mean", milliseconds, numeric=True)]
    columns += [Column("median", milliseconds, numeric=True, spare=1), Column("p95", milliseconds, numeric=True)]
    columns += [Column(name, milliseconds, numeric=True, spare=2) for name in ("min", "max")]
    found = [times(result) for result in comparison.results]
    rows = [
        [label, t.mean, t.median, t.p95, t.least, t.most] for label, t in zip(comparison.labels, found, strict=True)
    ]
    return Table(columns, rows if any(t != Times(None, None, None, None, None) for t in found) else [])


def changes_table(changes: Sequence[Change], primary: str) -> Table:
    """Return queries that went otherwise."""
    columns = [
        Column("query", least=8),
        Column("text", gist, least=30),
        Column("type", spare=3),
        Column(primary, lambda values: f"{score(values[0])} \N{RIGHTWARDS ARROW} {score(values[1])}", numeric=True),
        Column("first gold", lambda ranks: " \N{RIGHTWARDS ARROW} ".join(map(number, ranks)), numeric=True, spare=1),
    ]
    rows = [
        [
            change.after.id,
            change.after.text,
            change.after.type,
            (change.before.values[primary], change.after.values[primary]),
            (change.before.first_gold, change.after.first_gold),
        ]
        for change in changes
    ]
    return Table(columns, rows)


def gate_verdict(checks: Sequence[Check]) -> str:
    """Return in a line whether the rules hold."""
    violated = [check for check in checks if check.violated]
    if not checks:
        return "gate: no rules"
    too_few = sum(check.too_few for check in checks)
    unsure = f", {too_few} with too few queries to tell" if too_few else ""
    if not violated:
        return f"gate passed: {len(checks)} of {len(checks)} rules hold{unsure}"
    return f"gate failed: {len(violated)} of {len(checks)} rules violated{unsure}"


def gate_table(checks: Sequence[Check], limit: int | None = None) -> Table:
    """Return the rules, those that are violated first."""
    columns = [
        Column("outcome"),
        Column("system", spare=1),
        Column("rule"),
        Column("measure"),
        Column("type", lambda kind: kind or "all"),
        Column("baseline", _measured, numeric=True, spare=2),
        Column("value", _measured, numeric=True),
        Column("allowed", lambda value: f"{value:g}", numeric=True),
        Column("p", p_value, numeric=True, spare=3),
    ]
    rows = [
        [outcome(c), c.system, c.rule, c.measure, c.type, c.before, c.after, c.limit, c.p]
        for c in sorted(checks, key=lambda check: not check.violated)
    ]
    return Table(columns, rows[:limit])


def _measured(value: float) -> str:
    """Return what a rule is about as text: the value of a measure, or a count."""
    return number(value) if isinstance(value, int) else score4(value)


def outcome(check: Check) -> str:
    """Return in a word or two what became of a rule."""
    if check.violated:
        return "violated"
    if check.too_few:
        return "too few queries"
    return "noise" if not math.isnan(check.p) else "holds"


def statistics_told(comparison: Comparison) -> str:
    """Return how the differences were tested."""
    s, clusters = comparison.statistics, comparison.clusters
    by = "" if clusters is None else f" and tested by cluster ({clusters:,} clusters of variants)"
    return (
        f"Differences are paired, query by query{by}; {in_words(s.test, s.correction)} for the "
        f"{_tests(comparison)} of the table; seed {s.seed}. {_agreement(s)}"
    )


def _agreement(statistics: TableStatistics) -> str:
    """Return how intervals and p-values are related."""
    test = PAIRED_TESTS[statistics.test]
    if not test.is_about_mean:
        return (
            f"Intervals are of the mean difference, by random flips of signs; {test.label}'s p-values are not about "
            "the mean, so the two may disagree."
        )
    told = f"An interval excludes 0 where p, uncorrected, is below {1 - statistics.confidence:.3g}"
    return f"{told}; the corrected p may still be larger." if statistics.correction != "none" else f"{told}."


def _tests(comparison: Comparison) -> str:
    return f"{comparison.tests:,} test{'' if comparison.tests == 1 else 's'}"


def agreement_table(comparison: Comparison) -> Table:
    """Return how far each system finds what the first finds."""
    columns = [Column(f"with {comparison.labels[0]}"), Column("queries", number, numeric=True, spare=3)]
    columns += [Column("same first", percent, numeric=True)]
    columns += [Column(f"Jaccard@{k}", score, numeric=True, spare=1) for k in (3, 5)]
    columns += [Column("RBO", score, numeric=True), Column("Kendall's tau", score, numeric=True, spare=2)]
    found = [(label, comparison.agreement_of(i)) for i, label in enumerate(comparison.labels) if i]
    return Table(columns, [[label, a.queries, *a.coefficients.values()] for label, a in found if a is not None])


def headroom_told(comparison: Comparison) -> str:
    """Return what choosing the best system for each query could gain."""
    h = comparison.headroom
    if not h.queries:
        return ""
    return (
        f"An oracle that takes the best of them for each query would reach {comparison.primary} {score4(h.oracle)}, "
        f"{score4(h.oracle - h.mean)} more than {comparison.labels[h.best]}."
    )


def about(comparison: Comparison) -> list[str]:
    """Return what a reader should know of how the figures came to be."""
    told = [comparison.same, *comparison.notes, statistics_told(comparison), headroom_told(comparison)]
    return [line for line in told if line]


def gains(comparison: Comparison, i: int) -> list[Change]:
    """Return the queries of a system that went better than in the first, the largest gain first."""
    return [change for change in comparison.changes(i) if change.difference > 0]


def losses(comparison: Comparison, i: int) -> list[Change]:
    """Return the queries of a system that went worse than in the first, the largest loss first."""
    return [change for change in reversed(comparison.changes(i)) if change.difference < 0]


def found_told(change: Change) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the first documents that a query found before and after, each with its grade (-1 unjudged)."""
    return [("before", list(change.before.retrieved[:FOUND])), ("after", list(change.after.retrieved[:FOUND]))]
