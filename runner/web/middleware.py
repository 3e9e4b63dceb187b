"""Middleware that reads the body of each request, up to a limit, and logs the request as a line of JSON."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runner.config.environment import hide_values

LOG_FIELDS = "log_fields"
"""The key for additional fields of the log line, in the scope of a request and in log records."""

log = logging.getLogger("runner.features.serve")


class RequestMiddleware:
    """Rejects a body that is too large with status 413, and logs each request: method, path, status, milliseconds."""

    def __init__(self, app: ASGIApp, body_bytes: int) -> None:
        self._app, self._body_bytes = app, body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request after reading its complete body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        scope[LOG_FIELDS] = {}

        async def send_logged(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            body = await self._read_body(receive)
            if body is None:
                refusal = build_refusal(413, f"the request body is larger than {self._body_bytes} bytes")
                await refusal(scope, receive, send_logged)
            else:
                await self._app(scope, _replay(body, receive), send_logged)
        finally:
            fields = {"method": scope["method"], "path": scope["path"], "status": status}
            spent = {"ms": round((time.perf_counter() - start) * 1000, 3)}
            log.info("request", extra={LOG_FIELDS: {**fields, **spent, **scope[LOG_FIELDS]}})

    async def _read_body(self, receive: Receive) -> bytes | None:
        """Return the body of a request; if it is too large, stop reading and return None."""
        body = bytearray()
        while len(body) <= self._body_bytes:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        return bytes(body) if len(body) <= self._body_bytes else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` function that first returns a body that has been read, then calls `receive`."""
    replayed = False

    async def receive_next() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_next


def build_reply(content: object, status: int = 200) -> Response:
    """Return a reply in ASCII JSON, which can represent any text, even lone surrogates."""
    return Response(json.dumps(content), status, media_type="application/json")


def build_refusal(status: int, detail: str) -> Response:
    """Return a refusal with its reason in one line."""
    return build_reply({"detail": detail}, status)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time, level, event, additional fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, LOG_FIELDS, {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return hide_values(json.dumps(line))
