"""The routes of the search API: /search, /items, /health, and the OpenAPI page that describes them.

Malformed, too large or unknown requests get a 4xx status and a message in one line. All requests are read-only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, create_model
from pydantic.dataclasses import dataclass as settings
from starlette.responses import Response

from retrievers.base import NOTHING, Corpus, Rankings, Searcher
from retrievers.unknown import resolve_id
from runner.web.middleware import LOG_FIELDS, RequestMiddleware, build_refusal, build_reply
from runner.web.timeouts import CONNECTIONS, REQUEST_S

MAX_ITEMS = 1000
"""The largest number of items that one request lists."""

SHOWN = 200
"""The largest number of characters from an error in a refusal; errors may quote text from the client."""


@settings(frozen=True, config={"extra": "forbid"})
class RequestLimits:
    """Limits of the size of a request, the time to receive it, and the number of open connections."""

    body_bytes: int = Field(default=1 << 18, ge=1)
    query_characters: int = Field(default=20_000, ge=1)
    top_k: int = Field(default=1000, ge=1)
    request_s: float = Field(default=REQUEST_S, gt=0, allow_inf_nan=False)
    connections: int = Field(default=CONNECTIONS, ge=1)


@dataclass(frozen=True, eq=False)
class SearchService:
    """A corpus and its searchers by search type; the first is the default.

    `threads` is the number of parallel searches. More threads only help retrievers that wait for a service: most others
    already use all processors, and the tokenizer of a model is limited to one thread.
    """

    corpus: Corpus
    searchers: Mapping[str, Searcher]
    limits: RequestLimits
    threads: int


def _parse_integer(value: object) -> object:
    """Return a number without a fraction as an integer, because JSON does not distinguish the two."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("Input should be false")
    return value


class SearchRequest(BaseModel, extra="forbid", strict=True):
    """A query. A null `search_type` is the default one. There are no answers, only results."""

    query: str
    top_k: int = 10
    search_type: str | None = None
    include_answer: Annotated[Literal[False], BeforeValidator(_check_boolean)] = False  # Literal alone would accept 0


class Hit(BaseModel):
    """An item; a higher score is better."""

    item_id: str
    rank: int
    score: float
    title: str


class SearchResponse(BaseModel):
    """The results of a search, best first."""

    query: str
    search_type: str
    results: list[Hit]
    total_results: int
    retrieval_time_ms: float


class Item(BaseModel):
    """A document."""

    item_id: str
    title: str
    text: str


class Items(BaseModel):
    """Some of the items, in the order of the corpus, and the total number."""

    total: int
    items: list[Item]


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"]
    items: int
    search_types: list[str]


class Refusal(BaseModel):
    """The reason of a refusal."""

    detail: str


def create_app(service: SearchService) -> FastAPI:
    """Return the API as an ASGI application."""
    app = FastAPI(
        title="Search",
        summary=f"{', '.join(service.searchers)} over {len(service.corpus):,} items",
        responses={413: {"model": Refusal}},
    )
    app.add_middleware(RequestMiddleware, body_bytes=service.limits.body_bytes)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    refusals: dict[int | str, dict[str, Any]] = {422: {"model": Refusal}}
    request_model = _build_request_model(service)
    body = {"required": True, "content": {"application/json": {"schema": request_model.model_json_schema()}}}
    pool = ThreadPoolExecutor(service.threads, "search")
    corpus = service.corpus

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Return the state of the service."""
        return build_reply({"status": "ok", "items": len(corpus), "search_types": list(service.searchers)})

    @app.get("/items", response_model=Items, responses=refusals)
    async def items(
        limit: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = 10, offset: Annotated[int, Query(ge=0)] = 0
    ) -> Response:
        """List items."""
        listed = [
            {"item_id": corpus.ids[position], "title": _find_title(corpus, position), "text": corpus.texts[position]}
            for position in range(offset, min(offset + limit, len(corpus)))
        ]
        return build_reply({"total": len(corpus), "items": listed})

    @app.post(
        "/search", response_model=SearchResponse, responses={**refusals, 502: {"model": Refusal}},
        openapi_extra={"requestBody": body},
    )  # fmt: skip
    async def search(request: Request) -> Response:
        """Search the items."""
        try:
            query = request_model.model_validate_json(await request.body())
        except ValidationError as error:
            return _refuse_invalid(request, error)
        search_type = query.search_type or next(iter(service.searchers))
        work = partial(_measure_search, service.searchers[search_type], query.query, query.top_k)
        rankings, seconds = await asyncio.get_running_loop().run_in_executor(pool, work)
        fields = {"search_type": search_type, "query_characters": len(query.query), "top_k": query.top_k}
        request.scope[LOG_FIELDS].update(fields, search_ms=round(seconds * 1000, 3))
        if rankings.errors:  # from a service that the retriever queries, or from one of its steps
            return build_refusal(502, rankings.errors[0])
        results = _build_results(rankings, corpus)
        request.scope[LOG_FIELDS]["results"] = len(results)
        counted = {"total_results": len(results), "retrieval_time_ms": seconds * 1000}
        return build_reply({"query": query.query, "search_type": search_type, "results": results, **counted})

    return app


def _build_request_model(service: SearchService) -> type[SearchRequest]:
    """Return the model of a search request with its limits, so that the OpenAPI page shows them."""
    limits, names = service.limits, tuple(service.searchers)
    query: Any = (str, Field(max_length=limits.query_characters))
    top_k: Any = (
        Annotated[int, BeforeValidator(_parse_integer)],
        Field(default=min(10, limits.top_k), ge=1, le=limits.top_k),
    )
    search_type: Any = (Literal[names] | None, None)
    return create_model("SearchRequest", __base__=SearchRequest, query=query, top_k=top_k, search_type=search_type)


def _refuse_invalid(request: Request, error: Exception) -> Response:
    """Return a refusal with the first error in a request, without the invalid value."""
    assert isinstance(error, (ValidationError, RequestValidationError))  # noqa: S101 (only called for these)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query") or len(first["loc"]) == 1)
    return build_refusal(422, f"{place[:SHOWN]}: {first['msg'][:SHOWN]}".removeprefix(": "))


def _measure_search(searcher: Searcher, query: str, k: int) -> tuple[Rankings, float]:
    start = time.perf_counter()
    return searcher.search([query], k), time.perf_counter() - start


def _build_results(rankings: Rankings, corpus: Corpus) -> list[dict[str, object]]:
    pairs = zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True)
    return [
        {
            "item_id": resolve_id(corpus, rankings.unknown_ids, position),
            "rank": rank,
            "score": score,
            "title": _find_title(corpus, position) if position < len(corpus) else "",
        }
        for rank, (position, score) in enumerate(pairs, start=1)
        if position != NOTHING
    ]


def _find_title(corpus: Corpus, position: int) -> str:
    return corpus.titles[position] if corpus.titles else ""
