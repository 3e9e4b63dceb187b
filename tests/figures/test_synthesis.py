"""The figures of a synthesis in the database, against counts of its files and an evaluation of what it wrote."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson
import pytest

from tests.figures.logged import Figures, prepare_store, read_figures, run_logged

COUNT = 100
TYPES = ("fact_seeking", "web_search_like", "misspellings")
NAMES = ("requested", "generated", "accepted", "lexical_overlap", "bm25_hit_at_1", "bm25_hit_at_10")
EXPECTED = dict.fromkeys(("requested", *(f"{name}/{kind}" for name in NAMES for kind in TYPES)))
"""The values follow from the files of a synthesis."""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> tuple[dict[str, Figures], Rows, Rows]:
    """Return what is logged of a synthesis and of its evaluation, and the rows of its queries and rejected queries."""
    folder = tmp_path_factory.mktemp("synthesised")
    prepare_store(migrated, folder)
    types = f"generator.types=[{','.join(TYPES)}]"
    run_logged(
        folder, "synthesize", f"count={COUNT}", "encoder.dimensions=32", types, "validation=none", "output=out.jsonl"
    )
    run_logged(folder, "dataset=synthetic", "dataset.path=out.jsonl", "dataset.level=chunk", "retriever=bm25")
    queries, rejected = (
        [orjson.loads(line) for line in (folder / name).read_bytes().splitlines()]
        for name in ("out.jsonl", "out.jsonl.rejected.jsonl")
    )
    return read_figures(folder), queries, rejected


def list_words(text: str) -> set[str]:
    """Return the words of a text in lower case; an apostrophe belongs to a word, a hyphen does not."""
    return set(re.findall(r"\w+(?:['\u2019]\w+)*", text.lower()))


def count_types(rows: Rows) -> Counter[str]:
    """Return how many rows each type of query has."""
    return Counter(row["validation"]["query_type"] for row in rows)


def list_values(figures: Figures, name: str) -> list[float]:
    """Return a figure of each type; one of them at least is neither 0 nor 1."""
    values = [figures[f"{name}/{kind}"] for kind in TYPES]
    assert not {0, 1} >= {*values}
    return values


def test_the_queries_of_a_synthesis_are_counted_as_in_its_files(
    synthesis: tuple[dict[str, Figures], Rows, Rows],
) -> None:
    figures, queries, rejected = synthesis[0]["out"], *synthesis[1:]
    counts = {
        "requested": count_types([*queries, *rejected]),
        "generated": count_types([row for row in (*queries, *rejected) if row["query"]]),
        "accepted": count_types(queries),
    }
    for name, of_types in counts.items():
        assert list_values(figures, name) == [of_types[kind] for kind in TYPES]
        assert figures[name] == of_types.total()
    assert counts["accepted"].total() == COUNT < counts["generated"].total() < counts["requested"].total()


def test_the_overlap_of_a_synthesis_is_the_share_of_words_from_the_gold(
    synthesis: tuple[dict[str, Figures], Rows, Rows],
) -> None:
    def compute_share(row: dict[str, Any]) -> float:
        own, gold = list_words(row["query"]), set().union(*(list_words(at["chunk"]) for at in row["context_chunks"]))
        return len(own & gold) / len(own)

    shares = [
        fmean(compute_share(row) for row in synthesis[1] if row["validation"]["query_type"] == kind) for kind in TYPES
    ]
    assert list_values(synthesis[0]["out"], "lexical_overlap") == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize("k", [1, 10])
def test_bm25_finds_as_much_as_in_an_evaluation_of_the_queries(
    synthesis: tuple[dict[str, Figures], Rows, Rows], k: int
) -> None:
    evaluated = [synthesis[0]["bm25"][f"by_type/{kind}/success_at_{k}"] for kind in TYPES]
    assert list_values(synthesis[0]["out"], f"bm25_hit_at_{k}") == pytest.approx(evaluated, abs=1e-4)
