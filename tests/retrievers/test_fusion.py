"""Fusion, against the same arithmetic on dictionaries."""

from __future__ import annotations

import json
import math
import pickle
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, Retriever, RetrieverError, build_rankings
from retrievers.bm25 import BM25
from retrievers.fusion import Hybrid
from retrievers.fusion_methods import FUSIONS, Method, Normalization
from retrievers.search import build_rankings_key, search_cached
from retrievers.sqlite_fts import SqliteFts
from retrievers.store import MemoryStore, NoStore, Store
from tests.retrievers.test_contract import Counting
from tests.strategies import at_most

Row = dict[int, float]
"""What a part found for a query: document -> score."""

IDS = "dbfaceg"
CORPUS = Corpus(list(IDS), [f"text {i}" for i in IDS])
NORMALIZATIONS: tuple[Normalization, ...] = get_args(Normalization)
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Given:
    """A retriever whose answers are given: one row a query, which is its position."""

    rows: tuple[tuple[tuple[int, float], ...], ...]
    fails: tuple[int, ...] = ()
    timed: bool = True

    def index(self, corpus: Corpus, store: Store) -> Given:
        return self

    @property
    def tie_order(self) -> Any:
        return CORPUS.tie_order

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        rankings = build_rankings([self.rows[int(query)] for query in queries], self.tie_order, k)
        errors = {i: f"no answer to {query}" for i, query in enumerate(queries) if int(query) in self.fails}
        seconds = np.full(len(queries), 0.5, dtype=np.float32) if self.timed else None
        return replace(rankings, seconds=seconds, errors=errors)


@dataclass(frozen=True)
class Untouchable:
    """A retriever that must not be used."""

    def index(self, corpus: Corpus, store: Store) -> Any:
        raise AssertionError("this part is not needed")


def given_rows(*rows: Row) -> Given:
    return Given(tuple(tuple(row.items()) for row in rows))


def fuse(hybrid: Hybrid, n: int = 1, k: int = 10) -> Rankings:
    return hybrid.index(CORPUS, MemoryStore()).search([str(i) for i in range(n)], k)


def by_id(rankings: Rankings, query: int = 0) -> dict[str, float]:
    documents, scores = rankings.documents[query], rankings.scores[query]
    return {IDS[d]: float(s) for d, s in zip(documents, scores, strict=True) if d != NOTHING}


def best_first(row: Row) -> list[int]:
    return sorted(row, key=lambda document: (row[document], IDS[document]), reverse=True)


def normalized(row: Row, normalization: str) -> tuple[Row, float]:
    """Return the values of what was found, and of what was not."""
    if not row:
        return {}, 0.0
    low, high = min(row.values()), max(row.values())
    if normalization == "minmax":
        return {d: (s - low) / (high - low) if high > low else 1.0 for d, s in row.items()}, 0.0
    if normalization == "zscore":
        mean, spread = statistics.fmean(row.values()), statistics.pstdev(row.values())
        values = {d: (s - mean) / spread if spread else 0.0 for d, s in row.items()}
        return values, min(values.values())
    if normalization == "max":
        largest = max(abs(low), abs(high))
        return {d: s / largest if largest else 0.0 for d, s in row.items()}, 0.0
    if normalization == "rank":
        return {d: 1 - place / len(row) for place, d in enumerate(best_first(row))}, 0.0
    return row, 0.0


def fuse_rows(method: str, rows: Sequence[Row], weights: Sequence[float], normalization: str, rrf_k: float) -> Row:
    """Return the score of each document by the formula in the paper of a method."""
    parts = [(row, weight) for row, weight in zip(rows, weights, strict=True) if weight]
    candidates = {d for row, _ in parts for d in row}
    ranks = [{d: place for place, d in enumerate(best_first(row), start=1)} for row, _ in parts]
    total: Row = {}
    for d in candidates:
        hits = [(rank[d], weight) for rank, (row, weight) in zip(ranks, parts, strict=True) if d in row]
        n = len(hits)
        if method in ("combmax", "combmin"):
            values = [weight * normalized(row, normalization)[0][d] for row, weight in parts if d in row]
            total[d] = max(values) if method == "combmax" else min(values)
        elif method in ("weighted", "combmnz", "combanz"):
            values = [(weight, *normalized(row, normalization)) for row, weight in parts]
            sum_of_values = sum(weight * present.get(d, missing) for weight, present, missing in values)
            total[d] = sum_of_values * {"weighted": 1, "combmnz": n, "combanz": 1 / n}[method]
        elif method == "dbsf":
            total[d] = sum(weight * spread(row)[d] for row, weight in parts if d in row)
        elif method == "borda":
            points = [
                weight * (len(candidates) - rank[d] + 1 if d in row else (len(candidates) - len(row) + 1) / 2)
                for rank, (row, weight) in zip(ranks, parts, strict=True)
            ]
            total[d] = sum(points)
        elif method == "rrf":
            total[d] = sum(weight * (1 / (rrf_k + rank)) for rank, weight in hits)
        else:
            total[d] = sum(weight * (1 / rank**2) for rank, weight in hits) * (n if method == "isr" else math.log(n))
    return total


