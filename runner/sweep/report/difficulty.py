"""The difficulty of queries over the combinations of a sweep, as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.queries import measure_difficulty
from runner.evaluation.result import QueryTable, Result
from runner.pages.numbers import gist, score
from runner.pages.tables import Column, Table
from runner.statistics.difficulty import Difficulty

NAMED = 10
"""Most ids in a sentence."""


def hardest_of_all(results: Sequence[Result], primary: str, limit: int) -> Table:
    """Return the queries with the lowest mean over all results, with the standard deviation."""
    if not results:
        return Table([], [])
    hard = measure_difficulty(results, primary)
    return _queries_table(results[0].queries, hard, hard.hardest[:limit].tolist())


def divisive(results: Sequence[Result], primary: str, limit: int) -> Table:
    """Return the queries on which results differ most."""
    if not results:
        return Table([], [])
    hard = measure_difficulty(results, primary)
    return _queries_table(results[0].queries, hard, hard.divisive[:limit].tolist())


def hardest_note(results: Sequence[Result], primary: str) -> str:
    """Return how the hardest queries are selected, and in which queries no combination scores above 0."""
    note = f"Ordered by the mean {primary} of all combinations; the spread is their standard deviation."
    unanswered = measure_difficulty(results, primary).unanswered.tolist() if results else []
    if not unanswered:
        return note
    ids = [results[0].queries.ids[i] for i in unanswered]
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    queries = f"{len(ids):,} queries" if len(ids) > 1 else "one query"
    return f"{note} No combination has a {primary} above 0 in {queries}: {', '.join(ids[:NAMED])}{more}."


def _queries_table(q: QueryTable, hard: Difficulty, positions: Sequence[int]) -> Table:
    columns = [
        Column("query", least=12),
        Column("text", gist, least=36),
        Column("mean", score, numeric=True),
        Column("spread", score, numeric=True),
        Column("worst", score, numeric=True),
        Column("best", score, numeric=True),
        Column("answered by", numeric=True),
        Column("type", spare=1),
    ]
    rows = [
        [
            q.ids[i],
            q.texts[i],
            *(float(values[i]) for values in (hard.means, hard.spreads, hard.lowest, hard.highest)),
            f"{hard.answering[i]:,} of {hard.systems[i]:,}",
            q.types[i],
        ]
        for i in positions
    ]
    table = Table(columns, rows)
    return table if any(q.types) else table.without(columns[-1])
