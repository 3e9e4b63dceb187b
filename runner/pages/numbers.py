"""Numbers and texts as people read them. Missing values are shown as a dash."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal

from runner.statistics.significance import SMALL_SAMPLE

DASH = "\N{EN DASH}"

LARGE = 1000
"""The smallest outcome or difference that is shown without decimals."""


def gist(text: str, size: int = 120) -> str:
    """Return a text in one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= size else f"{text[: size - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def missing(value: float | None) -> bool:
    """Return whether a number is None or NaN."""
    return value is None or math.isnan(value)


def score(value: float | None, digits: int = 3) -> str:
    """Return a measure's value as text; an outcome of 1,000 or more, such as tokens, has no decimals."""
    if value is None or missing(value):
        return DASH
    return f"{value:.{digits}f}" if abs(value) < LARGE else f"{value:,.0f}"


def score4(value: float | None) -> str:
    """Return a measure's value as text, finely enough to tell neighbours on a leaderboard apart."""
    return score(value, 4)


def format_signed(value: float | None, digits: int = 4) -> str:
    """Return a difference as text, with its sign; one of 1,000 or more has no decimals."""
    if value is None or missing(value):
        return DASH
    return f"{value:+.{digits}f}" if abs(value) < LARGE else f"{value:+,.0f}"


def p_value(value: float | None) -> str:
    """Return a probability as text, which does not read as a level (0.1, 0.05, 0.01) where it is below that."""
    if value is None or missing(value):
        return DASH
    if value < 0.001:
        return "<0.001"
    shown = f"{value:.3f}"
    if shown[-1] in "05" and 0.1 >= float(shown) > value:  # rounded up to what may be a level: cut instead
        return str(Decimal(str(value)).quantize(Decimal("0.0001"), ROUND_DOWN))
    return shown


def interval(bounds: tuple[float, float] | None) -> str:
    """Return a confidence interval as text."""
    return DASH if bounds is None or missing(bounds[0]) else f"[{bounds[0]:.3f}, {bounds[1]:.3f}]"


def difference_interval(value: tuple[float, float, int, int] | None) -> str:
    """Return the interval of a difference, given its ends, how many queries differ, and how many there are.

    Without an interval, it is the number of queries that differ.
    """
    if value is None:
        return DASH
    low, high, differing, n = value
    if not missing(low):
        return f"[{format_signed(low, 3)}, {format_signed(high, 3)}]"
    return f"{differing:,} of {n:,} differ" if n else DASH


def describe_difference_interval(confidence: float, shown: str, differing: int, n: int, unit: str = "queries") -> str:
    """Return the interval of a difference, which is `shown` as text, with its title; or, for "", why there is none."""
    return f"{interval_title(confidence)} {shown}" if shown else f"no interval: {differing:,} of {n:,} {unit} differ"


def interval_title(confidence: float, units: int | None = None) -> str:
    """Return the title of an interval, which says that the sample is small if the mean is over few `units`.

    A unit is a query, or a cluster of queries.
    """
    small = units is not None and 0 < units < SMALL_SAMPLE
    return f"{confidence * 100:g}% interval{', small sample' if small else ''}"


def percent(value: float | None) -> str:
    """Return a share as text."""
    return DASH if value is None or missing(value) else f"{value:.1%}"


def number(value: float | None) -> str:
    """Return a count, or any other number as text: below 1,000 and from a million in three significant digits."""
    if value is None or missing(value):
        return DASH
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if LARGE <= abs(value) < LARGE**2 else f"{value:.3g}"


def format_count(count: int, one: str, several: str) -> str:
    """Return a count with what is counted."""
    return f"{count:,} {one if count == 1 else several}"


def format_documents(count: int) -> str:
    """Return the size of a corpus as text; a dataset for a live index may have none."""
    return f"{count:,} documents" if count else "no corpus"


def milliseconds(value: float | None) -> str:
    """Return milliseconds as text, without the unit."""
    if value is None or missing(value):
        return DASH
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def in_seconds(value: float | None) -> str:
    """Return seconds as text, without the unit."""
    if value is None or missing(value):
        return DASH
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:,.1f}"


FORMATS: Mapping[str, Callable[[float | None], str]] = {
    "score": score,
    "percent": percent,
    "milliseconds": milliseconds,
    "seconds": in_seconds,
    "number": number,
}
"""The functions for the formats of a criterion."""


def duration(seconds: float | None) -> str:
    """Return a duration in words."""
    if seconds is None or missing(seconds):
        return DASH
    if seconds == 0:
        return "0 ms"
    if seconds < 0.9995:
        return f"{milliseconds(seconds * 1000)} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 10:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def observations(queries: int, clusters: int | None) -> str:
    """Return how many queries there are, and how many clusters of variants they form (None: each is its own)."""
    shown = f"{queries:,} {'query' if queries == 1 else 'queries'}"
    if clusters is None:
        return shown
    return f"{shown} in {clusters:,} {'cluster' if clusters == 1 else 'clusters'}"
