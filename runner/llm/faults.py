"""Classify faults of requests to models: whether and when to retry, and what they cost.

OpenAI's and Anthropic's SDKs use the same names for their errors, so one function handles both.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from retrievers.excerpts import shorten_text
from retrievers.services.retry import backoff, parse_retry_after

SHOWN = 300
"""How many characters of an error or a reply a message quotes."""

LONGEST_WAIT_S = 120.0
"""The longest wait that a server may request; a longer one is a failure."""

RETRYABLE = {408: "timeout", 409: "conflict", 429: "rate_limited"}
"""The retryable statuses below 500, with their kind; as in the SDKs of OpenAI and Anthropic, all others are from 500.

A search API is retried on fewer (`retrievers.services.connection.BUSY`): its 500 is mostly about a query that
fails each time.
"""

NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
"""OpenAI's codes for a 429 that waiting does not resolve."""

LASTING = frozenset({"refusal", "empty", "request", "denied"})
"""The kinds of fault that depend on the question, so that asking again would fail in the same way."""


class Fault(Exception):
    """A request without an answer.

    If `again` is true, it may be retried, after `after_s` seconds if the server gives a time; if `final` is true, every
    other request will fail too. `tokens` are those in and out, None if they are unknown because the connection was
    lost.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        again: bool = False,
        final: bool = False,
        after_s: float | None = None,
        tokens: tuple[int, int] | None = (0, 0),
    ) -> None:
        super().__init__(message)
        self.kind, self.again, self.final, self.after_s, self.tokens = kind, again, final, after_s, tokens


def fault_of(error: Exception) -> Fault:
    """Return the fault for an SDK's error, or for an answer that it could not read."""
    if isinstance(error, UnicodeError):
        return Fault("request", f"the question cannot be sent ({error})")
    status = getattr(error, "status_code", None)
    if status is not None and status >= 400:
        return fault_of_status(status, getattr(error, "body", None), _headers(error), str(error))
    causes = {type(cause).__name__ for cause in _causes(error)}
    if "APITimeoutError" in causes:
        if causes & {"ConnectTimeout", "PoolTimeout"}:
            return Fault("unreachable", "no connection within the time limit", again=True)
        return Fault("timeout", "no answer within the time limit", again=True, tokens=None)
    if "ConnectError" in causes:
        return Fault("unreachable", f"no connection ({_innermost(error)})", again=True)
    if "APIConnectionError" in causes:
        return Fault("connection", f"connection lost ({_innermost(error)})", again=True, tokens=None)
    return fault_of_form(error)


def fault_of_status(status: int, body: object, headers: Mapping[str, str], text: str) -> Fault:
    """Return the fault for a reply with a status of at least 400; `text` is quoted if it has no message."""
    message = f"{status}: {shorten_text(_message(body, text), SHOWN)}"
    body = body if isinstance(body, Mapping) else {}
    inner = body.get("error") if isinstance(body.get("error"), Mapping) else body
    code = str(inner.get("code") or inner.get("type") or "") if isinstance(inner, Mapping) else ""
    if code in NO_QUOTA:
        return Fault("quota", message, final=True)
    if code == "content_filter":  # by Azure, for a question
        return Fault("refusal", message)
    if status in RETRYABLE or status >= 500:
        return Fault(RETRYABLE.get(status, "server"), message, again=True, after_s=parse_retry_after(headers))
    if status in (401, 403):
        return Fault("denied", message, final=status == 401)  # 403 may be about this question only
    return Fault("not_found", message, final=True) if status == 404 else Fault("request", message)


def fault_of_form(reply: object) -> Fault:
    """Return the fault of a reply in an unexpected form, which may be retried."""
    return Fault("malformed", f"unexpected form of reply ({shorten_text(str(reply), SHOWN)})", again=True, tokens=None)


def _message(body: object, text: str) -> str:
    for key in ("error", "message", "detail"):
        body = body.get(key, body) if isinstance(body, Mapping) else body
    return body if isinstance(body, str) and body.strip() else text


def _headers(error: Any) -> Mapping[str, str]:  # noqa: ANN401 (either SDK's error)
    headers: Mapping[str, str] = error.response.headers
    return headers


def draw_wait(fault: Fault, attempt: int, first_s: float, seed: str) -> float:
    """Return the seconds to wait after an attempt: the time that the server requests plus a step of the back-off.

    The step is less a jitter of up to half of it, drawn with the seed.
    """
    step = backoff(first_s, attempt)
    jittered = step * (0.5 + random.Random(f"{seed} {attempt}").random() / 2)  # noqa: S311 (no secret)
    return jittered if fault.after_s is None else fault.after_s + jittered


def _causes(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


def _innermost(error: Exception) -> str:
    return shorten_text(str(_causes(error)[-1]) or str(error), SHOWN)
