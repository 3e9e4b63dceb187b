"""Middleware that keeps other sites out of a server on loopback, and scripts of others out of its pages."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would send "Origin: null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def list_origins(address: str) -> set[str]:
    """Return the origins under which a browser on this machine reaches an address such as http://127.0.0.1:8002."""
    port = address.rpartition(":")[2]
    return {address, *(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))}


class LoopbackGuard:
    """Refuses requests for another host (DNS rebinding) and changes that another site asks for (CSRF)."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app, self._origins = app, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of this origin, with strict headers on its response unless it sets its own."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        origin, here = headers.get("origin"), f"http://{headers.get('host', '')}"
        is_change = scope["method"] not in ("GET", "HEAD")
        site = headers.get("sec-fetch-site", "same-origin" if origin == here else "none")
        if here not in self._origins:
            refusal = PlainTextResponse("This server only answers under its own address.\n", 421)
            await refusal(scope, receive, send)
        elif is_change and (origin != here or site != "same-origin"):
            refusal = PlainTextResponse("Only pages of this server may change anything.\n", 403)
            await refusal(scope, receive, send)
        else:

            async def send_guarded(message: Message) -> None:
                if message["type"] == "http.response.start":
                    own = MutableHeaders(scope=message)
                    for name, value in _HEADERS.items():
                        own.setdefault(name, value)
                await send(message)

            await self._app(scope, receive, send_guarded)
