"""Filters of other systems: what a service or an object gets selects the documents that the filter does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import Corpus, QueryText
from retrievers.filters import parse_filter
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.services.filter_forms import FORMS, FilterForm, format_filter
from retrievers.services.http_api import Http
from retrievers.store import MemoryStore, NoStore
from tests.retrievers.fake_api import Answer, Asked, fake_api, hits, in_turn
from tests.retrievers.http_search import FORM
from tests.retrievers.test_filters import filter_by_hand, list_hits, passes
from tests.strategies.filters import FILTERS, METADATA
from tests.strategies.settings import at_most
from tests.strategies.texts import WORDS

Row = Mapping[str, Any]
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: value == other,
    "in": lambda value, others: value in others,
    "gte": lambda value, other: value >= other,
    "lte": lambda value, other: value <= other,
}


def meets(row: Row, field: str, comparisons: Mapping[str, Any]) -> bool:
    """Return whether one of the values of a field meets every comparison."""
    value = row.get(field)
    values = value if isinstance(value, list) else [] if value is None else [value]
    return any(all(COMPARE[name](one, other) for name, other in comparisons.items()) for one in values)


def match_elasticsearch(row: Row, clauses: Sequence[Mapping[str, Mapping[str, Any]]]) -> bool:
    for clause in clauses:
        ((kind, fields),) = clause.items()
        ((field, value),) = fields.items()
        if not meets(row, field, {"term": {"eq": value}, "terms": {"in": value}}.get(kind, value)):
            return False
    return True


def match_qdrant(row: Row, form: Mapping[str, Any]) -> bool:
    def match(condition: Mapping[str, Any]) -> bool:
        if "should" in condition:
            return any(map(match, condition["should"]))
        if "range" in condition:
            return meets(row, condition["key"], condition["range"])
        ((kind, value),) = condition["match"].items()
        return meets(row, condition["key"], {"in" if kind == "any" else "eq": value})

    return all(map(match, form["must"]))


def match_chroma(row: Row, form: Mapping[str, Any]) -> bool:
    for comparison in form.get("$and", [form]):
        ((field, wanted),) = comparison.items()
        if not meets(row, field, {name.removeprefix("$"): value for name, value in wanted.items()}):
            return False
    return True


def match_haystack(row: Row, form: Mapping[str, Any]) -> bool:
    names = {"==": "eq", "in": "in", ">=": "gte", "<=": "lte"}
    return form["operator"] == "AND" and all(
        meets(row, c["field"].removeprefix("meta."), {names[c["operator"]]: c["value"]}) for c in form["conditions"]
    )


MATCHERS: Mapping[FilterForm, Callable[[Row, Any], bool]] = {
    "json": passes,
    "elasticsearch": match_elasticsearch,
    "qdrant": match_qdrant,
    "chroma": match_chroma,
    "haystack": match_haystack,
}
TEXTS: set[FilterForm] = {"meilisearch", "milvus", "solr", "typesense", "vespa", "weaviate"}
"""The forms that are languages; tests/config/test_http_presets.py has an example of each."""


def test_every_form_is_tested() -> None:
    assert FORMS.keys() == MATCHERS.keys() | TEXTS


@pytest.mark.parametrize("form", MATCHERS)
@settings(max_examples=at_most(40))
@given(row=METADATA, conditions=FILTERS)
def test_a_form_selects_the_documents_that_pass(form: FilterForm, row: Row, conditions: dict[str, Any]) -> None:
    own = parse_filter(conditions)
    if own is None:
        return
    single = {name: value[0] if isinstance(value, list) and value else value for name, value in row.items()}
    single = {name: value for name, value in single.items() if value != []}  # engines differ in ranges over lists
    assert MATCHERS[form](single, json.loads(json.dumps(format_filter(own, form, {})))) == passes(single, conditions)


def test_a_field_may_have_another_name_in_the_index() -> None:
    own = parse_filter({"language": "de", "year": 2000})
    assert own is not None
    clauses = [{"term": {"language.keyword": "de"}}, {"term": {"year": 2000}}]
    assert format_filter(own, "elasticsearch", {"language": "language.keyword"}) == clauses


def test_qdrant_matches_numbers_and_booleans_one_by_one() -> None:
    own = parse_filter({"open": [True, False], "size": [1, 2.5]})
    assert own is not None
    assert format_filter(own, "qdrant", {}) == {
        "must": [
            {"should": [{"key": "open", "match": {"value": value}} for value in (False, True)]},
            {
                "should": [
                    {"key": "size", "match": {"value": 1}},
                    {"key": "size", "range": {"gte": 2.5, "lte": 2.5}},
                ]
            },
        ]
    }


@pytest.mark.parametrize(
    ("form", "conditions", "text"),
    [
        ("vespa", {"size": [1, 2.5]}, " and (size = 1 or size = 2.5)"),
        ("vespa", {"id": [-3, 2**31]}, " and id in (-3, 2147483648L)"),
        ("vespa", {"name": 'a "b"\\é'}, ' and name in ("a \\"b\\"\\\\é")'),
        ("weaviate", {"open": False}, ', where: {path: ["open"], operator: Equal, valueBoolean: false}'),
        ("weaviate", {"size": {"to": 2.5}}, ', where: {path: ["size"], operator: LessThanEqual, valueNumber: 2.5}'),
        ("weaviate", {"name": 'a "b"'}, ', where: {path: ["name"], operator: Equal, valueText: "a \\"b\\""}'),
        (
            "weaviate",
            {"size": {"from": 1, "to": 2.5}},
            ', where: {operator: And, operands: [{path: ["size"], operator: GreaterThanEqual, valueNumber: 1}, '
            '{path: ["size"], operator: LessThanEqual, valueNumber: 2.5}]}',
        ),
    ],
)
def test_a_form_within_a_text_continues_it(form: FilterForm, conditions: dict[str, Any], text: str) -> None:
    assert format_filter(parse_filter(conditions), form, {}) == text
    assert format_filter(None, form, {}) == ""


REQUEST = {"query": {"bool": {"must": {"match": "{query}"}, "filter": "{filter}"}}, "size": "{top_k}"}


@settings(max_examples=at_most(20))
@given(data=st.data())
def test_a_service_that_applies_the_clauses_ranks_as_bm25_with_the_filter(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=1, max_size=8))
    rows = data.draw(st.lists(METADATA, min_size=len(texts), max_size=len(texts)))
    rows = [{name: value for name, value in row.items() if name != "tags"} for row in rows]
    corpus = Corpus([f"d{i}" for i in range(len(texts))], texts, metadata=rows, filter_fields=("language", "year"))
    asked = data.draw(st.lists(st.tuples(st.lists(WORDS, max_size=3).map(" ".join), FILTERS), max_size=3))
    queries = [QueryText(text, str(i), own=parse_filter(own)) for i, (text, own) in enumerate(asked)]
    k, searcher = data.draw(st.integers(1, 5)), BM25().index(corpus, MemoryStore())

    def answer(request: Asked) -> Answer:
        query = request.body["query"]["bool"]
        passing = [match_elasticsearch(row, query.get("filter", [])) for row in rows]
        (row,) = filter_by_hand(searcher.search([query["must"]["match"]], len(corpus)), [passing], request.body["size"])
        return hits(*((corpus.ids[document], score) for document, score in row))

    with fake_api(answer) as api:
        own = Http(api.url, **FORM | {"request": REQUEST}, filter_form="elasticsearch", concurrency=1)
        rankings = search_cached(own, corpus, queries, k, NoStore())
    assert not rankings.errors
    assert list_hits(rankings) == list_hits(searcher.search(queries, k))


def test_a_filter_in_an_address_or_a_text_is_json_and_absent_without_one() -> None:
    queries = [QueryText("x", "1", own=parse_filter({"year": {"from": 2000}, "language": "de"})), QueryText("y", "2")]
    corpus = Corpus(["a"], ["x"], metadata=[{"year": 2001, "language": "de"}], filter_fields=("language", "year"))
    text = '{"language": "de", "year": {"from": 2000}}'
    with fake_api(in_turn(hits(("a", 1.0)))) as api:
        for own in (
            {"method": "GET", "request": {"q": "{query}", "f": "{filter}"}},
            {"request": {"q": "{query}", "f": "only {filter}", "g": {"h": "{filter}"}}},
        ):
            search_cached(Http(api.url, **FORM | own, concurrency=1), corpus, queries, 1, NoStore())
        (with_filter, without, *posted) = api.searches
    assert with_filter.parameters == {"q": ["x"], "f": [text]}
    assert without.parameters == {"q": ["y"]}
    assert posted[0].body == {"q": "x", "f": f"only {text}", "g": {"h": json.loads(text)}}
    assert posted[1].body == {"q": "y"}
