"""An explained difference as sentences and tables, for the console, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runner.comparison.gate import Check
from runner.comparison.notes import list_some
from runner.comparison.report import gate_rules
from runner.comparison.report.significance import in_words
from runner.comparison.report.tables import bounds
from runner.features.explain.causes import ADDED, CHANGED, REMOVED, REWORDED
from runner.features.explain.reversals import MovedQuery
from runner.features.explain.terms import CAUSES, TERMS, EffectTerm, Explanation
from runner.pages import numbers
from runner.pages.numbers import format_count, format_signed, gist, number, p_value, score, score4
from runner.pages.tables import Column, Table

KINDS = (ADDED, REMOVED, CHANGED)
"""How documents can differ, in the order of reports."""

CHANGED_GOLD = "Gold that was removed, added or changed; its judgments count as part of the documents."
"""What the table of changed gold shows."""

_ARROW = " \N{RIGHTWARDS ARROW} "
_UNKNOWN = (math.nan, math.nan)


def heading(explanation: Explanation) -> str:
    """Return what is explained."""
    baseline, candidate = explanation.labels
    return f"Why {explanation.primary} of {candidate} differs from {baseline}"


def verdict(explanation: Explanation) -> str:
    """Return the difference and its terms in a sentence."""
    measure = explanation.primary
    before, after = explanation.compute_means(measure)
    change = f"{measure} went from {score4(before)} to {score4(after)} ({format_signed(after - before)})"
    terms = [term for term in explanation.list_terms(measure) if term.changed]
    if not terms:
        return f"{change}: nothing changed."
    parts = [f"{format_signed(term.effect)} by {term.name} ({_describe_significance(term)})" for term in terms]
    return f"{change}: {', '.join(parts)}."


def _describe_significance(term: EffectTerm) -> str:
    return "significant" if term.difference.significant else "not significant"


def terms_table(explanation: Explanation, measure: str) -> Table:
    """Return the terms of a measure with their parts, the total last."""
    title = numbers.interval_title(explanation.statistics.confidence)
    columns = [
        Column("cause", least=24),
        Column("effect", format_signed, numeric=True),
        Column(title, numbers.difference_interval, numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=3),
        Column("corrected", p_value, numeric=True),
        Column("range", bounds, numeric=True, spare=4),
    ]
    rows = []
    for term in explanation.list_terms(measure):
        rows.append(_build_row(term))
        rows += [_build_row(part, "- ") for part in term.parts]
    total = explanation.build_total(measure)
    return Table(columns, [*rows, [*_build_row(total)[:4], None, _UNKNOWN]])


def _build_row(term: EffectTerm, indent: str = "") -> list[object]:
    name = f"{indent}{term.name}" if term.changed else f"{indent}{term.name} (unchanged)"
    own = term.difference
    ends = (own.low, own.high, own.differing, own.queries), own.p, own.corrected, (term.least, term.most)
    if not term.changed:
        ends = None, None, None, _UNKNOWN  # type: ignore[assignment]  # nothing was tested
    return [name, term.effect, *ends]


def measures_table(explanation: Explanation) -> Table:
    """Return the terms of all measures."""
    columns = [Column("measure"), Column("baseline", score4, numeric=True)]
    columns += [Column(TERMS[term], format_signed, numeric=True) for term in CAUSES]
    columns.append(Column("candidate", score4, numeric=True))
    rows = []
    for measure in explanation.measures:
        before, after = explanation.compute_means(measure)
        rows.append([measure, before, *(term.effect for term in explanation.list_terms(measure)), after])
    return Table(columns, rows)


def describe_changes(explanation: Explanation) -> list[str]:
    """Return a sentence on what changed in each factor."""
    causes, settings = explanation.causes, explanation.design.settings
    lines = []
    if settings:
        lines.append(f"Settings: {', '.join(map(str, settings))}.")
    if any(causes.documents.values()):
        parts = [
            f"{format_count(len(names), 'document', 'documents')} {kind} ({list_some(names, 3)})"
            for kind, names in causes.documents.items()
            if names
        ]
        lines.append(f"Documents: {', '.join(parts)}.")
    if causes.judgments:
        queries = len({change.query for change in causes.judgments})
        count = format_count(len(causes.judgments), "judgment", "judgments")
        lines.append(f"Judgments: {count} of {format_count(queries, 'query', 'queries')} changed.")
    if causes.queries:
        kinds = [(kind, [q.query for q in causes.queries if q.change == kind]) for kind in (ADDED, REMOVED, REWORDED)]
        parts = [
            f"{format_count(len(ids), 'query', 'queries')} {kind} ({list_some(ids, 3)})" for kind, ids in kinds if ids
        ]
        lines.append(f"Queries: {', '.join(parts)}.")
    return lines


def describe_moved(explanation: Explanation) -> str:
    """Return how many queries moved and how many of them each change restores if it is reverted; "" if none moved."""
    counts, changes = explanation.count_moved(), list(explanation.design.changes.values())
    if not counts.moved:
        return ""
    moved = f"{format_count(counts.moved, 'query', 'queries')} moved"
    if not changes or (len(changes) == 1 and not counts.never):
        return f"{moved}; only {changes[0] if changes else 'the code'} changed."
    alone = ", ".join(f"{change} {count:,}" for change, count in counts.alone.items())
    several = f" ({counts.several:,} by more than one of these)" if counts.several else ""
    single = f"{counts.single:,}: {alone}{several}" if alone else "none"
    sentences = [f"{moved}.", f"Reverting a single change restores {single}."]
    if counts.together:
        sentences.append(f"Reverting several together restores {counts.together:,} more.")
    if counts.never:
        sentences.append(f"Reverting all of them does not restore {counts.never:,}: the code differs.")
    return " ".join(sentences)


def build_moved_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the queries that moved, with the changes whose reversal restores each."""
    columns = [
        Column("query", least=8),
        Column("rank of first gold", lambda ranks: _ARROW.join(map(_format_rank, ranks)), numeric=True),
        Column(explanation.primary, lambda values: _ARROW.join(map(score, values)), numeric=True),
        Column("restored by reverting", least=24),
    ]
    rows = [[one.query, one.ranks, one.values, describe_reversals(one)] for one in explanation.moved]
    return Table(columns, rows[:limit])


