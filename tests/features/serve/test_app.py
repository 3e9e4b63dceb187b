"""The API as its clients see it: a server in a process of its own."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from runner.datasets.golden_json import GoldenJson
from tests.features.serve.process import Running

GOLDEN = GoldenJson(
    path="bundled:queries.json", items="bundled:items.jsonl", title_field="title", text_fields=("text",)
)
QUESTION = "When does the ferry to the islands leave?"


def post(server: Running, **request: Any) -> httpx.Response:
    return server.client.post("/search", json=request)


def test_health_says_what_is_served(server: Running) -> None:
    reply = server.client.get("/health").json()
    assert reply == {"status": "ok", "items": 120, "search_types": ["bm25", "vector"]}


def test_items_are_listed_with_how_many_there_are(server: Running) -> None:
    corpus = GOLDEN.load().corpus
    one, rest = (server.client.get(f"/items?{asked}").json() for asked in ("limit=1", "offset=118"))
    assert one["total"] == rest["total"] == len(corpus)
    assert one["items"] == [{"item_id": corpus.ids[0], "title": corpus.titles[0], "text": corpus.texts[0]}]
    assert [item["item_id"] for item in rest["items"]] == list(corpus.ids[118:])


def test_a_search_finds_what_the_retriever_finds(server: Running) -> None:
    corpus = GOLDEN.load().corpus
    local = BM25().index(corpus, MemoryStore()).search([QUESTION], 5)
    reply = post(server, query=QUESTION, top_k=5).json()
    assert [hit["item_id"] for hit in reply["results"]] == [corpus.ids[d] for d in local.documents[0]]
    assert [hit["score"] for hit in reply["results"]] == local.scores[0].tolist()
    assert [hit["rank"] for hit in reply["results"]] == [1, 2, 3, 4, 5]
    assert reply["search_type"] == "bm25"
    assert reply["total_results"] == 5


def test_a_search_type_names_the_retriever(server: Running) -> None:
    replies = {name: post(server, query=QUESTION, search_type=name).json() for name in ("bm25", "vector")}
    assert {name: reply["search_type"] for name, reply in replies.items()} == {"bm25": "bm25", "vector": "vector"}
    assert replies["bm25"]["results"] != replies["vector"]["results"]
    assert post(server, query=QUESTION, search_type=None).json()["results"] == replies["bm25"]["results"]


def test_what_no_document_has_finds_nothing(server: Running) -> None:
    assert post(server, query="zeppelin").json()["results"] == []
    assert post(server, query="").json()["results"] == []


REFUSED = {
    "no json": (b"{query", 422, "Invalid JSON"),
    "no body": (b"", 422, "Invalid JSON"),
    "no object": (b"[1]", 422, "object"),
    "no query": (b"{}", 422, "query: Field required"),
    "another type": (b'{"query": 1}', 422, "query: Input should be a valid string"),
    "a half surrogate": (b'{"query": "\\ud800"}', 422, "Invalid JSON"),
    "no utf-8": (b'{"query": "\xff"}', 422, "Invalid JSON"),
    "a misspelt field": (b'{"query": "x", "topk": 3}', 422, "topk: Extra inputs are not permitted"),
    "nothing wanted": (b'{"query": "x", "top_k": 0}', 422, "top_k: Input should be greater than or equal to 1"),
    "too much wanted": (b'{"query": "x", "top_k": 51}', 422, "top_k: Input should be less than or equal to 50"),
    "no number": (b'{"query": "x", "top_k": NaN}', 422, "top_k"),
    "endless digits": (b'{"query": "x", "top_k": ' + b"9" * 4400 + b"}", 422, "number out of range"),
    "an unknown search type": (b'{"query": "x", "search_type": "z"}', 422, "'bm25' or 'vector'"),
    "half a result": (b'{"query": "x", "top_k": 1.5}', 422, "top_k: Input should be a valid integer"),
    "a number for false": (b'{"query": "x", "include_answer": 0}', 422, "include_answer"),
    "an answer": (b'{"query": "x", "include_answer": true}', 422, "include_answer"),
    "a long query": (json.dumps({"query": "x" * 1001}).encode(), 422, "at most 1000 characters"),
    "a deep body": (b"[" * 4900, 422, "Invalid JSON"),
    "a large body": (json.dumps({"query": "x" * 5000}).encode(), 413, "larger than 5000 bytes"),
    "a very large body": (b"x" * 3_000_000, 413, "larger than 5000 bytes"),
}


@pytest.mark.parametrize(("body", "status", "detail"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_malformed_or_too_large_is_refused_and_changes_nothing(
    server: Running, body: bytes, status: int, detail: str
) -> None:
    before = post(server, query=QUESTION).json()["results"]
    reply = server.client.post("/search", content=body)
    assert reply.status_code == status
    assert detail in reply.json()["detail"]
    assert len(reply.content) < 500
    assert post(server, query=QUESTION).json()["results"] == before


def test_a_body_in_pieces_is_measured_too(server: Running) -> None:
    pieces = (b"x" * 1000 for _ in range(6))
    assert server.client.post("/search", content=pieces).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/search", 405),
        ("DELETE", "/items", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/items?limit=0", 422),
        ("GET", "/items?limit=1001", 422),
        ("GET", "/items?offset=-1", 422),
        ("GET", f"/items?offset={'9' * 4400}", 422),
        ("GET", "/items?limit=many", 422),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(server: Running, method: str, path: str, status: int) -> None:
    reply = server.client.request(method, f"{path}")
    assert reply.status_code == status
    assert isinstance(reply.json()["detail"], str)


def test_an_offset_beyond_all_items_lists_none(server: Running) -> None:
    assert server.client.get(f"/items?offset={10**30}").json() == {"total": 120, "items": []}


def test_the_openapi_page_says_the_limits(server: Running) -> None:
    schema = server.client.get("/openapi.json").json()
    asked = schema["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert asked["query"]["maxLength"] == 1000
    assert asked["top_k"]["maximum"] == 50
    assert asked["search_type"]["anyOf"][0]["enum"] == ["bm25", "vector"]
    assert "/openapi.json" in server.client.get("/docs").text


def test_clients_at_once_get_what_one_gets(server: Running) -> None:
    queries = [QUESTION, "lighthouse", "museum of ships", "fish market on Saturdays"]
    asked = [(query, kind) for query in queries for kind in ("bm25", "vector")]

    def results(each: tuple[str, str]) -> object:
        return post(server, query=each[0], search_type=each[1]).json()["results"]

    expected = [results(each) for each in asked]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(results, asked * 5)) == expected * 5


def logged_requests(server: Running, last: str) -> list[dict[str, Any]]:
    """Return the log's lines of JSON once the request of a path is in it: a line may follow its reply."""
    for _ in range(3000):
        *complete, _ = server.said.read_text().split("\n")
        lines = [json.loads(line) for line in complete if line.startswith("{")]
        if any(line.get("path") == last for line in lines):
            return lines
        time.sleep(0.01)
    raise AssertionError(server.said.read_text())


def test_each_request_logs_a_line_of_json_without_its_query(server: Running) -> None:
    assert post(server, query="my secret question", top_k=7).status_code == 200
    assert server.client.get("/no%0Awhere").status_code == 404
    lines = logged_requests(server, "/no\nwhere")
    assert lines[-1]["path"] == "/no\nwhere"
    assert {key: lines[-2][key] for key in ("event", "method", "path", "status", "search_type", "top_k")} == {
        "event": "request", "method": "POST", "path": "/search", "status": 200, "search_type": "bm25", "top_k": 7,
    }  # fmt: skip
    assert lines[-2]["ms"] >= lines[-2]["search_ms"] > 0
    assert "secret question" not in server.said.read_text()