def spread(row: Row) -> Row:
    """Return the place of each score between three standard deviations of the sample below and above the mean."""
    deviation = statistics.stdev(row.values()) if len(row) > 1 else 0.0
    if not deviation:
        return dict.fromkeys(row, 0.5)
    low = statistics.fmean(row.values()) - 3 * deviation
    return {d: (score - low) / (6 * deviation) for d, score in row.items()}


# Eighths and few of them, so that ties, negative scores and equal scores are common and float32 holds them.
SCORES = st.integers(-24, 24).map(lambda n: n / 8)
ROWS = st.dictionaries(st.integers(0, len(IDS) - 1), SCORES, max_size=len(IDS))
WEIGHTS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=2, max_size=4).filter(any)


EACH_METHOD = settings(max_examples=at_most(25))
"""How many examples a test of each method draws for one of them."""

SCORED = ("weighted", "combmnz", "combanz", "combmax", "combmin")
CASES = [*product(SCORED, NORMALIZATIONS), *((method, "minmax") for method in METHODS if method not in SCORED)]


@EACH_METHOD
@given(data=st.data(), weights=WEIGHTS, n=st.integers(0, 4), k=st.integers(1, 9))
@pytest.mark.parametrize(("method", "normalization"), CASES)
def test_every_method_is_what_dictionaries_say(
    method: Method, normalization: Normalization, data: st.DataObject, weights: list[float], n: int, k: int
) -> None:
    rows = [[data.draw(ROWS) for _ in range(n)] for _ in weights]
    parts = {f"part {i}": given_rows(*part) for i, part in enumerate(rows)}
    hybrid = Hybrid(parts, method=method, normalization=normalization, weights=weights, rrf_k=10, depth=len(IDS))
    rankings = fuse(hybrid, n, k)
    assert rankings.documents.shape == rankings.scores.shape == (n, k)
    assert rankings.documents.dtype == np.int32
    assert rankings.scores.dtype == np.float32
    for query in range(n):
        total = fuse_rows(method, [part[query] for part in rows], weights, normalization, 10)
        expected = sorted(((float(np.float32(s)), IDS[d]) for d, s in total.items()), reverse=True)[:k]
        found = [(score, name) for name, score in by_id(rankings, query).items()]
        if normalization == "zscore" or method in ("dbsf", "log_isr"):  # means and logarithms differ in the last bit
            assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-5)
            assert [score for score, _ in found] == pytest.approx([total[IDS.index(i)] for _, i in found], abs=1e-5)
        else:
            assert found == expected


@EACH_METHOD
@given(rows=st.lists(ROWS, min_size=2, max_size=4), data=st.data())
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_parts_does_not_matter(method: Method, rows: list[Row], data: st.DataObject) -> None:
    parts = {f"part {i}": given_rows(row) for i, row in enumerate(rows)}
    names = data.draw(st.permutations(list(parts)))
    weights = {name: data.draw(st.sampled_from([0.5, 1.0, 2.0])) for name in parts}
    one = by_id(fuse(Hybrid(parts, method=method, weights=weights)))
    other = by_id(fuse(Hybrid({name: parts[name] for name in names}, method=method, weights=weights)))
    assert one == pytest.approx(other, abs=1e-5)


def test_the_documented_table_of_methods_is_that_of_the_program() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fusion.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (scores|ranks) \| (.+?) \|$", page, re.MULTILINE)
    assert rows == [(name, fusion.formula, fusion.reads, fusion.reference) for name, fusion in FUSIONS.items()]
    assert list(FUSIONS) == list(METHODS)