def describe_reversals(query: MovedQuery) -> str:
    """Return which changes restore a query: each alone, or several together."""
    if not query.restored_by:
        return "nothing: the code differs"
    names = [" and ".join(changes) for changes in query.restored_by]
    return f"{' or '.join(names)} {'alone' if query.causes else 'together'}"


def _format_rank(rank: float) -> str:
    return "unknown" if math.isnan(rank) else "none" if math.isinf(rank) else f"{rank:.0f}"


def build_displaced_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the gold that new or changed documents rank above."""
    columns = [
        Column("query", least=8),
        Column("gold", least=8),
        Column("rank", _format_ranks, numeric=True),
        Column("without them", number, numeric=True, spare=2),
        Column("below", lambda names: list_some(names, 3), least=12),
        Column("unjudged", number, numeric=True, spare=1),
        Column(f"{explanation.primary} of the query", format_signed, numeric=True),
    ]
    rows = [
        [one.query, one.gold, (one.before, one.after), one.without, one.by, len(one.unjudged), one.difference]
        for one in explanation.causes.displaced
    ]
    return Table(columns, rows[:limit])


def describe_displaced(explanation: Explanation) -> str:
    """Return what the table of displaced gold shows, and how much of it is below unjudged documents."""
    displaced = explanation.causes.displaced
    text = "Gold that new or changed documents rank above, by the candidate's settings."
    if unjudged := sum(bool(one.unjudged) for one in displaced):
        text += f" {unjudged:,} of {len(displaced):,} are below documents that are not judged for the query."
    return text


def build_displacing_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the documents that displaced gold."""
    changed = set(explanation.causes.documents.get(CHANGED, ()))
    columns = [Column("document", least=8), Column("is"), Column("gold displaced", number, numeric=True)]
    rows = [[name, CHANGED if name in changed else "new", count] for name, count in explanation.causes.displacing]
    return Table(columns, rows[:limit])


def build_gold_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the gold that was removed, added or changed."""
    columns = [
        Column("query", least=8),
        Column("gold", least=8),
        Column("was"),
        Column("rank", _format_ranks, numeric=True),
        Column(f"{explanation.primary} of the query", format_signed, numeric=True),
    ]
    rows = [
        [one.query, one.gold, one.change, (one.before, one.after), one.difference] for one in explanation.causes.gold
    ]
    return Table(columns, rows[:limit])


def build_judgments_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the judgments that changed."""
    columns = [
        Column("query", least=8),
        Column("document", least=8),
        Column("grade", lambda grades: _format_pair(grades, "unjudged"), numeric=True),
        Column(f"{explanation.primary} of the query", format_signed, numeric=True),
    ]
    rows = [[one.query, one.document, (one.before, one.after), one.difference] for one in explanation.causes.judgments]
    return Table(columns, rows[:limit])


