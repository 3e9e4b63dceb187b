"""A search API that answers as a test tells it to, on a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CUT = -1
"""The status of an answer that is none: the connection is closed."""


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    parameters: Mapping[str, list[str]]


@dataclass(frozen=True)
class Answer:
    """A status, what is sent as JSON (or as it is, if bytes), and headers."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class FakeApi:
    """What it was asked, and how it answers searches; it is healthy, and has so many items."""

    search: Callable[[Asked], Answer]
    items: int = 3
    health: int = 200
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    @property
    def searches(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.path not in ("/health", "/items")]

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if asked.path == "/health":
            return Answer({"status": "ok"}, self.health)
        if asked.path == "/items":
            return Answer({"total": self.items})
        return self.search(asked)


def hits(*pairs: tuple[Any, Any]) -> Answer:
    """Return the answer of the default form that has these ids and scores."""
    return Answer({"results": [{"item_id": name, "score": score} for name, score in pairs]})


def in_turn(*answers: Answer) -> Callable[[Asked], Answer]:
    """Return what gives one answer after the other, and then the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def fake_api(search: Callable[[Asked], Answer], port: int = 0, **how: Any) -> Iterator[FakeApi]:
    """Run an API until the block ends, on a free port unless one is given."""
    api = FakeApi(search, **how)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            address = urlsplit(self.path)
            asked = Asked(
                self.command, address.path, dict(self.headers), json.loads(body or b"null"), parse_qs(address.query)
            )
            answer = api.answer(asked)
            if answer.status == CUT:
                self.close_connection = True
                return
            content = answer.content if isinstance(answer.content, bytes) else json.dumps(answer.content).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(content)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_any

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