def test_scores_of_a_small_example() -> None:
    """Both parts find b; d, f and e are found by one of them."""
    first, second = given_rows({1: 8.0, 2: 6.0, 0: 4.0}), given_rows({1: 1.0, 5: 3.0})
    expected: dict[str, dict[str, float]] = {
        "minmax": {"b": 1, "f": 0.5, "d": 0, "e": 1},
        "zscore": {"b": 1.5**0.5 - 1, "f": 0 - 1, "d": -(1.5**0.5) - 1, "e": -(1.5**0.5) + 1},
        "max": {"b": 1 + 1 / 3, "f": 0.75, "d": 0.5, "e": 1},
        "rank": {"b": 1 + 0.5, "f": 2 / 3, "d": 1 / 3, "e": 1},
        "none": {"b": 9, "f": 6, "d": 4, "e": 3},
    }
    for normalization, scores in expected.items():
        hybrid = Hybrid({"first": first, "second": second}, normalization=normalization)  # type: ignore[arg-type]  # one of its names
        assert by_id(fuse(hybrid)) == pytest.approx(scores, abs=1e-6)
    by_method: dict[Method, dict[str, float]] = {
        "combmnz": {"b": 2, "f": 0.5, "d": 0, "e": 1},
        "combanz": {"b": 0.5, "f": 0.5, "d": 0, "e": 1},
        "combmax": {"b": 1, "f": 0.5, "d": 0, "e": 1},
        "combmin": {"b": 0, "f": 0.5, "d": 0, "e": 1},
        "dbsf": {"b": 2 / 3 + 0.5 - 1 / 72**0.5, "f": 1 / 2, "d": 1 / 3, "e": 0.5 + 1 / 72**0.5},
        "rrf": {"b": 1 / 61 + 1 / 62, "e": 1 / 61, "f": 1 / 62, "d": 1 / 63},
        "isr": {"b": 2 * (1 + 1 / 4), "f": 1 / 4, "d": 1 / 9, "e": 1},
        "log_isr": {"b": math.log(2) * (1 + 1 / 4), "f": 0, "d": 0, "e": 0},
        "borda": {"b": 4 + 3, "f": 3 + 1.5, "d": 2 + 1.5, "e": 1 + 4},
    }
    for method, scores in by_method.items():
        assert by_id(fuse(Hybrid({"first": first, "second": second}, method=method))) == pytest.approx(scores)


def test_negative_scores_keep_their_order() -> None:
    parts = {"logits": given_rows({0: -1.0, 1: -2.0, 2: -4.0}), "other": given_rows({})}
    for normalization in NORMALIZATIONS:
        found = fuse(Hybrid(parts, normalization=normalization)).documents[0]
        assert found[:3].tolist() == [0, 1, 2]


def test_zeros_are_equal_whatever_their_sign() -> None:
    parts = {"one": given_rows({0: -0.0, 1: 0.0}), "other": given_rows({})}
    assert list(by_id(fuse(Hybrid(parts, normalization="none")))) == ["d", "b"]


def test_many_queries_are_fused_as_one_is() -> None:
    rows: list[Row] = [{0: 3.0, 1: 2.0, 2: 1.0}, {3: 3.0, 1: 1.0}] * 3000
    hybrid = Hybrid({"one": given_rows(*rows), "other": given_rows(*rows[1:], rows[0])}, depth=7)
    many, few = fuse(hybrid, 6000, 5), fuse(hybrid, 2, 5)
    assert (many.documents.reshape(3000, 2, 5) == few.documents).all()
    assert (many.scores.reshape(3000, 2, 5) == few.scores).all()


def test_alpha_weighs_the_last_part() -> None:
    parts = {"lexical": given_rows({0: 2.0, 1: 1.0}), "semantic": given_rows({1: 0.9, 2: 0.3})}
    by_alpha = fuse(Hybrid(parts, alpha=0.25))
    by_name = fuse(Hybrid(parts, weights={"semantic": 0.25, "lexical": 0.75}))
    by_order = fuse(Hybrid(parts, weights=[0.75, 0.25]))
    assert by_id(by_alpha) == by_id(by_name) == by_id(by_order) == {"d": 0.75, "b": 0.25, "f": 0.0}


