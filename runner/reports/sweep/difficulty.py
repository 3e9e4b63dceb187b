"""How hard each query is over the combinations of a sweep, as tables of values and plain sentences.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runner.analysis.difficulty import Difficulty, difficulty
from runner.reports.rendering.numbers import gist, score
from runner.reports.rendering.tables import Column, Table
from runner.result import QueryTable, Result

NAMED = 10
"""How many ids a sentence names."""


def difficulty_of(results: Sequence[Result], primary: str) -> Difficulty:
    """Return how hard the queries are by a measure of several results on the same dataset, of which there is one."""
    return difficulty(np.stack([result.of(primary) for result in results]))


def hardest_of_all(results: Sequence[Result], primary: str, limit: int) -> Table:
    """Return the queries with the lowest mean over all results, with its spread."""
    if not results:
        return Table([], [])
    hard = difficulty_of(results, primary)
    return _queries_table(results[0].queries, hard, hard.hardest[:limit].tolist())


def divisive(results: Sequence[Result], primary: str, limit: int) -> Table:
    """Return the queries on which results differ most; empty where none do."""
    if not results:
        return Table([], [])
    hard = difficulty_of(results, primary)
    return _queries_table(results[0].queries, hard, hard.divisive[:limit].tolist())


def hardest_note(results: Sequence[Result], primary: str) -> str:
    """Return what the hardest queries are the hardest by, and which ones nothing answers."""
    said = f"By the mean {primary} of all combinations; the spread is their standard deviation."
    unanswered = difficulty_of(results, primary).unanswered.tolist() if results else []
    if not unanswered:
        return said
    ids = [results[0].queries.ids[i] for i in unanswered]
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    queries = f"{len(ids):,} queries" if len(ids) > 1 else "one query"
    return f"{said} No combination answers {queries}: {', '.join(ids[:NAMED])}{more}."


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
