"""How long to wait before a request is sent again: steps that double, and what a server asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_BACKOFF_S = 60.0
"""The longest step of the back-off."""


def backoff(first_s: float, attempt: int) -> float:
    """Return the seconds to wait after an attempt, counted from 0: `first_s`, doubled each time up to the longest."""
    return min(first_s * 2.0**attempt, LONGEST_BACKOFF_S)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from a number or a date; None if it does not ask.

    `headers` are in lower case, or found in any case (RFC 9110, 10.2.3). OpenAI adds a header in milliseconds.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):  # not a date, or a number out of range
        return None
    until = until.replace(tzinfo=until.tzinfo or UTC)  # dates in HTTP are in GMT, with or without the suffix (5.6.7)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)
