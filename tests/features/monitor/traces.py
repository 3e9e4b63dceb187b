"""Invented traces of a shop's search, in OTLP JSON: windows of searches whose quality is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
QUERIES = 40


def write_traces(
    file: Path,
    weeks: Sequence[float],
    searches: int = 120,
    first: int = 0,
    gone: Sequence[int] = (),
    empty: float = 0.0,
    broken: int = 0,
    word: str = "question",
) -> None:
    """Write a search in a line: in each week, a share of the searches has its gold first, others have it at rank 3.

    Query q is "question q" and has the gold `d{q}`. In the last week, queries in `gone` lose their gold, a share of all
    searches is `empty`, every `broken`th one fails, and the first word of others is `word`. Odd queries are of tenant
    b, there are seven users, and each week is a release. `first` is the number of the first week.
    """
    with file.open("w", encoding="utf-8") as lines:
        for week, share in enumerate(weeks, first):
            rng, is_last = np.random.default_rng(week), week == first + len(weeks) - 1
            for number in range(searches):
                query = int(rng.integers(QUERIES))
                others = [f"x{query}", f"y{query}"]
                hits = [f"d{query}", *others] if rng.random() < share else [*others, f"d{query}"]
                if is_last and query in gone:
                    hits = others
                if (rng.random() < empty) & is_last:
                    hits = []
                text = f"{word if is_last else 'question'} {query}"
                moment = MONDAY + timedelta(weeks=week, minutes=number * 10_000 // searches)
                has_failed = is_last and broken > 0 and number % broken == 0
                search = _search(text, query, hits, moment, f"{week:05}{number:05}", has_failed)
                lines.write(json.dumps(search) + "\n")


def _search(
    text: str, query: int, hits: Sequence[str], moment: datetime, name: str, has_failed: bool
) -> dict[str, object]:
    start = int(moment.timestamp()) * 10**9
    documents = [{"id": hit, "score": 10.0 - rank} for rank, hit in enumerate(hits)]
    attributes = {
        "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": text,
        "gen_ai.retrieval.documents": json.dumps(documents), "tenant": "ab"[query % 2],
        "service.version": f"1.{int(name[:5])}", "user.id": f"user {query % 7}",
    }  # fmt: skip
    if has_failed:
        del attributes["gen_ai.retrieval.documents"]
    span = {
        "status": {"code": 2, "message": "timeout"} if has_failed else {},
        "traceId": name.rjust(32, "0"), "spanId": name.rjust(16, "0")[-16:], "name": "retrieval shop", "kind": 3,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + (20 + len(hits)) * 10**6),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def write_judgments(folder: Path, queries: int = QUERIES) -> None:
    """Write a judged dataset in BEIR's layout."""
    (folder / "qrels").mkdir(parents=True)
    documents = [f"{letter}{query}" for query in range(queries) for letter in "dxy"]
    rows = [{"_id": name, "text": f"text of {name}"} for name in documents]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"_id": f"q{query}", "text": f"Question {query}"} for query in range(queries)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    qrels = [
        f"q{query}\t{letter}{query}\t{grade}\n" for query in range(queries) for letter, grade in (("d", 1), ("x", 0))
    ]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels))
