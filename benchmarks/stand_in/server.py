"""Serve generated documents through the parts of the search API of OpenSearch and Elasticsearch that presets use.

Queries: `match`, `knn` in both dialects, `script_score` with a cosine (exact search), `ids`, and `hybrid`, whose lists
are normalised by their minimum and maximum and averaged. Documents: `_doc`, `_mget`, `_count`, `_mapping`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks.stand_in.documents import DIMENSIONS
from benchmarks.stand_in.search import Hits, Index

NAME = "articles"
"""The name of the index."""

TEXT, VECTOR = "text", "vector"
"""The fields of a document."""

MOST_HITS = 10_000
"""The largest result window, and the most candidates of a search for vectors."""


class RequestError(ValueError):
    """A request that the server does not support; its status is 400, or 404 if its target does not exist."""

    def __init__(self, reason: str, kind: str = "parsing_exception", status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(reason)
        self.kind, self.status = kind, status


class Api:
    """Answers requests; `latency_s` is added to each search, as a network would."""

    def __init__(self, index: Index, latency_s: float = 0.0) -> None:
        self.index, self.latency_s = index, latency_s
        self.searches = 0

    def answer(self, path: str, body: Any) -> tuple[int, Any]:  # noqa: ANN401 (any JSON)
        """Return the status and the body of the reply."""
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                version = {"distribution": "stand-in", "number": "1.0"}
                return HTTPStatus.OK, {"name": "stand-in", "cluster_name": "stand-in", "version": version}
            case [name, *_] if name != NAME:
                raise RequestError(f"no such index [{name}]", "index_not_found_exception", HTTPStatus.NOT_FOUND)
            case [_, "_count"]:
                return HTTPStatus.OK, {"count": self.index.documents.count, "_shards": _SHARDS}
            case [_, "_mapping"]:
                fields = {TEXT: {"type": "text"}, VECTOR: {"type": "dense_vector", "dims": DIMENSIONS}}
                return HTTPStatus.OK, {NAME: {"mappings": {"properties": fields}}}
            case [_, "_doc", name]:
                document = self._get(name)
                return HTTPStatus.OK if document["found"] else HTTPStatus.NOT_FOUND, document
            case [_, "_mget"]:
                return HTTPStatus.OK, {"docs": [self._get(name) for name in body["ids"]]}
            case [_, "_search"]:
                return HTTPStatus.OK, self._search(body or {})
        raise RequestError(f"no handler found for uri [{path}]", "illegal_argument_exception")

    def _get(self, name: str) -> dict[str, Any]:
        number = name.removeprefix("d")
        found = name.startswith("d") and number.isdecimal() and int(number) < self.index.documents.count
        source = {"_source": {TEXT: self.index.documents.write_text(int(number))}} if found else {}
        return {"_index": NAME, "_id": name, "found": found, **source}

    def _search(self, body: Mapping[str, Any]) -> dict[str, Any]:
        start, size = time.perf_counter(), int(body.get("size", 10))
        if not 0 <= size <= MOST_HITS:
            raise RequestError(f"size: should be from 0 to {MOST_HITS}, not {size}", "illegal_argument_exception")
        self.searches += 1
        time.sleep(self.latency_s)
        if "knn" in body:
            knn = body["knn"]
            hits = [(n, (1 + s) / 2) for n, s in self._find_near(knn["query_vector"], knn["k"], knn["num_candidates"])]
        else:
            hits = self._find(body.get("query") or {}, size)
        rows = [{"_index": NAME, "_id": f"d{number}", "_score": score} for number, score in hits[:size]]
        if body.get("_source", True) is not False:
            rows = [{**row, "_source": {TEXT: self.index.documents.write_text(int(row["_id"][1:]))}} for row in rows]
        took = int((time.perf_counter() - start) * 1000)
        total = {"value": len(hits), "relation": "gte"}
        most = rows[0]["_score"] if rows else None
        found = {"total": total, "max_score": most, "hits": rows}
        return {"took": took, "timed_out": False, "_shards": _SHARDS, "hits": found}

    def _find(self, query: Mapping[str, Any], k: int) -> Hits:
        match query:
            case {"match": {"text": {"query": str(text)}}} | {"match": {"text": str(text)}}:
                return self.index.search_text(text, k)
            case {"bool": {"must": dict(part), **others}} if not others:  # the documents have no fields to filter by
                return self._find(part, k)
            case {"knn": {"vector": {"vector": list(vector), "k": int(candidates)}}}:
                return [(n, (1 + s) / 2) for n, s in self._find_near(vector, k, candidates)]
            case {
                "script_score": {"script": {"params": {"query_value": list(vector)} | {"query_vector": list(vector)}}}
            }:
                return [(n, 1 + s) for n, s in self._find_near(vector, k, None)]
            case {"ids": {"values": list(names)}}:
                return [(int(name[1:]), 1.0) for name in names if self._get(name)["found"]][:k]
            case {"hybrid": {"queries": list(queries)}}:
                return _fuse([self._find(part, k) for part in queries])[:k]
        raise RequestError(f"unknown query {json.dumps(query)[:200]}")

    def _find_near(self, vector: list[float], k: int, candidates: int | None) -> Hits:
        if len(vector) != DIMENSIONS:
            raise RequestError(f"the query vector has {len(vector)} dimensions, but the field has {DIMENSIONS}")
        if candidates is not None and not k <= candidates <= MOST_HITS:
            raise RequestError(f"[num_candidates] should be from [k], here {k}, to {MOST_HITS}")
        return self.index.search_vector(vector, k, candidates)


_SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


def _fuse(lists: list[Hits]) -> Hits:
    """Return the mean of several lists of hits, after scaling the scores of each list to 0 to 1."""
    totals: dict[int, float] = {}
    for hits in lists:
        lowest, highest = min((s for _, s in hits), default=0), max((s for _, s in hits), default=0)
        for number, score in hits:
            share = (score - lowest) / (highest - lowest) if highest > lowest else 1.0
            totals[number] = totals.get(number, 0) + max(share, 0.001) / len(lists)
    return sorted(totals.items(), key=lambda hit: (-hit[1], hit[0]))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the head and the body of a reply are sent together
    api: Api

    def _handle(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            status, reply = self.api.answer(urlsplit(self.path).path, body)
        except RequestError as error:
            reason = {"type": error.kind, "reason": str(error)}
            status, reply = error.status, {"error": {"root_cause": [reason], **reason}, "status": error.status}
        except (ValueError, KeyError, TypeError) as error:
            reason = {"type": "parsing_exception", "reason": f"{type(error).__name__}: {error}"}
            status, reply = HTTPStatus.BAD_REQUEST, {"error": reason, "status": HTTPStatus.BAD_REQUEST}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    do_GET = do_POST = _handle

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def create_server(api: Api, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """Return a server that listens, and answers once `serve_forever` is called."""
    handler = type("Handler", (_Handler,), {"api": api})
    server = ThreadingHTTPServer((host, port), handler)
    server.daemon_threads = True
    return server


@contextmanager
def run_server(api: Api) -> Iterator[str]:
    """Serve on a free port of this machine until the block ends, and yield the address."""
    with create_server(api) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
