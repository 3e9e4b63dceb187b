"""A comparison as sentences and tables, for the console, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runner.comparison.compare import (
    NO_DIFFERENCE,
    Change,
    Comparison,
    TableStatistics,
    compute_mean,
    summarise_times,
)
from runner.comparison.report.significance import in_words
from runner.evaluation.report.tables import abstention_table
from runner.pages import numbers
from runner.pages.numbers import (
    format_count,
    format_signed,
    gist,
    milliseconds,
    number,
    p_value,
    percent,
    score,
    score4,
)
from runner.pages.tables import Column, Table
from runner.statistics.comparison import Difference
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS

LISTED = 5
"""Retrieved documents listed for a query."""


def heading(comparison: Comparison) -> str:
    """Return the systems and their baseline."""
    first, *others = comparison.labels
    return f"{', '.join(others)} against {first}"


def verdicts(comparison: Comparison) -> list[str]:
    """Return a sentence on each system but the first: its difference, significance, wins, losses and time."""
    return [_verdict(comparison, i) for i in range(1, len(comparison.results))]


def _verdict(comparison: Comparison, i: int) -> str:
    label, first = comparison.labels[i], comparison.labels[0]
    versus, primary = comparison.table[comparison.primary][i], comparison.primary
    if comparison.is_first(i):
        sources = " and ".join(dict.fromkeys((comparison.sources[0], comparison.sources[i])))
        return f"{label} and {first} are the same result ({sources}); choose another candidate."
    own = versus.difference
    foreign = [comparison.labels[place] for place in (i, 0) if comparison.results[place].has_foreign_ids]
    if foreign:
        what = "in the dataset" if comparison.results[i].dataset.documents else "gold of any query"
        return f"{label} cannot be compared with {first}, because no hit of {foreign[0]} is {what}."
    if math.isnan(own.mean):
        return f"{label} cannot be compared with {first}, because no query has a value in all results."
    p = f"{'' if own.p < 0.001 else '= '}{p_value(own.p)}".replace("<", "< ")
    candidates = len(comparison.candidates)
    family = f"all pairs of {comparison.among:,} systems" if comparison.among else f"{candidates:,} candidates"
    significance = f"p {p}"
    if candidates > 1 or comparison.among:
        is_corrected = _is_corrected(comparison.choice_correction or comparison.statistics.correction)
        significance += f" ({p_value(own.corrected) if is_corrected else 'not'} corrected for {family})"
    if not own.significant and math.isfinite(own.needed):
        needed = f"{queries(own.needed)} {_units(comparison)}"
        significance += f"; about {needed} would be needed to detect a difference of this size"
    by_query = f"better on {own.wins:,}, equal on {own.ties:,}, worse on {own.losses:,} of {own.queries:,} queries"
    if not own.differing:
        return f"{label} equals {first} in {primary} on every query{_price(comparison, i)}."
    if abs(own.mean) <= NO_DIFFERENCE:
        return f"{label} equals {first} in mean {primary}: {by_query}{_price(comparison, i)}."
    way = "better" if own.mean > 0 else "worse"
    return (
        f"{label} is {'' if own.significant else 'not significantly '}{way} than {first} in {primary}: "
        f"{format_signed(own.mean)} ({relative(versus.relative)}; "
        f"{describe_interval(own, comparison.statistics.confidence)}), "
        f"{significance}; {by_query}{_price(comparison, i)}."
    )


def _is_corrected(correction: str) -> bool:
    """Return whether a correction takes the number of tests into account."""
    return CORRECTIONS[correction].depends_on_family


def _units(comparison: Comparison) -> str:
    """Return the unit of observation: queries, or clusters of variants."""
    return "queries" if comparison.clusters is None else "clusters"


def _price(comparison: Comparison, i: int) -> str:
    own, first = (comparison.results[position].timings.median_ms for position in (i, 0))
    known = own is not None and first is not None
    return f"; {milliseconds(own)} ms per query against {milliseconds(first)} ms (medians)" if known else ""


def queries(count: float) -> str:
    """Return a number of queries as text, a dash if infinite or unknown."""
    return numbers.DASH if not math.isfinite(count) else f"{count:,.0f}" if count < 1e6 else "millions of"


def relative(value: float) -> str:
    """Return a share with its sign."""
    return numbers.DASH if math.isnan(value) else f"{value:+.1%}"


def describe_interval(difference: Difference, confidence: float) -> str:
    """Return the interval of a difference with its title, or why there is none."""
    shown = "" if math.isnan(difference.low) else bounds((difference.low, difference.high))
    return numbers.describe_difference_interval(confidence, shown, difference.differing, difference.queries)


def interval_cell(difference: Difference) -> tuple[float, float, int, int]:
    """Return the value of a cell that `numbers.difference_interval` shows."""
    return difference.low, difference.high, difference.differing, difference.queries


def bounds(low_high: tuple[float, float]) -> str:
    """Return two signed ends as text."""
    return (
        numbers.DASH
        if math.isnan(low_high[0])
        else f"[{format_signed(low_high[0], 3)}, {format_signed(low_high[1], 3)}]"
    )


def systems_table(comparison: Comparison) -> Table:
    """Return the systems: their retrievers, sources, primary means and numbers of failed queries."""
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
    """Return the values of each measure in all systems with the highest, then the hole rates at the same cutoffs."""
    columns = [Column("measure"), *(Column(label, score4, numeric=True) for label in comparison.labels)]
    columns.append(Column("highest", spare=1))
    rows = [
        [m, *(versus.mean for versus in comparison.table[m]), comparison.winner(m)]
        for m in (comparison.table if measures is None else measures)
    ]
    return Table(columns, rows + [[f"hole rate@{k}", *rates, ""] for k, rates in hole_rates(comparison, measures)])


def means_table(comparison: Comparison) -> Table:
    """Return a row per system with its headline measures: `measures_table` for many systems."""
    columns = [Column("system"), *(Column(measure, score4, numeric=True) for measure in comparison.headline)]
    means = [[versus.mean for versus in comparison.table[measure]] for measure in comparison.headline]
    return Table(columns, [list(row) for row in zip(comparison.labels, *means, strict=True)])


def hole_rates(comparison: Comparison, measures: Sequence[str] | None = None) -> list[tuple[str, list[float | None]]]:
    """Return the hole rates of all systems at each cutoff of some measures, where any is above 0."""
    cutoffs = [m.rpartition("@")[2] for m in (comparison.table if measures is None else measures) if "@" in m]
    holes = [result.holes.rates if result.holes else {} for result in comparison.results]
    rows = [(k, [rates.get(k) for rates in holes]) for k in sorted(set(cutoffs), key=lambda k: (len(k), k))]
    return [(k, rates) for k, rates in rows if any(rates)]


def no_result_table(comparison: Comparison) -> Table:
    """Return the results of queries without gold by system and score threshold, and the cost to the others."""
    parts = [abstention_table(result) for result in comparison.results]
    columns = list(parts[0].columns)
    if len({result.abstention.k for result in comparison.results}) > 1:
        columns = [replace(c, title="recall") if c.title.startswith("R@") else c for c in columns]
    rows = [[label, *row] for label, part in zip(comparison.labels, parts, strict=True) for row in part.rows]
    return Table([Column("system"), *columns], rows)


def differences_table(comparison: Comparison, i: int, measures: Sequence[str] | None = None) -> Table:
    """Return the differences of a system to the first by measure."""
    rows = [_difference_row(m, comparison, m, i) for m in (measures or comparison.table)]
    return Table(_difference_columns(comparison, "measure"), rows)


def primary_table(comparison: Comparison) -> Table:
    """Return the difference of each system to the first in the primary measure."""
    labels = list(enumerate(comparison.labels))[1:]
    rows = [_difference_row(label, comparison, comparison.primary, i) for i, label in labels]
    return Table(_difference_columns(comparison, "system"), rows)


def _difference_columns(comparison: Comparison, of: str) -> list[Column]:
    return [
        Column(of),
        Column("difference", format_signed, numeric=True),
        Column("relative", relative, numeric=True, spare=2),
        Column(
            numbers.interval_title(comparison.statistics.confidence), numbers.difference_interval, numeric=True, spare=1
        ),
        Column("tested as", spare=4),
        Column("p", p_value, numeric=True, spare=3),
        Column("corrected", p_value, numeric=True),
        Column("effect", lambda value: numbers.DASH if math.isnan(value) else f"{value:+.2f}", numeric=True, spare=4),
        Column("W/T/L", numeric=True, spare=3),
        Column(f"{_units(comparison)} needed", queries, numeric=True, spare=5),
    ]


def _difference_row(name: str, comparison: Comparison, measure: str, i: int) -> list[Any]:
    versus, family = comparison.table[measure][i], comparison.find_family(measure)
    own = versus.difference
    won, interval = f"{own.wins}/{own.ties}/{own.losses}", interval_cell(own)
    return [name, own.mean, versus.relative, interval, family, own.p, own.corrected, own.effect, won, own.needed]


def types_table(comparison: Comparison, measures: Sequence[str] | None = None) -> Table:
    """Return measures by query type in all systems, with the highest and the number of queries."""
    measures = comparison.headline if measures is None else measures
    columns = [Column("type"), Column("queries", number, numeric=True, spare=2)]
    columns.append(Column("measure", spare=3 if len(measures) == 1 else 0))
    columns += [Column(label, score4, numeric=True) for label in comparison.labels]
    columns.append(Column("highest", spare=1))
    rows = [
        [of["type"], of["queries"], of["measure"], *of["means"], of["winner"]] for of in by_type(comparison, measures)
    ]
    return Table(columns, rows)


def by_type(comparison: Comparison, measures: Sequence[str]) -> list[dict[str, Any]]:
    """Return the means of measures by query type, if any query counts."""
    rows = []
    for kind, queries in comparison.split_by_type().items():
        for measure in measures:
            scores = comparison.scores[measure][:, queries]
            means = [compute_mean(row) for row in scores]
            if not math.isnan(means[0]):
                rows.append(
                    {
                        "type": kind,
                        "measure": measure,
                        "queries": int(np.count_nonzero(~np.isnan(scores[0]))),
                        "means": means,
                        "winner": comparison.name_highest(means),
                    }
                )
    return rows


def times_table(comparison: Comparison) -> Table:
    """Return the time per query of each system; empty if unknown."""
    columns = [Column("ms per query"), Column("mean", milliseconds, numeric=True)]
    columns += [Column("median", milliseconds, numeric=True, spare=1), Column("p95", milliseconds, numeric=True)]
    columns += [Column(name, milliseconds, numeric=True, spare=2) for name in ("min", "max")]
    times = [summarise_times(result) for result in comparison.results]
    rows = [
        [label, t.mean, t.median, t.p95, t.least, t.most] for label, t in zip(comparison.labels, times, strict=True)
    ]
    return Table(columns, rows if any(t.mean is not None for t in times) else [])


def changes_table(changes: Sequence[Change], primary: str) -> Table:
    """Return changed queries, before and after."""
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


def describe_statistics(comparison: Comparison) -> str:
    """Return how the differences were tested."""
    s, clusters = comparison.statistics, comparison.clusters
    by = "" if clusters is None else f" and tested by cluster ({clusters:,} clusters of variants)"
    return (
        f"Differences are paired, query by query{by}; {in_words(s.test, s.correction)}; seed {s.seed}. "
        f"{describe_families(comparison)} {_describe_intervals(comparison)}"
    )


def describe_families(comparison: Comparison) -> str:
    """Return which tests are corrected together."""
    sizes, primary = comparison.count_tests(), comparison.primary
    corrected = "corrected" if _is_corrected(comparison.statistics.correction) else "not corrected"
    text = f"{primary}, the primary measure, is one test"
    if comparison.among:
        choice = CORRECTIONS[comparison.choice_correction]
        text = (
            f"{primary}, the primary measure, is {'' if choice.depends_on_family else 'not '}corrected for all pairs "
            f"of the {comparison.among:,} systems that these were chosen from, with {choice.description},"
        )
    elif sizes["primary"] > 1:
        text = f"{primary}, the primary measure, is {corrected} for {sizes['primary']:,} candidates"
    text += " and not corrected for other measures."
    if rules := sizes.get("gate"):
        text += f" The other measures of the gate are {corrected} for their {format_count(rules, 'test', 'tests')}."
    if exploratory := sizes.get("exploratory"):
        count = format_count(exploratory, "test", "tests")
        text += f" All other measures are exploratory and {corrected} for their {count}, shown or not;"
        text += " the command table counts only the measures that it shows."
    return text


def _describe_intervals(comparison: Comparison) -> str:
    """Return how intervals and p-values are related."""
    statistics, primary = comparison.statistics, comparison.primary
    of_choice = f" The interval of {primary} holds for all pairs, as on the leaderboard." if comparison.among else ""
    return f"{_describe_single_intervals(statistics)}{of_choice}"


def _describe_single_intervals(statistics: TableStatistics) -> str:
    test = PAIRED_TESTS[statistics.test]
    if not test.is_about_mean:
        return (
            f"Intervals are of the mean difference and come from random sign flips; {test.label}'s p-values do "
            "not test the mean, so the two may disagree."
        )
    text = f"An interval excludes 0 where p, uncorrected, is below {1 - statistics.confidence:.3g}"
    return (
        f"{text}; the corrected p may still be larger."
        if CORRECTIONS[statistics.correction].depends_on_family
        else f"{text}."
    )


def agreement_table(comparison: Comparison) -> Table:
    """Return the agreement of each system with the first."""
    columns = [Column(f"with {comparison.labels[0]}"), Column("queries", number, numeric=True, spare=3)]
    columns += [Column("same first", percent, numeric=True)]
    columns += [Column(f"Jaccard@{k}", score, numeric=True, spare=1) for k in (3, 5)]
    columns += [Column("RBO", score, numeric=True), Column("Kendall's tau", score, numeric=True, spare=2)]
    pairs = comparison.agreement.items()
    return Table(columns, [[label, pair.queries, *pair.coefficients.values()] for label, pair in pairs])


def describe_headroom(comparison: Comparison) -> str:
    """Return what choosing the best system for each query could gain."""
    h = comparison.headroom
    if not h.queries:
        return ""
    return (
        f"An oracle that picks the best system for each query would reach {comparison.primary} {score4(h.oracle)}, "
        f"{score4(max(0.0, h.oracle - h.mean))} more than {comparison.labels[h.best]}."
    )


def about(comparison: Comparison) -> list[str]:
    """Return remarks on the data, the tests and the headroom of a comparison."""
    lines = [comparison.same, *comparison.notes, describe_statistics(comparison), describe_headroom(comparison)]
    return [line for line in lines if line]


def gains(comparison: Comparison, i: int) -> list[Change]:
    """Return the queries on which a system is better than the first, the largest gain first."""
    return [change for change in comparison.list_changes(i) if change.difference > 0]


def losses(comparison: Comparison, i: int) -> list[Change]:
    """Return the queries on which a system is worse than the first, the largest loss first."""
    return [change for change in reversed(comparison.list_changes(i)) if change.difference < 0]


def list_retrieved(change: Change) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the first documents of a query before and after, each with its grade (-1 unjudged)."""
    return [("before", list(change.before.retrieved[:LISTED])), ("after", list(change.after.retrieved[:LISTED]))]