def test_a_part_without_weight_is_not_searched() -> None:
    parts: dict[str, Retriever] = {"lexical": given_rows({0: 2.0, 1: 1.0}), "semantic": Untouchable()}
    assert by_id(fuse(Hybrid(parts, alpha=0))) == {"d": 1.0, "b": 0.0}


def typed(*types: str) -> list[QueryText]:
    return [QueryText(str(i), f"q{i}", name) for i, name in enumerate(types)]


@EACH_METHOD
@given(rows=st.lists(st.tuples(ROWS, ROWS, st.sampled_from(["a", "b", "c", ""])), min_size=1, max_size=5))
@pytest.mark.parametrize("method", METHODS)
def test_weights_by_type_are_those_of_a_hybrid_for_each_type(method: Method, rows: list[tuple[Row, Row, str]]) -> None:
    parts = {"one": given_rows(*(row for row, _, _ in rows)), "other": given_rows(*(row for _, row, _ in rows))}
    weights: dict[str, dict[str, Any]] = {"a": {"alpha": 0.25}, "b": {"weights": [0, 2]}, "c": {"alpha": 0.0}}
    by_type = {"a": 0.25, "b": {"one": 0.0, "other": 2.0}, "c": 0.0}
    hybrid = Hybrid(parts, method=method, weights=[1, 3], weights_by_type=by_type, depth=len(IDS))
    rankings = hybrid.index(CORPUS, MemoryStore()).search(typed(*(name for _, _, name in rows)), 5)
    for query, (*_, name) in enumerate(rows):
        alone = Hybrid(parts, method=method, depth=len(IDS), **weights.get(name, {"weights": [1, 3]}))
        expected = alone.index(CORPUS, MemoryStore()).search([str(query)], 5)
        assert rankings.documents[query].tolist() == expected.documents[0].tolist()
        assert rankings.scores[query].tolist() == expected.scores[0].tolist()


def test_a_part_that_a_type_does_not_need_costs_it_no_time_and_no_error() -> None:
    one = replace(given_rows({0: 1.0}, {0: 1.0}), fails=(0, 1))
    hybrid = Hybrid({"one": one, "other": given_rows({1: 1.0}, {1: 1.0})}, weights_by_type={"question": 1.0})
    rankings = hybrid.index(CORPUS, MemoryStore()).search(typed("question", "keyword"), 3)
    assert rankings.errors == {1: "one: no answer to 1"}
    assert by_id(rankings) == {"b": 1.0}
    assert rankings.seconds is not None
    assert rankings.seconds.tolist() == pytest.approx([0.5, 1.0], abs=0.4)


def test_stored_rankings_depend_on_types_only_where_weights_do() -> None:
    store = MemoryStore()
    parts: dict[str, Retriever] = {"one": given_rows({0: 1.0}, {0: 1.0}), "other": given_rows({1: 1.0}, {1: 1.0})}
    by_type = Hybrid(parts, alpha=0.5, weights_by_type={"a": 0.25})
    inner = Hybrid({"inner": by_type, "third": given_rows({}, {})})
    for hybrid in (by_type, inner):
        first, second = (search_cached(hybrid, CORPUS, typed(*types), 3, store) for types in (("a", ""), ("", "a")))
        assert first.scores[0].tolist() == second.scores[1].tolist() != second.scores[0].tolist()
    plain = Hybrid(parts, alpha=0.25)
    assert build_rankings_key(plain, CORPUS, typed("a", "b"), 3) == build_rankings_key(plain, CORPUS, ["0", "1"], 3)


def write_weights(folder: Path, weights: object) -> str:
    file = folder / "weights.json"
    file.write_text(weights if isinstance(weights, str) else json.dumps(weights))
    return str(file)


