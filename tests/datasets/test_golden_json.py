"""Golden datasets in JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.datasets.base import DatasetError, Judgments
from runner.datasets.dataset import Dataset
from runner.datasets.golden_json import GoldenJson

ITEMS: list[dict[str, Any]] = [
    {"item_id": "a", "name": "A", "details": {"themes": ["art", ["travel"]], "year": 2024, "none": None}},
    {"item_id": "b", "name": "B", "details": {"themes": []}},
    {"item_id": "c", "name": "C"},
]
A_HIGH, A_LOW, B_MEDIUM = (
    {"item_id": item, "relevance": relevance} for item, relevance in (("a", "high"), ("a", "low"), ("b", "medium"))
)


def query(number: int, **fields: Any) -> dict[str, Any]:
    return {"query_id": f"q{number}", "query_text": f"query {number}", "query_type": "semantic"} | fields


def load(folder: Path, queries: list[Any], items: object = ITEMS, metadata: Any = None, **settings: Any) -> Dataset:
    """Load a dataset of these queries and items; text is written as it is."""
    (folder / "golden.json").write_text(json.dumps({"metadata": metadata, "queries": queries}), encoding="utf-8")
    path = folder / str(settings.pop("items_name", "items.json"))
    path.write_text(items if isinstance(items, str) else json.dumps(items), encoding="utf-8")
    chosen = {"text_fields": ["details.themes"]} | settings
    return GoldenJson(path=str(folder / "golden.json"), items=str(path), **chosen).load()


def named(dataset: Dataset, judgments: Judgments) -> dict[tuple[str, str], int]:
    rows = zip(judgments.queries, judgments.documents, judgments.grades, strict=True)
    return {(dataset.queries.ids[q], dataset.corpus.ids[d]): int(g) for q, d, g in rows}


def test_queries_and_items_load(tmp_path: Path) -> None:
    queries = [
        query(1, expected_items=[A_HIGH, B_MEDIUM], expected_count_range=[1, 2]),
        query(2, expected_items=[], expected_count=0, notes="nothing fits", query_type="edge"),
    ]
    counts = {"total_queries": 2, "query_types": {"semantic": 1, "edge": 1}}
    dataset = load(tmp_path, queries, metadata=counts)
    assert dataset.name == "golden"
    assert list(dataset.corpus.ids) == ["a", "b", "c"]
    assert list(dataset.corpus.texts) == ["art\ntravel", "", ""]
    assert list(dataset.queries.types) == ["semantic", "edge"]
    assert list(dataset.queries.metadata) == [
        {"expected_count_range": [1, 2]}, {"notes": "nothing fits", "expected_count": 0},
    ]  # fmt: skip
    assert named(dataset, dataset.judgments) == {("q1", "a"): 3, ("q1", "b"): 2}


def test_title_and_text_come_from_named_fields(tmp_path: Path) -> None:
    queries = [query(1, expected_items=[A_HIGH])]
    dataset = load(tmp_path, queries, title_field="name", text_fields=["details.year", "details.themes"])
    assert list(dataset.corpus.titles) == ["A", "B", "C"]
    assert list(dataset.corpus.texts) == ["2024\nart\ntravel", "", ""]


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("items.json", json.dumps(ITEMS)),
        ("items.json", json.dumps({"metadata": {"total": 3}, "golden_analyses": ITEMS})),
        ("items.jsonl", "\n".join(map(json.dumps, ITEMS))),
    ],
)
def test_items_are_a_list_an_object_with_one_list_or_lines(tmp_path: Path, name: str, items: str) -> None:
    dataset = load(tmp_path, [query(1, expected_items=[A_HIGH])], items, items_name=name)
    assert list(dataset.corpus.ids) == ["a", "b", "c"]


def test_items_in_csv_are_read_by_their_columns(tmp_path: Path) -> None:
    items = "item_id,name\na,Tower\nb,Ferry\n"
    dataset = load(tmp_path, [query(1, expected_items=[A_HIGH])], items, items_name="items.csv", text_fields=["name"])
    assert list(zip(dataset.corpus.ids, dataset.corpus.texts, strict=True)) == [("a", "Tower"), ("b", "Ferry")]


def test_an_item_may_have_another_name_for_its_id(tmp_path: Path) -> None:
    assert load(
        tmp_path, [query(1, expected_items=[])], [{"key": 7, "t": "x"}], item_id="key", text_fields=["t"]
    ).corpus


def test_what_a_search_type_should_find_replaces_what_any_should(tmp_path: Path) -> None:
    queries = [
        query(1, expected_items=[A_HIGH], expected_items_by_search_type={"dense": [B_MEDIUM], "agentic": []}),
        query(2, expected_items=[A_LOW]),
    ]
    dataset = load(tmp_path, queries)
    assert named(dataset, dataset.judgments.select("bm25")) == {("q1", "a"): 3, ("q2", "a"): 1}
    dense, agentic = dataset.judgments.select("dense"), dataset.judgments.select("agentic")
    assert named(dataset, dense) == {("q1", "a"): 0, ("q1", "b"): 2, ("q2", "a"): 1}
    assert agentic.golds(2).tolist() == [0, 1]


def test_without_a_general_list_other_search_types_should_find_all_that_any_should(tmp_path: Path) -> None:
    by_type = {"bm25-lc": [A_LOW], "vector-lc": [A_HIGH, B_MEDIUM]}
    queries = [query(1, expected_items=None, expected_items_by_search_type=by_type, expected_count=1)]
    dataset = load(tmp_path, queries)
    assert named(dataset, dataset.judgments) == {("q1", "a"): 3, ("q1", "b"): 2}
    assert dataset.judgments.select("bm25-lc").golds(1).tolist() == [1]
    assert dataset.judgments.select("vector-lc").golds(1).tolist() == [2]


def test_a_count_must_match_some_search_type_without_a_general_list(tmp_path: Path) -> None:
    by_type = {"bm25-lc": [A_LOW], "vector-lc": [A_HIGH, B_MEDIUM]}
    for counts in ({"expected_count": 0}, {"expected_count_range": [3, 4]}):
        with pytest.raises(DatasetError, match="but lists 1 or 2 items"):
            load(tmp_path, [query(1, expected_items_by_search_type=by_type, **counts)])


def test_what_a_report_shows_of_an_item_is_carried_along_and_not_searched(tmp_path: Path) -> None:
    dataset = load(tmp_path, [query(1, expected_items=[])], metadata_fields=["name", "details.year", "colour"])
    assert list(dataset.corpus.metadata) == [{"name": "A", "details.year": 2024}, {"name": "B"}, {"name": "C"}]
    assert "A" not in dataset.corpus.texts
    assert not load(tmp_path, [query(1, expected_items=[])]).corpus.metadata


def test_an_unexpected_number_of_items_is_refused_with_both_counts(tmp_path: Path) -> None:
    queries = [query(1, expected_items=[])]
    assert len(load(tmp_path, queries, expected_items=3).corpus) == 3
    message = r"items\.json: expected 55 items, found 3\..*dataset\.expected_items=null"
    with pytest.raises(DatasetError, match=message):
        load(tmp_path, queries, expected_items=55)


def test_relevance_is_a_map(tmp_path: Path) -> None:
    queries = [query(1, expected_items=[{"item_id": "a", "relevance": "vital"}])]
    assert load(tmp_path, queries, relevance={"vital": 9}).judgments.grades.tolist() == [9]
    with pytest.raises(ValidationError):
        load(tmp_path, queries, relevance={"vital": -1})


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (
            [query(7, expected_items=[A_HIGH | {"relevance": "huge"}])],
            "query 1, expected_items 1: 'q7' has an item with the unknown relevance 'huge'",
        ),
        (
            [query(1, expected_items=[{"item_id": "a"}])],
            "expected_items 1: 'relevance' is missing; the fields are item_id",
        ),
        (
            [query(1, expected_items=[{"relevance": "low"}])],
            "expected_items 1: 'item_id' is missing; the fields are relevance",
        ),
        (
            [query(1, expected_items=[A_HIGH, A_LOW])],
            "query 1, expected_items 2: 'q1' lists the item 'a' twice, with different relevance labels",
        ),
        ([query(1, expected_items="a")], "query 1: 'expected_items' is not a list"),
        ([query(1, expected_items=None)], "query 1: 'expected_items' is not a list"),
        ([query(1, expected_items=["a"])], "query 1: 'expected_items' is not a list"),
        ([query(1)], "query 1: 'expected_items' is missing; the fields are query_id, query_text, query_type"),
        ([query(1, expected_items_by_search_type=["a"])], "'expected_items_by_search_type' is not a JSON object"),
        ([query(1, expected_items=[], expected_count=2)], "'q1' has the expected_count 2, but lists 0 items"),
        ([query(1, expected_items=[], expected_count_range=[2, 3])], "the expected_count_range [2, 3], but lists 0"),
        (
            [query(1, expected_items=[], expected_count_range=2)],
            "the expected_count_range 2; write it as [minimum, maximum]",
        ),
        (
            [query(1, expected_items=[], expected_count_range=[2])],
            "the expected_count_range [2]; write it as [minimum, maximum]",
        ),
        ([{"query_id": "q1"}], "golden.json, query 1: 'query_text' is missing; the fields are query_id"),
        (["q1"], "golden.json, query 1: expected a JSON object, found 'q1'"),
        ([query(1, expected_items=[])] * 2, "query 2: the query id 'q1' is already used at "),
        (
            [query(1, expected_items=[{"item_id": "z", "relevance": "low"}])],
            "for example 'z'; correct the judgments, or set dataset.unknown_judged",
        ),
        ([], "golden: "),
    ],
)
def test_what_is_wrong_with_a_query_is_named(tmp_path: Path, queries: list[Any], message: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(tmp_path, queries)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"total_queries": 2}, "golden.json: metadata.total_queries is 2, but the file contains 1"),
        (
            {"query_types": {"semantic": 2}},
            "metadata.query_types is {'semantic': 2}, but the queries have {'semantic': 1}",
        ),
    ],
)
def test_counts_in_the_metadata_must_be_true(tmp_path: Path, metadata: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(tmp_path, [query(1, expected_items=[])], metadata=metadata)


@pytest.mark.parametrize(
    ("items", "settings", "message"),
    [
        ({"a": ITEMS, "b": ITEMS}, {}, "items.json: rows under several keys: a, b; keep only one of them"),
        ({"a": 1}, {}, "items.json: no item has a value in the field 'details.themes'"),
        (5, {}, "items.json: expected a list of objects, or an object that contains one"),
        ("[", {}, "items.json: invalid JSON ("),
        ([*ITEMS, 5], {}, "items.json, row 4: expected a JSON object, found 5"),
        ([{"details": {"themes": "x"}}], {}, "items.json, row 1: 'item_id' is missing; the fields are details"),
        (ITEMS + ITEMS[:1], {}, "row 4: the document id 'a' is already used at "),
        (
            ITEMS,
            {"text_fields": ["body"]},
            "no item has a value in the field 'body' (dataset.title_field, dataset.text_fields); the fi",
        ),
        (ITEMS, {"title_field": "name.first"}, "no item has a value in the field 'name.first'"),
        (
            ITEMS,
            {"text_fields": ["details"]},
            "row 1: 'details' is an object; name one of its fields, such as details.",
        ),
        ([], {}, "golden: the dataset has no documents"),
    ],
)
def test_what_is_wrong_with_the_items_is_named(tmp_path: Path, items: Any, settings: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(tmp_path, [query(1, expected_items=[])], items, **settings)


@pytest.mark.parametrize("content", ["[]", "{}", '{"queries": 5}'])
def test_a_file_without_queries_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "golden.json").write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"golden\.json: expected a JSON object with the list 'queries'"):
        GoldenJson(path=str(tmp_path / "golden.json"), items="x").load()


def test_a_missing_file_names_its_setting(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"^dataset\.path=.*nowhere\.json: no such file or folder$"):
        GoldenJson(path=str(tmp_path / "nowhere.json"), items="x").load()
    with pytest.raises(DatasetError, match=r"^dataset\.items=.*golden.nowhere\.jsonl: no such file or folder$"):
        GoldenJson(path="bundled:queries.json", items="bundled:nowhere.jsonl").load()