def build_queries_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the queries that were added, removed or reworded."""
    columns = [
        Column("query", least=8),
        Column("was"),
        Column("text", gist, least=30),
        Column(explanation.primary, lambda values: _ARROW.join(map(score, values)), numeric=True),
    ]
    rows = [[one.query, one.change, one.text, (one.before, one.after)] for one in explanation.causes.queries]
    return Table(columns, rows[:limit])


def build_shares_table(explanation: Explanation, limit: int | None = None) -> Table:
    """Return the queries with the largest losses and gains in each term, half of the limit each."""
    columns = [Column("cause"), Column("query", least=8), Column("text", gist, least=30)]
    columns += [Column(f"adds to {explanation.primary}", lambda value: f"{value:+.5f}", numeric=True)]
    rows = []
    for term in CAUSES:
        shares = explanation.list_shares(term, explanation.primary)
        for position, share in shares if limit is None else _select_extremes(shares, limit):
            queries = explanation.queries
            rows.append([TERMS[term], queries.ids[position], queries.texts[position], share])
    return Table(columns, rows)


def _select_extremes(shares: Sequence[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    if len(shares) <= limit:
        return list(shares)
    order = np.argsort([-abs(share) for _, share in shares], kind="stable")[:limit]
    return [shares[i] for i in sorted(order.tolist())]


def about(explanation: Explanation) -> list[str]:
    """Return remarks on the method, the tests and the data."""
    design, statistics = explanation.design, explanation.statistics
    before, after, both = explanation.count_queries()
    lines = [f"Queries that count: {before:,} in the baseline, {after:,} in the candidate, {both:,} in both."]
    if len(design.factors) > 1 or len(design.settings) > 1:
        order = "all orders in which the changes could have been made"
        lines.append(f"An effect is the average over {order}; its range is over the states of the other factors.")
    if design.orders:
        lines.append(
            f"The effects of the {len(design.settings)} settings are averages over {len(design.orders)} sampled orders "
            f"(seed {statistics.seed}); their sum is exact."
        )
    if explanation.evaluations:
        lines.append(f"{format_count(explanation.evaluations, 'evaluation', 'evaluations')} with today's code.")
    tested = f"{in_words(statistics.test, statistics.correction)} for the effects on {explanation.primary}"
    exploratory = any(explanation.find_family(measure) == "exploratory" for measure in explanation.measures)
    others = ", and for those on all other measures, which are exploratory, together" if exploratory else ""
    lines.append(f"Intervals and p-values are over queries: {tested}{others}; seed {statistics.seed}.")
    if "queries" in design.parts:
        lines.append(
            "The queries differ, so the effect of the queries and the total compare two samples of queries, "
            "by Student's t-test on the influence of each query."
        )
    return [*explanation.notes, *lines]


def describe_check(check: Check) -> str:
    """Return in a line whether a rule is followed."""
    if check.rule != "drop" or check.after != check.after:
        return gate_rules.describe_check(check)
    what = f"{check.measure} of type {check.type}" if check.type else check.measure
    effect = f"{check.system}: effect on {what} {format_signed(check.after)}"
    return f"{effect}: {gate_rules.describe_proof(check)}"


def gate_table(checks: Sequence[Check]) -> Table:
    """Return the rules, those that do not pass first."""
    columns = [
        Column("verdict"),
        Column("of", least=12),
        Column("rule"),
        Column("measure"),
        Column("type", lambda kind: kind or "all"),
        Column(
            "value or effect", lambda value: number(value) if isinstance(value, int) else f"{value:.4f}", numeric=True
        ),
        Column("allowed", lambda value: f"{value:g}", numeric=True),
        Column("p", p_value, numeric=True, spare=3),
    ]
    rows = [
        [c.verdict, c.system, c.rule, c.measure, c.type, c.after, c.limit, c.p]
        for c in [*gate_rules.list_open_checks(checks), *(c for c in checks if c.verdict == "pass")]
    ]
    return Table(columns, rows)


def _format_ranks(ranks: tuple[int | None, int | None]) -> str:
    return _format_pair(ranks, "none")


def _format_pair(values: tuple[int | None, int | None], missing: str) -> str:
    return _ARROW.join(missing if value is None else f"{value}" for value in values)