@EACH_METHOD
@given(rows=st.lists(st.tuples(ROWS, ROWS), min_size=5, max_size=5))
@pytest.mark.parametrize("method", ["weighted", "rrf", "combmnz", "borda"])
def test_weights_in_a_file_are_those_of_a_hybrid_for_each_query(
    method: Method, rows: list[tuple[Row, Row]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = {"one": given_rows(*(row for row, _ in rows)), "other": given_rows(*(row for _, row in rows))}
    own = {"q0": 0.25, "q1": [0, 2], "q2": {"other": 0.5, "one": 3}, "absent": 1}
    file = write_weights(tmp_path_factory.mktemp("weights"), own)
    hybrid = Hybrid(parts, method=method, alpha=0.4, weights_by_type={"b": 1.0, "a": 0.5}, weights_file=file)  # type: ignore[arg-type]  # as from YAML
    rankings = hybrid.index(CORPUS, MemoryStore()).search(typed("", "a", "b", "b", ""), 5)
    weights: list[dict[str, Any]] = [
        {"alpha": 0.25}, {"weights": [0, 2]}, {"weights": [3, 0.5]}, {"alpha": 1.0}, {"alpha": 0.4}
    ]  # fmt: skip
    for query, alone in enumerate(weights):
        expected = Hybrid(parts, method=method, **alone).index(CORPUS, MemoryStore()).search([str(query)], 5)
        assert rankings.documents[query].tolist() == expected.documents[0].tolist()
        assert rankings.scores[query].tolist() == expected.scores[0].tolist()


def test_a_result_depends_on_the_weights_in_the_file_and_the_ids_of_the_queries(tmp_path: Path) -> None:
    store = MemoryStore()
    parts: dict[str, Retriever] = {"one": given_rows({0: 1.0}, {0: 1.0}), "other": given_rows({1: 1.0}, {1: 1.0})}
    tops = []
    for weights in ({"q0": 0.1, "q1": 0.9}, {"q0": 0.9, "q1": 0.1}):
        hybrid = Hybrid(parts, weights_file=write_weights(tmp_path, weights))  # type: ignore[arg-type]  # as from YAML
        for queries in (typed("", ""), [QueryText("0", "q1"), QueryText("1", "q0")]):
            tops.append(search_cached(hybrid, CORPUS, queries, 3, store).documents[:, 0].tolist())
    assert tops == [[0, 1], [1, 0], [1, 0], [0, 1]]
    assert pickle.loads(pickle.dumps(hybrid)) == hybrid


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("{", r"weights_file=.*weights\.json: not JSON \("),
        (
            "[0.5]",
            r"weights_file=.*weights\.json: should be a JSON object of query ids, each with an alpha or a number",
        ),
        ({"q1": 0.5, "q2": "much"}, r"weights_file=.*weights\.json: q2: should be a JSON object of query ids"),
        ({"q1": 1.5}, r"weights_file: q1=1.5: should be from 0 to 1; it is the weight of the last part"),
        ({"q1": {"one": 1}}, r"weights_file: q1: set for one, but the parts are one, other"),
    ],
)
def test_a_file_of_weights_that_cannot_be_used_is_refused(weights: object, message: str, tmp_path: Path) -> None:
    part = given_rows({0: 1.0}, {1: 1.0})
    with pytest.raises(ValueError, match=message):
        Hybrid({"one": part, "other": part}, weights_file=write_weights(tmp_path, weights))  # type: ignore[arg-type]  # as from YAML
    with pytest.raises(ValueError, match=r"weights_file=.*none\.json: cannot be read \(No such file or directory\)"):
        Hybrid({"one": part, "other": part}, weights_file=str(tmp_path / "none.json"))  # type: ignore[arg-type]  # as from YAML


def test_a_file_of_weights_for_other_queries_is_refused(tmp_path: Path) -> None:
    part = given_rows({0: 1.0}, {1: 1.0})
    hybrid = Hybrid({"one": part, "other": part}, weights_file=write_weights(tmp_path, {"1": 0.5}))  # type: ignore[arg-type]  # as from YAML
    with pytest.raises(
        RetrieverError, match=r"has weights for '1' and others, but for none of the 2 queries, such as 'q0'"
    ):
        hybrid.index(CORPUS, MemoryStore()).search(typed("", ""), 3)


def test_a_type_that_no_query_has_is_named(caplog: pytest.LogCaptureFixture) -> None:
    part = given_rows({0: 1.0}, {1: 1.0})
    hybrid = Hybrid({"one": part, "other": part}, weights_by_type={"keyword": 0.5, "qestion": 0.5})
    hybrid.index(CORPUS, MemoryStore()).search(typed("keyword", "question"), 3)
    assert "no query has the type qestion; the types of the queries are keyword, question" in caplog.text


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
    monkeypatch.setattr("retrievers.fusion.time", SimpleNamespace(perf_counter=count(step=0.5).__next__))
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


def test_parts_are_indexed_once_and_late_even_where_nothing_is_kept() -> None:
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
