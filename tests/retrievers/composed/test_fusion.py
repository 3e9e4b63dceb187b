"""What a hybrid does with its parts: when it searches and indexes them, and what it does with failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers.base import Corpus, Rankings, Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.sqlite_fts import SqliteFts
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore, Store
from tests.retrievers.given_parts import CORPUS, Given, by_id, fuse, given_rows
from tests.retrievers.test_contract import Counting


def test_depth_bounds_what_a_part_contributes() -> None:
    parts = {"one": given_rows({0: 3.0, 1: 2.0, 2: 1.0}), "other": given_rows({3: 3.0, 4: 2.0})}
    assert set(by_id(fuse(Hybrid(parts, depth=1)))) == {"d", "a"}
    assert set(by_id(fuse(Hybrid(parts), k=2))) == {"d", "a"}
    assert set(by_id(fuse(Hybrid(parts, depth=3), k=2))) == {"d", "a"}
    assert set(by_id(fuse(Hybrid(parts, depth=2), k=9))) == {"d", "b", "a", "c"}


def test_a_query_that_fails_in_a_part_finds_nothing_and_is_named() -> None:
    one = replace(given_rows({0: 1.0}, {0: 1.0}, {0: 1.0}), fails=(1, 2))
    other = replace(given_rows({1: 1.0}, {1: 1.0}, {1: 1.0}), fails=(2,))
    rankings = fuse(Hybrid({"one": one, "other": other}), 3)
    assert rankings.errors == {1: "one: no answer to 1", 2: "one: no answer to 2; other: no answer to 2"}
    assert [len(by_id(rankings, query)) for query in range(3)] == [2, 0, 0]


@dataclass(frozen=True)
class Recovering:
    """A retriever that fails the first time and answers the second."""

    answers: list[Given] = field(repr=False)

    def index(self, corpus: Corpus, store: Store) -> Recovering:
        return self

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        return self.answers.pop(0).search(queries, k)


def test_what_was_laid_out_for_a_failure_is_not_taken_for_the_answer() -> None:
    flaky = Recovering([replace(given_rows({}), fails=(0,)), given_rows({2: 1.0})])
    searcher = Hybrid({"one": flaky, "other": given_rows({1: 1.0})}).index(CORPUS, NoStore())
    store = MemoryStore()
    assert by_id(searcher.search(["0"], 3, store)) == {}
    assert by_id(searcher.search(["0"], 3, store)) == {"f": 1.0, "b": 1.0}


def test_a_query_takes_as_long_as_its_parts_and_their_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrievers.composed.fusion.time", SimpleNamespace(perf_counter=count(step=0.5).__next__))
    part = given_rows({0: 1.0}, {1: 1.0})
    seconds = fuse(Hybrid({"one": part, "other": part}), 2).seconds
    assert seconds is not None
    assert seconds.dtype == np.float32
    assert seconds.tolist() == [1.25, 1.25]
    assert fuse(Hybrid({"one": part, "other": replace(part, timed=False)}), 2).seconds is None


def test_a_sweep_over_weights_searches_each_part_once(harbour: Corpus) -> None:
    store = Counting()
    queries = ["ships", "lighthouse"]
    for alpha in (0.2, 0.5, 0.8):
        for normalization in ("minmax", "rank"):
            hybrid = Hybrid({"bm25": BM25(), "fts": SqliteFts()}, alpha=alpha, normalization=normalization)
            search_cached(hybrid, harbour, queries, 5, store)
    assert store.built["rankings"] == 6 + 2
    assert store.built["candidates"] == 1
    assert store.built["postings"] == store.built["fts5 database"] == 1


def test_stored_rankings_of_the_parts_are_enough(harbour: Corpus) -> None:
    """Nothing is indexed before its rankings are missing, and nothing again when they are not to be kept."""
    store = Counting()
    parts: dict[str, Retriever] = {"bm25": BM25(), "fts": SqliteFts()}
    for part in parts.values():
        search_cached(part, harbour, ["ships"], 5, store)
    built = dict(store.built)
    searcher = Hybrid(parts).index(harbour, store)
    first = searcher.search(["ships"], 5, store)
    assert store.built == {**built, "candidates": 1}
    second = searcher.search(["ships"], 5)
    assert store.built == {**built, "candidates": 1}
    assert first.documents.tobytes() == second.documents.tobytes()


@dataclass(frozen=True)
class Costly:
    """A retriever that says when it is indexed."""

    log: list[str] = field(repr=False)

    def index(self, corpus: Corpus, store: Store) -> Given:
        self.log.append("indexed")
        return given_rows({0: 1.0})


def test_parts_are_indexed_once_at_the_first_search_even_without_a_store() -> None:
    log: list[str] = []
    searcher = Hybrid({"one": Costly(log), "other": given_rows({1: 1.0})}).index(CORPUS, NoStore())
    assert log == []
    for _ in range(3):
        searcher.search(["0"], 2)
    assert log == ["indexed"]


def test_a_hybrid_can_be_a_part() -> None:
    inner = Hybrid({"one": given_rows({0: 2.0, 1: 1.0}), "other": given_rows({1: 5.0})})
    outer = Hybrid({"inner": inner, "third": given_rows({2: 1.0})}, method="rrf")
    assert by_id(fuse(outer)) == pytest.approx({"f": 1 / 61, "d": 1 / 61, "b": 1 / 62})


ONE = given_rows({0: 1.0})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parts": {"a": ONE}}, r"parts: a hybrid needs at least two parts, but has 1 \(a\)"),
        ({"parts": {}}, r"parts: a hybrid needs at least two parts, but has 0 \(none\)"),
        ({"parts": {"a": ONE, "b": "bm25"}}, "parts.b: 'bm25' is not a retriever"),
        ({"parts": {"a": ONE, "b": ["bm25"]}}, "parts.b: .'bm25'. is not a retriever"),
        ({"parts": {"a": ONE, "b": ("bm25",)}}, "parts.b: .'bm25',. is not a retriever"),
        ({"parts": {"a": ONE, "b": None}}, "parts.b"),
        ({"weights": [1]}, r"weights: expected 2 numbers, one for each part \(a, b\)"),
        ({"weights": {"a": 1}}, "weights: set for a, but the parts are a, b"),
        ({"weights": {"a": 1, "c": 1}}, "weights: set for a, c, but the parts are a, b"),
        ({"weights": [1, -1]}, r"weights=\[1.0, -1.0\]: should be from 0 to 1e\+06, and at least one above 0"),
        ({"weights": [0, 0]}, "at least one above 0"),
        ({"weights": [1, float("inf")]}, "from 0 to"),
        ({"weights": [1, float("nan")]}, "from 0 to"),
        ({"weights": [1, 1e38]}, "from 0 to"),
        ({"weights": [1, 1], "alpha": 0.5}, "alpha=0.5 and weights=.* are mutually exclusive"),
        (
            {"parts": {"a": ONE, "b": ONE, "c": ONE}, "alpha": 0.5},
            r"alpha=0.5: needs exactly two parts, but there are 3 \(a, b, c\)",
        ),
        ({"alpha": 1.5}, "alpha"),
        ({"weights_by_type": {"x": 1.5}}, r"weights_by_type.x=1.5: should be from 0 to 1"),
        ({"weights_by_type": {"x": [1]}}, r"weights_by_type.x: expected 2 numbers, one for each part \(a, b\)"),
        ({"weights_by_type": {"x": {"a": 1}}}, "weights_by_type.x: set for a, but the parts are a, b"),
        ({"weights_by_type": {"x": [0, 0]}}, r"weights_by_type.x=\[0.0, 0.0\]: should be from 0 to"),
        (
            {"parts": {"a": ONE, "b": ONE, "c": ONE}, "weights_by_type": {"x": 0.5}},
            r"weights_by_type.x=0.5: needs exactly two parts, but there are 3",
        ),
        ({"rrf_k": -1}, "rrf_k"),
        ({"depth": 0}, "depth"),
        ({"normalization": "softmax"}, "normalization"),
        ({"method": "condorcet"}, "method"),
        ({"wieghts": [1, 2]}, "wieghts"),
    ],
)
def test_wrong_settings_are_one_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as error:
        Hybrid(**{"parts": {"a": ONE, "b": ONE}, **wrong})
    assert error.value.error_count() == 1
