"""Each preset of a search API sends the request, and reads the reply, that the vendor documents.

The first lines of each file in `conf/retriever/http` name the documentation and the clients that it was checked with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hydra.core.config_loader import ConfigLoader
from omegaconf import OmegaConf

from retrievers.base import NOTHING, Corpus, QueryText
from retrievers.encoders.base import Embedded
from retrievers.filters import parse_filter
from retrievers.search import search_cached
from retrievers.services.http_api import Http
from retrievers.services.templates import get_path
from retrievers.store import NoStore, Store
from runner.config import CONF
from runner.config.composing import open_loader
from runner.sweep.compose import Composer
from tests.retrievers.fake_api import Answer, Asked, FakeApi, fake_api
from tests.retrievers.http_search import FORM

QUERY = 'where is "Ferry"?'
VECTOR = [0.5, -0.25]
CORPUS = Corpus(["a", "b"], ["one", "two"])


@dataclass(frozen=True)
class Fixed:
    """Gives every query the same vector."""

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        assert not len(corpus)  # documents are the service's
        return Embedded(
            [], lambda texts, store: (np.array([VECTOR] * len(texts), np.float32), np.full(len(texts), 0.002))
        )


@dataclass(frozen=True)
class Preset:
    """The parameters of a preset, the documented request that it sends, and the documented reply."""

    parameters: Mapping[str, object]
    path: str
    request: Mapping[str, Any]
    reply: object
    scores: Sequence[float]
    items: object = None


def hits(*scores: float) -> dict[str, object]:
    """Return a reply of OpenSearch and Elasticsearch ("Search")."""
    rows = [{"_index": "x", "_id": name, "_score": score} for name, score in zip("bac", scores, strict=False)]
    total = {"value": len(rows), "relation": "eq"}
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return {
        "took": 4,
        "timed_out": False,
        "_shards": shards,
        "hits": {"total": total, "max_score": scores[0], "hits": rows},
    }


MATCH = {"query": {"bool": {"must": {"match": {"body": QUERY}}}}, "size": 3, "_source": False}
SEARCH = "/x/_search?allow_partial_search_results=false"
FULL_TEXT = Preset({"index": "x", "field": "body"}, SEARCH, MATCH, hits(1.5, 0.5), [1.5, 0.5], {"count": 2})

PRESETS = {
    "opensearch": FULL_TEXT,
    "elasticsearch": FULL_TEXT,
    "opensearch_hybrid": Preset(  # "Hybrid search"
        {"index": "x", "pipeline": "nlp search", "candidates": 50},
        "/x/_search?search_pipeline=nlp%20search&allow_partial_search_results=false",
        {
            "query": {
                "hybrid": {
                    "queries": [
                        {"bool": {"must": {"match": {"text": QUERY}}}},
                        {"knn": {"vector": {"vector": VECTOR, "k": 50}}},
                    ]
                }
            },
            "size": 3,
            "_source": False,
        },
        hits(0.88318, 0.5),
        [0.88318, 0.5],
        {"count": 2},
    ),
    "opensearch_knn": Preset(  # "k-NN query"
        {"index": "x", "candidates": 200},
        SEARCH,
        {"query": {"knn": {"vector": {"vector": VECTOR, "k": 200}}}, "size": 3, "_source": False},
        hits(0.9, 0.8),
        [0.9, 0.8],
        {"count": 2},
    ),
    "elasticsearch_knn": Preset(  # "kNN search"
        {"index": "x", "candidates": 200},
        SEARCH,
        {
            "knn": {"field": "vector", "query_vector": VECTOR, "k": 3, "num_candidates": 200},
            "size": 3,
            "_source": False,
        },
        hits(0.9, 0.8),
        [0.9, 0.8],
        {"count": 2},
    ),
    "qdrant": Preset(  # "Query points"
        {"collection": "x", "ef": 64},
        "/collections/x/points/query",
        {"query": VECTOR, "limit": 3, "params": {"hnsw_ef": 64}, "with_payload": False},
        {
            "result": {"points": [{"id": "b", "version": 3, "score": 0.81}, {"id": "a", "version": 1, "score": 0.75}]},
            "status": "ok",
            "time": 0.001,
        },
        [0.81, 0.75],
        {"result": {"status": "green", "points_count": 2}, "status": "ok", "time": 0.0001},
    ),
    "weaviate": Preset(  # "Search operators" in GraphQL, which writes scores as text
        {"collection": "Article", "id_field": "doc_id", "alpha": 0.25},
        "/v1/graphql",
        {
            "query": '{ Get { Article(limit: 3, hybrid: {query: "where is \\"Ferry\\"?", vector: [0.5, -0.25], '
            "alpha: 0.25}) { doc_id _additional { score } } } }"
        },
        {
            "data": {
                "Get": {
                    "Article": [
                        {"_additional": {"score": "0.875"}, "doc_id": "b"},
                        {"_additional": {"score": "0.5"}, "doc_id": "a"},
                    ]
                }
            }
        },
        [0.875, 0.5],
    ),
    "milvus": Preset(  # RESTful API v2, "Search"
        {"collection": "x", "ef": 64},
        "/v2/vectordb/entities/search",
        {
            "collectionName": "x",
            "data": [VECTOR],
            "annsField": "vector",
            "limit": 3,
            "outputFields": ["id"],
            "searchParams": {"params": {"ef": 64}},
        },
        {"code": 0, "cost": 0, "data": [{"distance": 0.99, "id": "b"}, {"distance": 0.5, "id": "a"}]},
        [0.99, 0.5],
    ),
    "typesense": Preset(  # "Search"
        {"collection": "x", "fields": "title,body"},
        "/collections/x/documents/search",
        {"q": [QUERY], "query_by": ["title,body"], "per_page": ["3"], "include_fields": ["id"]},
        {
            "facet_counts": [],
            "found": 2,
            "out_of": 2,
            "page": 1,
            "search_time_ms": 1,
            "hits": [
                {"document": {"id": "b"}, "highlights": [], "text_match": 1157451471441625000},
                {"document": {"id": "a"}, "highlights": [], "text_match": 578730123365711993},
            ],
        },
        [1157451471441625000, 578730123365711993],
        {"name": "x", "num_documents": 2},
    ),
    "meilisearch": Preset(  # "Search with POST", "Stats"
        {"index": "x"},
        "/indexes/x/search",
        {"q": QUERY, "limit": 3, "attributesToRetrieve": ["id"], "showRankingScore": True},
        {
            "hits": [{"id": "b", "_rankingScore": 0.95}, {"id": "a", "_rankingScore": 0.5}],
            "query": QUERY,
            "processingTimeMs": 1,
            "limit": 3,
            "offset": 0,
            "estimatedTotalHits": 2,
        },
        [0.95, 0.5],
        {"numberOfDocuments": 2, "isIndexing": False, "fieldDistribution": {}},
    ),
    "vespa": Preset(  # "Query API" and "Default JSON result format"
        {"source": "articles", "profile": "bm25"},
        "/search/",
        {
            "yql": "select id from sources articles where userQuery()",
            "query": QUERY,
            "type": "weakAnd",
            "ranking": {"profile": "bm25", "softtimeout": {"enable": False}},
            "timeout": "20s",
            "hits": 3,
        },
        {
            "root": {
                "id": "toplevel",
                "relevance": 1.0,
                "fields": {"totalCount": 2},
                "coverage": {"coverage": 100, "documents": 2, "full": True},
                "children": [
                    {"id": "index:articles/0/c4ca", "relevance": 2.5, "source": "articles", "fields": {"id": "b"}},
                    {"id": "index:articles/0/c81e", "relevance": 1.5, "source": "articles", "fields": {"id": "a"}},
                ],
            }
        },
        [2.5, 1.5],
    ),
    "solr": Preset(  # "JSON Request API", "JSON Query DSL"
        {"collection": "x", "fields": "title^2 body"},
        "/solr/x/query",
        {"query": {"edismax": {"query": QUERY, "qf": "title^2 body"}}, "limit": 3, "fields": ["id", "score"]},
        {
            "responseHeader": {"status": 0, "QTime": 3},
            "response": {
                "numFound": 2,
                "start": 0,
                "maxScore": 1.25,
                "numFoundExact": True,
                "docs": [{"id": "b", "score": 1.25}, {"id": "a", "score": 0.5}],
            },
        },
        [1.25, 0.5],
        {"responseHeader": {"status": 0}, "response": {"numFound": 2, "start": 0, "docs": []}},
    ),
    "runner": Preset(  # docs/serve.md
        {"search_type": "bm25"},
        "/search",
        {"query": QUERY, "top_k": 3, "search_type": "bm25", "include_answer": False},
        {
            "query": QUERY,
            "search_type": "bm25",
            "results": [
                {"item_id": "b", "rank": 1, "score": 1.5, "title": ""},
                {"item_id": "a", "rank": 2, "score": 0.5, "title": ""},
            ],
            "total_results": 2,
            "retrieval_time_ms": 0.5,
        },
        [1.5, 0.5],
    ),  # tests/retrievers/services/test_http_api.py counts the items
    "chroma": Preset(  # API v2, as in the client
        {"collection": "8e1d"},
        "/api/v2/tenants/default_tenant/databases/default_database/collections/8e1d/query",
        {"query_embeddings": [VECTOR], "n_results": 3, "include": ["distances"]},
        {"ids": [["b", "a"]], "distances": [[0.01, 1.81]], "documents": None, "include": ["distances"]},
        [-0.01, -1.81],
        2,
    ),
}


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    with open_loader("evaluate", []) as (loader, _):
        yield loader


def load_preset(loader: ConfigLoader, name: str, url: str, **more: object) -> Http:
    cfg = Composer(loader, "evaluate", []).compose([f"retriever=http/{name}", f"retriever.base_url={url}"])
    cfg.retriever.parameters = OmegaConf.unsafe_merge(cfg.retriever.parameters, PRESETS[name].parameters)
    values: Any = OmegaConf.to_container(cfg.retriever, resolve=True, throw_on_missing=True)
    values.pop("_target_")
    encoder = Fixed() if values.pop("encoder") else None
    return Http(**{**values, "encoder": encoder, "retries": 0, **more})


@dataclass(eq=False)
class Service:
    """Answers a search as documented, the request for the number of items, and the check of its health."""

    preset: Preset
    searches: list[tuple[Asked, str]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        if asked.path == urlsplit(self.preset.path).path:
            self.searches.append((asked, asked.headers.get("X-TYPESENSE-API-KEY", "")))
            return Answer(self.preset.reply)
        return Answer(self.preset.items if self.preset.items is not None else {"status": "ok"})


def test_every_preset_is_tested() -> None:
    assert PRESETS.keys() == {file.stem for file in (CONF / "retriever" / "http").glob("[!_]*.yaml")}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sends_and_reads_what_the_vendor_documents(
    loader: ConfigLoader, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TYPESENSE_API_KEY", "xyz")
    preset, service = PRESETS[name], Service(PRESETS[name])
    with fake_api(service.answer) as api:
        rankings = (
            load_preset(loader, name, api.url, expected_items=None if preset.items is None else 2)
            .index(CORPUS, NoStore())
            .search([QUERY], 3)
        )
    assert not rankings.errors
    row = zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True)
    assert [CORPUS.ids[document] for document, _ in row if document != NOTHING] == ["b", "a"]
    assert rankings.scores[0, :2].tolist() == np.array(preset.scores, np.float32).tolist()
    ((request, key),) = service.searches
    address = urlsplit(preset.path)
    assert request.path == address.path
    if address.query:
        assert request.parameters == parse_qs(address.query)
    assert (request.body if request.method == "POST" else request.parameters) == preset.request
    assert key == ("xyz" if name == "typesense" else "")
    has_vector = "encoding_ms" in rankings.diagnostics
    assert has_vector == (str(VECTOR) in str(preset.request))
    if has_vector:
        assert rankings.diagnostics["encoding_ms"] == pytest.approx(2)


CONDITIONS = {"year": {"from": 1950, "to": 1960}, "language": ["de", "fr"], "open": True, "size": 2.5}
CLAUSES = [
    {"terms": {"language": ["de", "fr"]}},
    {"term": {"open": True}},
    {"term": {"size": 2.5}},
    {"range": {"year": {"gte": 1950, "lte": 1960}}},
]
FILTERED: dict[str, tuple[str, object]] = {  # the place of a filter in a request, and what is there
    "opensearch": ("query.bool.filter", CLAUSES),
    "elasticsearch": ("query.bool.filter", CLAUSES),
    "opensearch_hybrid": ("query.hybrid.queries.0.bool.filter", CLAUSES),
    "opensearch_knn": ("query.knn.vector.filter.bool.filter", CLAUSES),
    "elasticsearch_knn": ("knn.filter", CLAUSES),
    "qdrant": (
        "filter",
        {
            "must": [
                {"key": "language", "match": {"any": ["de", "fr"]}},
                {"key": "open", "match": {"value": True}},
                {"key": "size", "range": {"gte": 2.5, "lte": 2.5}},
                {"key": "year", "range": {"gte": 1950, "lte": 1960}},
            ]
        },
    ),
    "chroma": (
        "where",
        {
            "$and": [
                {"language": {"$in": ["de", "fr"]}},
                {"open": {"$eq": True}},
                {"size": {"$eq": 2.5}},
                {"year": {"$gte": 1950}},
                {"year": {"$lte": 1960}},
            ]
        },
    ),
    "meilisearch": (
        "filter",
        'language IN ["de", "fr"] AND open IN [true] AND size IN [2.5] AND year >= 1950 AND year <= 1960',
    ),
    "milvus": (
        "filter",
        'language in ["de", "fr"] and open in [true] and size in [2.5] and year >= 1950 and year <= 1960',
    ),
    "solr": ("filter", ['language:("de" OR "fr")', 'open:("true")', 'size:("2.5")', "year:[1950 TO 1960]"]),
    "typesense": (
        "filter_by",
        ["language:=[`de`,`fr`] && open:=[true] && size:=[2.5] && year:>=1950 && year:<=1960"],
    ),
    "vespa": (  # "YQL Query Language Reference"
        "yql",
        'select id from sources articles where userQuery() and language in ("de", "fr") and (open = true) '
        "and (size = 2.5) and year >= 1950 and year <= 1960",
    ),
    "weaviate": (  # "Conditional filters"
        "query",
        '{ Get { Article(limit: 3, hybrid: {query: "where is \\"Ferry\\"?", vector: [0.5, -0.25], alpha: 0.25}, '
        "where: {operator: And, operands: [{operator: Or, operands: ["
        '{path: ["language"], operator: Equal, valueText: "de"}, '
        '{path: ["language"], operator: Equal, valueText: "fr"}]}, '
        '{path: ["open"], operator: Equal, valueBoolean: true}, '
        '{path: ["size"], operator: Equal, valueNumber: 2.5}, '
        '{path: ["year"], operator: GreaterThanEqual, valueInt: 1950}, '
        '{path: ["year"], operator: LessThanEqual, valueInt: 1960}]}) { doc_id _additional { score } } } }',
    ),
}


def test_every_preset_of_an_engine_sends_filters() -> None:
    assert PRESETS.keys() - FILTERED.keys() == {"runner"}


@pytest.mark.parametrize("name", FILTERED)
def test_a_preset_sends_the_filter_of_a_query_in_the_form_of_the_vendor(
    loader: ConfigLoader, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TYPESENSE_API_KEY", "xyz")
    service, queries = Service(PRESETS[name]), [QueryText(QUERY, "q", own=parse_filter(CONDITIONS))]
    with fake_api(service.answer) as api:
        preset = load_preset(loader, name, api.url)
        assert not search_cached(preset, CORPUS, queries, 3, NoStore()).errors
    ((request, _),) = service.searches
    place, expected = FILTERED[name]
    assert get_path(request.body if request.method == "POST" else request.parameters, place) == expected
    if name == "opensearch_hybrid":
        assert request.body["query"]["hybrid"]["queries"][1]["knn"]["vector"]["filter"] == {"bool": {"filter": CLAUSES}}


PARTIAL = {
    "shard": (
        "opensearch",
        {**hits(1.5, 0.5), "_shards": {"total": 2, "failed": 1, "failures": [{"reason": "no memory"}]}},
        'the reply has _shards.failed 1, not 0: [{"reason": "no memory"}]',
    ),
    "time": ("elasticsearch", {**hits(1.5), "timed_out": True}, "the reply has timed_out true, not false"),
    "knn": ("elasticsearch_knn", {**hits(1.5), "timed_out": True}, "the reply has timed_out true, not false"),
    "hybrid": ("opensearch_hybrid", {**hits(1.5), "timed_out": True}, "the reply has timed_out true, not false"),
    "code": (  # as the server writes it
        "milvus",
        {"code": 100, "message": "can't find collection[database=default][collection=x]"},
        "the reply has code 100, not 0: can't find collection[database=default][collection=x]",
    ),
    "graphql": (
        "weaviate",
        {"data": {"Get": {"Article": None}}, "errors": [{"message": "vector lengths don't match"}]},
        'the reply has errors: [{"message": "vector lengths don\'t match"}]',
    ),
    "vespa": (
        "vespa",
        {"root": {"errors": [{"code": 12, "summary": "Timed out"}], "children": []}},
        'the reply has root.errors: [{"code": 12, "summary": "Timed out"}]',
    ),
    "solr": (
        "solr",
        {"responseHeader": {"status": 0, "partialResults": True}, "response": {"docs": [{"id": "a", "score": 1}]}},
        "the reply has responseHeader.partialResults true, not false",
    ),
    "typesense": (
        "typesense",
        {"hits": [], "search_cutoff": True},
        "the reply has search_cutoff true, not false",
    ),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_a_partial_reply_is_an_error_of_its_query(
    loader: ConfigLoader, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TYPESENSE_API_KEY", "xyz")
    name, reply, message = PARTIAL[case]
    with fake_api(lambda asked: Answer(reply)) as api:
        rankings = load_preset(loader, name, api.url, health_path=None).index(CORPUS, NoStore()).search([QUERY], 3)
    assert rankings.errors == {0: message}
    assert (rankings.documents == NOTHING).all()


def test_an_empty_list_of_errors_is_none(loader: ConfigLoader) -> None:
    with fake_api(lambda asked: Answer({"errors": [], "data": {"Get": {"Article": []}}})) as api:
        rankings = load_preset(loader, "weaviate", api.url).index(CORPUS, NoStore()).search([QUERY], 3)
    assert not rankings.errors


def test_vespa_without_hits_has_no_children(loader: ConfigLoader) -> None:
    empty = {"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 0}}}
    with fake_api(lambda asked: Answer(empty)) as api:
        rankings = load_preset(loader, "vespa", api.url).index(CORPUS, NoStore()).search([QUERY], 3)
    assert not rankings.errors
    assert (rankings.documents == NOTHING).all()


def search(api: FakeApi, **settings: Any) -> Any:
    return Http(api.url, retries=0, **FORM | settings).index(CORPUS, NoStore()).search(["q"], 2)


def test_scores_beside_results_have_to_be_as_many() -> None:
    with fake_api(lambda asked: Answer({"ids": ["a", "b"], "scores": [1]})) as api:
        rankings = search(api, results="ids", item_id="", scores="scores")
    assert rankings.errors == {0: "the reply has 1 scores for 2 results"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"request": {"vector": "{vector}"}}, r"request: \{vector\} needs an encoder"),
        ({"request": {"x": "{index}"}, "parameters": {"index": 1}}, r"request: without \{query\}, all"),
        ({"expected_items": 3, "items_path": None}, "expected_items: needs items_path"),
        ({"parameters": {"top_k": 1}}, r"parameters.top_k: this name is reserved"),
        ({"parameters": {"api_key": "x"}}, r"parameters.api_key: the name suggests a secret"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Http("http://127.0.0.1", **FORM | settings)
