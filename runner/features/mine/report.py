"""What mining came to, as tables of values."""

from __future__ import annotations

from runner.features.mine.summary import MiningSummary
from runner.pages.numbers import number
from runner.pages.tables import Column, Table


def suites_table(summary: MiningSummary) -> Table:
    """Return what became of the cases of each suite, and of all of them where there are several."""
    counts = dict(summary.suites)
    if len(counts) > 1:
        counts["all"] = summary.total
    columns = [Column("suite"), *(_count(name, spare=0) for name in ("cases", "kept"))]
    columns += [_count(verdict, spare=0) for verdict in summary.total.verdicts]
    columns += [_count("gold", spare=1), _count("hard negatives", spare=1), _count("random", spare=2)]
    rows = [
        [
            suite,
            own.cases,
            own.queries_kept,
            *own.verdicts.values(),
            own.gold_documents,
            *own.negatives.values(),
        ]
        for suite, own in counts.items()
    ]
    return Table(columns, rows)


def names_table(summary: MiningSummary) -> Table:
    """Return how the names of answers were resolved, by suite."""
    ways = list(summary.total.golds)
    rows = [[suite, sum(own.golds.values()), *own.golds.values()] for suite, own in summary.suites.items()]
    return Table([Column("suite"), _count("names", 0), *(_count(way, 0) for way in ways)], rows)


def reasons_table(summary: MiningSummary) -> Table:
    """Return what is held against queries, the most frequent first."""
    held = sorted(summary.total.held_by.items(), key=lambda item: (-item[1], item[0]))
    return Table([Column("problem"), _count("queries", 0)], [list(item) for item in held])


def impact_table(summary: MiningSummary) -> Table:
    """Return what documents contribute to answers by their role; empty where it was not measured."""
    columns = [Column("documents"), _count("measured", 0)]
    columns += [Column("mean impact", "{:+.3f}".format, numeric=True), _count("helpful", 0), _count("harmful", 0)]
    roles = summary.impact.roles if summary.impact else {}
    rows = [[role, own.documents, own.mean_impact, own.helpful, own.harmful] for role, own in roles.items()]
    return Table(columns, rows)


def impact_note(summary: MiningSummary) -> str:
    """Return for how many queries the impact of documents was measured, "" for none."""
    impact = summary.impact
    if impact is None:
        return ""
    return (
        f"impact of documents: {impact.queries:,} queries; {impact.answered_without_documents:,} are "
        f"answered without any document, {impact.converged:,} converged; {impact.subsets:,} answers"
    )


def _count(title: str, spare: int) -> Column:
    return Column(title, number, numeric=True, spare=spare)
