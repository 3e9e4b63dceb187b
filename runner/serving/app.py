"""The routes of the search API: /search, /items, /health, and the OpenAPI page that says so.

What is malformed, too large or unknown is refused with a status of 4xx, in one line, and changes nothing: there is
nothing that a request can change. How a searcher finds things is not known here.
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
from runner.serving.edge import TOLD, Edge, refused, reply
from runner.serving.patience import CONNECTIONS, REQUEST_S

MOST_ITEMS = 1000
"""How many items are listed at a time."""

SHOWN = 200
"""How many characters of what is wrong are part of a refusal: a client may have made them."""


@settings(frozen=True, config={"extra": "forbid"})
class Limits:
    """What a request may ask at most, how long it may take to arrive, and how many connections are open at a time."""

    body_bytes: int = Field(default=1 << 18, ge=1)
    query_characters: int = Field(default=20_000, ge=1)
    top_k: int = Field(default=1000, ge=1)
    request_s: float = Field(default=REQUEST_S, gt=0, allow_inf_nan=False)
    connections: int = Field(default=CONNECTIONS, ge=1)


@dataclass(frozen=True, eq=False)
class Served:
    """A corpus, and the searchers over it by the search type that asks for them; the first is the default.

    `threads` is how many searches are done at a time. Those of most retrievers use all processors by themselves, and a
    model's tokenizer can't be asked by two threads; those that wait for another service gain by more.
    """

    corpus: Corpus
    searchers: Mapping[str, Searcher]
    limits: Limits
    threads: int


def _whole(value: object) -> object:
    """Return a number without a fraction as the integer that it is in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("Input should be false")
    return value


class SearchRequest(BaseModel, extra="forbid", strict=True):
    """What is searched; a null `search_type` is the default one. There are no answers, only results."""

    query: str
    top_k: int = 10
    search_type: str | None = None
    include_answer: Annotated[Literal[False], BeforeValidator(_boolean)] = False  # which 0 would equal


class Hit(BaseModel):
    """An item that was found; a higher score is better."""

    item_id: str
    rank: int
    score: float
    title: str


class Found(BaseModel):
    """What a search found, best first."""

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
    """Some of the items, in the order of the corpus, and how many there are."""

    total: int
    items: list[Item]


class Health(BaseModel):
    """That the service is ready, and what for."""

    status: Literal["ok"]
    items: int
    search_types: list[str]


class Refusal(BaseModel):
    """What is wrong."""

    detail: str


def application(served: Served) -> FastAPI:
    """Return the API as an ASGI application."""
    app = FastAPI(
        title="Search",
        summary=f"{', '.join(served.searchers)} over {len(served.corpus):,} items",
        responses={413: {"model": Refusal}},
    )
    app.add_middleware(Edge, body_bytes=served.limits.body_bytes)
    app.add_exception_handler(RequestValidationError, _unprocessable)
    refusals: dict[int | str, dict[str, Any]] = {422: {"model": Refusal}}
    asked = _request_model(served)
    body = {"required": True, "content": {"application/json": {"schema": asked.model_json_schema()}}}
    searching = ThreadPoolExecutor(served.threads, "search")
    corpus = served.corpus

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Say that the service is ready."""
        return reply({"status": "ok", "items": len(corpus), "search_types": list(served.searchers)})

    @app.get("/items", response_model=Items, responses=refusals)
    async def items(
        limit: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 10, offset: Annotated[int, Query(ge=0)] = 0
    ) -> Response:
        """List items."""
        listed = [
            {"item_id": corpus.ids[position], "title": _title(corpus, position), "text": corpus.texts[position]}
            for position in range(offset, min(offset + limit, len(corpus)))
        ]
        return reply({"total": len(corpus), "items": listed})

    @app.post(
        "/search", response_model=Found, responses={**refusals, 502: {"model": Refusal}},
        openapi_extra={"requestBody": body},
    )  # fmt: skip
    async def search(request: Request) -> Response:
        """Search the items."""
        try:
            wanted = asked.model_validate_json(await request.body())
        except ValidationError as error:
            return _unprocessable(request, error)
        search_type = wanted.search_type or next(iter(served.searchers))
        ask = partial(_timed, served.searchers[search_type], wanted.query, wanted.top_k)
        rankings, seconds = await asyncio.get_running_loop().run_in_executor(searching, ask)
        told = {"search_type": search_type, "query_characters": len(wanted.query), "top_k": wanted.top_k}
        request.scope[TOLD].update(told, search_ms=round(seconds * 1000, 3))
        if rankings.errors:  # of a service that the retriever asks, or of a step of it
            return refused(502, rankings.errors[0])
        results = _results(rankings, corpus)
        request.scope[TOLD]["results"] = len(results)
        counted = {"total_results": len(results), "retrieval_time_ms": seconds * 1000}
        return reply({"query": wanted.query, "search_type": search_type, "results": results, **counted})

    return app


def _request_model(served: Served) -> type[SearchRequest]:
    """Return a search request within the limits, so that the OpenAPI page says them."""
    limits, names = served.limits, tuple(served.searchers)
    query: Any = (str, Field(max_length=limits.query_characters))
    top_k: Any = (Annotated[int, BeforeValidator(_whole)], Field(default=min(10, limits.top_k), ge=1, le=limits.top_k))
    search_type: Any = (Literal[names] | None, None)
    return create_model("SearchRequest", __base__=SearchRequest, query=query, top_k=top_k, search_type=search_type)


def _unprocessable(request: Request, error: Exception) -> Response:
    """Say the first thing that is wrong with a request, without its value."""
    assert isinstance(error, (ValidationError, RequestValidationError))  # noqa: S101 (it is registered for these)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query") or len(first["loc"]) == 1)
    return refused(422, f"{place[:SHOWN]}: {first['msg'][:SHOWN]}".removeprefix(": "))


def _timed(searcher: Searcher, query: str, k: int) -> tuple[Rankings, float]:
    start = time.perf_counter()
    return searcher.search([query], k), time.perf_counter() - start


def _results(rankings: Rankings, corpus: Corpus) -> list[dict[str, object]]:
    pairs = zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True)
    return [
        {
            "item_id": resolve_id(corpus, rankings.unknown_ids, position),
            "rank": rank,
            "score": score,
            "title": _title(corpus, position) if position < len(corpus) else "",
        }
        for rank, (position, score) in enumerate(pairs, start=1)
        if position != NOTHING
    ]


def _title(corpus: Corpus, position: int) -> str:
    return corpus.titles[position] if corpus.titles else ""
