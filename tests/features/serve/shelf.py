"""A process with a search API for each corpus that it is given: PUT /NAME makes one, /NAME/search asks it."""

from __future__ import annotations

import json
import sys

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from retrievers.base import Corpus
from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from runner.web.search_api import RequestLimits, SearchService, create_app
from runner.web.server import bind_socket, format_address, serve

FEW = 8


class Shelf:
    """The APIs, of which the oldest goes when there are too many."""

    def __init__(self) -> None:
        self._apis: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, rest = scope["path"].lstrip("/").partition("/")
        if scope["method"] == "PUT":
            corpus = Corpus(**json.loads(await Request(scope, receive).body()))
            searcher = BM25().index(corpus, MemoryStore())
            self._apis[name] = create_app(SearchService(corpus, {"bm25": searcher}, RequestLimits(), 1))
            if len(self._apis) > FEW:
                del self._apis[next(iter(self._apis))]
            await Response(status_code=201)(scope, receive, send)
        else:
            await self._apis[name]({**scope, "path": f"/{rest}"}, receive, send)


if __name__ == "__main__":
    ours = bind_socket("127.0.0.1", 0)

    def ready() -> None:
        sys.stdout.write(f"{format_address(ours)}\n")
        sys.stdout.flush()

    serve(Shelf(), ours, ready, connections=10_000)
