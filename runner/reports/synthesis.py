"""What is said of queries that were made of chunks, as tables of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from runner.generation.synthesis.checks import Rejection
from runner.generation.synthesis.summary import OfType
from runner.reports.rendering.numbers import number, percent
from runner.reports.rendering.tables import Column, Table


def types_table(types: Mapping[str, OfType]) -> Table:
    """Return what became of each type, and how hard its queries are, with all types together last."""
    columns = [
        Column("type"),
        Column("generated", number, numeric=True),
        Column("accepted", number, numeric=True),
        Column("share", percent, numeric=True),
        Column("words", number, numeric=True, spare=3),
        Column("in the golden", percent, numeric=True, spare=1),
        Column("BM25 finds it first", percent, numeric=True, spare=1),
        Column("among 10", percent, numeric=True, spare=2),
    ]
    rows: list[list[Any]] = [
        [name, *_counts([of]), of.length, of.overlap, of.bm25_first, of.bm25_first_ten] for name, of in types.items()
    ]
    rows.append(["all", *_counts(list(types.values())), None, None, None, None])
    return Table(columns, rows)


def reasons_table(types: Mapping[str, OfType]) -> Table:
    """Return why queries were rejected, the most frequent reason first, with the types that it met."""
    reasons = Counter[str]()
    for of in types.values():
        reasons.update(of.rejected)
    columns = [Column("reason"), Column("queries", number, numeric=True, least=7), Column("of types", least=20)]
    rows: list[list[Any]] = []
    for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
        met = [f"{name} {of.rejected[reason]:,}" for name, of in types.items() if reason in of.rejected]
        rows.append([reason, count, ", ".join(met)])
    return Table(columns, rows)


def chunks_line(read: int, rejected: Sequence[Rejection], documents: int) -> str:
    """Return how many chunks there were, and why some were left out."""
    reasons = Counter(rejection.reason for rejection in rejected)
    out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    return f"{read:,} chunks of {documents:,} documents; left out: {out or 'none'}"


def _counts(of: Sequence[OfType]) -> tuple[int, int, float | None]:
    generated, accepted = sum(each.generated for each in of), sum(each.accepted for each in of)
    return generated, accepted, accepted / generated if generated else None
