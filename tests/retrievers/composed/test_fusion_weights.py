"""Weights of the parts of a hybrid: for all queries, for each type, or for each query."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus, QueryText, Retriever, RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.composed.fusion_methods import Method
from retrievers.search import build_rankings_key, search_cached
from retrievers.store import MemoryStore, Store
from tests.retrievers.given_parts import CORPUS, EACH_METHOD, IDS, METHODS, Row, by_id, fuse, given_rows
from tests.retrievers.hits import list_rows
from tests.strategies.hybrids import PART_ROWS


@dataclass(frozen=True)
class Untouchable:
    """A retriever that must not be used."""

    def index(self, corpus: Corpus, store: Store) -> Any:
        raise AssertionError("this part is not needed")


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
@given(rows=st.lists(st.tuples(PART_ROWS, PART_ROWS, st.sampled_from(["a", "b", "c", ""])), min_size=1, max_size=5))
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
        assert list_rows(expected) == [list_rows(rankings)[query]]


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
@given(rows=st.lists(st.tuples(PART_ROWS, PART_ROWS), min_size=5, max_size=5))
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
        assert list_rows(expected) == [list_rows(rankings)[query]]


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
