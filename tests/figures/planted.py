"""A small collection with planted gold, and a search engine whose hits are written down; the rest follows by hand.

The engine makes every mistake that is counted: unknown, repeated and NaN hits, rising scores, failures, wrong filters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Hits = list[tuple[str, float]]

SAME = "how old is the lighthouse on the northern pier"


@dataclass(frozen=True)
class PlantedQuery:
    """A query: its type, its judged documents with grades, and its hits in order; None if the search fails."""

    kind: str
    grades: Mapping[str, int]
    hits: Hits | None
    year: int | None = None


def score(best: float, *documents: str) -> Hits:
    """Return documents with scores that fall by 0.01 from the best."""
    return [(document, round(best - 0.01 * place, 4)) for place, document in enumerate(documents)]


QUERIES: Mapping[str, PlantedQuery] = {
    "a1": PlantedQuery("a", {"d1": 2, "d2": 1, "d3": 0}, score(0.9, "d1", "d3", "d2", "x1", "d20"), 2010),
    "a2": PlantedQuery("a", {"d4": 1}, score(0.4, "d5", "d4", "d5", "d21"), 2010),
    "a3": PlantedQuery(
        "a", {"d6": 1, "d7": 3, "d8": 1, "d9": 0}, [("d9", 0.5), ("x2", 0.6), ("d7", 0.7), ("d6", math.nan)]
    ),
    "b1": PlantedQuery("b", {"d11": 1, "d12": 0}, score(0.6, "d12", "d13", "d14", "d15", "d15", "d16", "d11"), 2010),
    "b2": PlantedQuery("b", {"d17": 1, "d18": 2}, []),
    "b3": PlantedQuery("b", {"d22": 1, "d23": 2}, [("d22", 0.2), ("d23", 0.3), ("d24", math.nan)]),
    "n1": PlantedQuery("a", {"d1": 0}, score(0.7, "d1", "d2")),
    "n2": PlantedQuery("a", {"d1": 0}, []),
    "n3": PlantedQuery("b", {"d1": 0}, score(0.3, "d3")),
    "n4": PlantedQuery("b", {"d1": 0}, []),
    "n5": PlantedQuery("a", {"d1": 0}, score(0.2, "d5")),
    "f1": PlantedQuery("a", {"d19": 1}, None),
    "f2": PlantedQuery("b", {"d19": 1}, None),
    "d28": PlantedQuery("a", {"d25": 1}, score(0.8, "d28", "d26", "d25")),
    "d29": PlantedQuery("b", {"d25": 1}, score(0.8, "d29", "d25", "d26")),
}
"""Queries d28 and d29 are documents. Documents with an even number are of 2010, those with an odd one of 2000."""

DATASET = (
    "dataset=jsonl", "dataset.documents=documents.jsonl", "dataset.queries=queries.jsonl",
    "dataset.qrels=qrels.jsonl", "dataset.query_type=kind", "dataset.query_answer=answer",
)  # fmt: skip


def word_query(name: str) -> str:
    """Return the text of a query."""
    return f"what {name} is" if name in ("d28", "d29") else f"about {name}"


def word_answer(name: str) -> str:
    """Return the expected answer of a query, which only repeats the question in two of them."""
    return word_query(name) if name in ("a1", "b1") else f"answer {name}"


def write_lines(file: Path, rows: Iterable[object]) -> None:
    """Write a JSONL file."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_collection(folder: Path) -> None:
    """Write the documents, the queries and the judgments into a folder."""
    documents = [f"d{number}" for number in range(1, 30)]
    texts = {name: word_query(name) if name in QUERIES else f"text of {name}" for name in documents}
    texts["d1"] = "long " * 30  # cut for a judge that reads 100 characters
    years = {name: 2000 + 10 * (int(name[1:]) % 2 == 0) for name in documents}
    write_lines(
        folder / "documents.jsonl", ({"id": name, "text": texts[name], "year": years[name]} for name in documents)
    )
    write_lines(
        folder / "queries.jsonl",
        (
            {"id": name, "text": word_query(name), "kind": query.kind, "answer": word_answer(name)}
            | ({"filter": {"year": query.year}} if query.year else {})
            for name, query in QUERIES.items()
        ),
    )
    write_lines(
        folder / "qrels.jsonl",
        (
            {"query_id": name, "document_id": document, "grade": grade}
            for name, query in QUERIES.items()
            for document, grade in query.grades.items()
        ),
    )


CLOCK = [0.0]
"""The time of a clock that only the search engine moves: 3 s to build it, then 1, 2, 3, ... s for each query."""


def build() -> Callable[[str, int, object], Hits]:
    """Return the search engine."""
    CLOCK[0] += 3
    names = {word_query(name): name for name in QUERIES}

    def search(query: str, k: int, filter: object = None) -> Hits:
        name = names[query]
        CLOCK[0] += list(QUERIES).index(name) + 1
        hits = QUERIES[name].hits
        if hits is None:
            raise ValueError("out of order")
        return hits

    return search


def list_final(name: str) -> list[str]:
    """Return the hits of a query that count, in order: without NaN, repetitions and the query itself."""
    hits = QUERIES[name].hits or []
    return list(dict.fromkeys(document for document, s in hits if not math.isnan(s) and document != name))
