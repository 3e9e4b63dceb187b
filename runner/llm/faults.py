"""What goes wrong with a request to a language model, told apart: what may be tried again, when, and what it cost.

OpenAI's and Anthropic's SDKs name their errors alike, so one reading does for both.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_BACKOFF_S = 60.0
"""The back-off doubles up to here."""

LONGEST_WAIT_S = 120.0
"""A server that wants more patience than this has failed."""

TRY_AGAIN = {408: "timeout", 409: "conflict", 429: "rate_limited"}
"""What statuses below 500 may pass, and what they are called."""

NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
"""OpenAI's words for a 429 that no patience cures."""

LASTING = frozenset({"refusal", "empty", "request", "denied"})
"""The kinds of fault that are about the question, which would go the same another time."""


class Fault(Exception):
    """A request that brought no answer.

    `again` says that another try may, after `after_s` where the server says so; `final` that no request will. `tokens`
    are what it took in and gave out; None where the line was lost, so that nobody knows.
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
    """Return what an SDK's error, or an answer that it could not read, means."""
    if isinstance(error, UnicodeError):
        return Fault("request", f"the question cannot be sent ({error})")
    status = getattr(error, "status_code", None)
    if status is not None and status >= 400:
        return _refused(error, status)
    causes = {type(each).__name__ for each in _causes(error)}
    if "APITimeoutError" in causes:
        if causes & {"ConnectTimeout", "PoolTimeout"}:
            return Fault("unreachable", "cannot be reached in time", again=True)
        return Fault("timeout", "gave no answer in time", again=True, tokens=None)
    if "ConnectError" in causes:
        return Fault("unreachable", f"cannot be reached ({_innermost(error)})", again=True)
    if "APIConnectionError" in causes:
        return Fault("connection", f"the connection was lost ({_innermost(error)})", again=True, tokens=None)
    return Fault("malformed", f"the answer is not of the expected form ({_short(str(error))})", again=True, tokens=None)


def _refused(error: Any, status: int) -> Fault:  # noqa: ANN401 (either SDK's error)
    said = f"{status}: {_short(_message(error))}"
    body = error.body if isinstance(error.body, Mapping) else {}
    inner = body.get("error") if isinstance(body.get("error"), Mapping) else body
    code = str(inner.get("code") or inner.get("type") or "") if isinstance(inner, Mapping) else ""
    if code in NO_QUOTA:
        return Fault("quota", said, final=True)
    if code == "content_filter":  # Azure's, of a question
        return Fault("refusal", said)
    if status in TRY_AGAIN or status >= 500:
        return Fault(TRY_AGAIN.get(status, "server"), said, again=True, after_s=_after(error.response.headers))
    if status in (401, 403):
        return Fault("denied", said, final=status == 401)  # 403 may be about the question alone
    return Fault("not_found", said, final=True) if status == 404 else Fault("request", said)


def _message(error: Any) -> str:  # noqa: ANN401 (either SDK's error)
    body = error.body
    for key in ("error", "message"):
        body = body.get(key, body) if isinstance(body, Mapping) else body
    return body if isinstance(body, str) and body.strip() else str(error)


def _after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server wants to be left alone: a number of them, or a date (RFC 9110, 10.2.3)."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(until.replace(tzinfo=until.tzinfo or UTC).timestamp() - time.time(), 0.0)  # such dates are GMT
    except ValueError:
        return None


def backoff(fault: Fault, attempt: int, first_s: float, seed: str) -> float:
    """Return how long to wait after a try, in seconds: what the server wants, and at least half a doubling step.

    Steps are `first_s` times 2 to the number of tries before, and the jitter, drawn with the seed, takes up to half.
    """
    step = min(first_s * 2.0**attempt, LONGEST_BACKOFF_S)
    jittered = step * (0.5 + random.Random(f"{seed} {attempt}").random() / 2)  # noqa: S311 (no secret)
    return jittered if fault.after_s is None else fault.after_s + jittered


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _innermost(error: Exception) -> str:
    return _short(str(_causes(error)[-1]) or str(error))


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
