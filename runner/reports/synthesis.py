"""Synthesised queries as tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from runner.datasets.folder import DOCUMENTS
from runner.generation.synthesis.checks import Rejection
from runner.generation.synthesis.pipeline import Candidate
from runner.generation.synthesis.summary import TypeFigures
from runner.reports.rendering.numbers import number, percent
from runner.reports.rendering.tables import Column, Table

SAMPLES = 10
"""How many queries are shown at the end."""

MOST_ENDINGS = 8
"""How many endings of skipped files are named."""


def types_table(types: Mapping[str, TypeFigures]) -> Table:
    """Return what became of each type, and how hard its queries are, with all types together last."""
    columns = [
        Column("type"),
        Column("generated", number, numeric=True),
        Column("accepted", number, numeric=True),
        Column("share", percent, numeric=True),
        Column("words", number, numeric=True, spare=3),
        Column("words in golden", percent, numeric=True, spare=1),
        Column("BM25 rank 1", percent, numeric=True, spare=1),
        Column("BM25 top 10", percent, numeric=True, spare=2),
    ]
    rows: list[list[Any]] = [
        [name, *_counts([of]), of.length, of.overlap, of.bm25_first, of.bm25_first_ten] for name, of in types.items()
    ]
    rows.append(["all", *_counts(list(types.values())), None, None, None, None])
    return Table(columns, rows)


def reasons_table(types: Mapping[str, TypeFigures]) -> Table:
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


def samples_table(accepted: Sequence[Candidate], seed: int) -> Table:
    """Return some of the accepted queries, drawn by the seed of the synthesis, in their order."""
    places = sorted(random.Random(seed).sample(range(len(accepted)), min(SAMPLES, len(accepted))))  # noqa: S311 (no secret)
    rows: list[list[Any]] = [[accepted[at].request.query_type, accepted[at].draft.query] for at in places]
    return Table([Column("type"), Column("query", least=30)], rows)


def samples_note(by_rules: bool) -> str:
    """Return who wrote the queries and what to make of that."""
    if by_rules:
        return (
            "rules wrote these queries from headings, terms and sentences of the documents, without "
            "understanding them; read some before you rely on them, or let a language model write queries with "
            "generator=llm"
        )
    return "a language model wrote these queries; read some before you rely on them"


def describe_skipped(skipped: Mapping[str, int]) -> str:
    """Return how many text files were not read, by ending, the most frequent first."""
    ordered = sorted(skipped.items(), key=lambda pair: (-pair[1], pair[0]))
    counts = ", ".join(f"{count:,} {ending or 'without an ending'}" for ending, count in ordered[:MOST_ENDINGS])
    more = f" and {len(ordered) - MOST_ENDINGS} other endings" if len(ordered) > MOST_ENDINGS else ""
    return (
        f"text files skipped: {counts}{more}; documents end with {', '.join(DOCUMENTS)}; rename files that should "
        "be read"
    )


def chunks_line(read: int, rejected: Sequence[Rejection], documents: int) -> str:
    """Return how many chunks there were, and why some were left out."""
    reasons = Counter(rejection.reason for rejection in rejected)
    out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    return f"{read:,} chunks of {documents:,} documents; left out: {out or 'none'}"


def _counts(of: Sequence[TypeFigures]) -> tuple[int, int, float | None]:
    generated, accepted = sum(part.generated for part in of), sum(part.accepted for part in of)
    return generated, accepted, accepted / generated if generated else None
