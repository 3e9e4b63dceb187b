"""Who may use a server on loopback: browsers that know its token. Other accounts of the machine reach the port, too.

The token is in the address that a command prints. The first request exchanges it for a cookie, so that it is in no
address after that. Other sites are kept out of the server, and scripts of others out of its pages.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
"""The address that only this machine reaches."""

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

_FIELD = "token"
"""The name of the token in an address."""

_REFUSAL = "This page needs the address with the token that the command printed when it started. Open that address.\n"


@dataclass(frozen=True)
class LoopbackAccess:
    """The address of a server, such as http://127.0.0.1:8002, and the token that a browser needs."""

    address: str
    token: str = field(default_factory=secrets.token_urlsafe, repr=False)

    @property
    def url(self) -> str:
        """Return the address that lets a browser in."""
        return f"{self.address}/?{urlencode({_FIELD: self.token})}"

    @property
    def port(self) -> str:
        """Return the port of the server."""
        return self.address.rpartition(":")[2]

    @property
    def origins(self) -> frozenset[str]:
        """Return the origins under which a browser on this machine reaches the server."""
        return frozenset({self.address, *(f"http://{host}:{self.port}" for host in (LOOPBACK, "localhost", "[::1]"))})

    @property
    def cookie_name(self) -> str:
        """Return the name of the cookie; the servers of a machine share their cookies, whatever their port."""
        return f"runner-{self.port}"

    def format_cookie(self) -> str:
        """Return the header that sets the cookie: unreadable for scripts, and not sent by other sites."""
        return f"{self.cookie_name}={self.token}; HttpOnly; Path=/; SameSite=Strict"

    def matches(self, token: str) -> bool:
        """Return whether a token is the right one, in a time that does not depend on it."""
        return secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


class LoopbackGuard:
    """Refuses requests for another host (DNS rebinding), without the token, and changes by another site (CSRF)."""

    def __init__(self, app: ASGIApp, access: LoopbackAccess) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of this origin, with strict headers on its response unless it sets its own."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        await (self._refuse(scope) or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> ASGIApp | None:
        """Return the response to a request that is not passed on: a refusal, or the cookie for a token."""
        headers = Headers(scope=scope)
        origin, here = headers.get("origin"), f"http://{headers.get('host', '')}"
        is_change = scope["method"] not in ("GET", "HEAD")
        site = headers.get("sec-fetch-site", "same-origin" if origin == here else "none")
        if here not in self._access.origins:
            return PlainTextResponse("This server only answers under its own address.\n", 421)
        if is_change and (origin != here or site != "same-origin"):
            return PlainTextResponse("Only pages of this server may change anything.\n", 403)
        token = parse_qs(scope["query_string"].decode("latin-1")).get(_FIELD, [""])[-1]
        if scope["path"] == "/" and not is_change and self._access.matches(token):
            return RedirectResponse("/", 303, {"set-cookie": self._access.format_cookie()})
        if not self._access.matches(cookie_parser(headers.get("cookie", "")).get(self._access.cookie_name, "")):
            return PlainTextResponse(_REFUSAL, 403)
        return None
