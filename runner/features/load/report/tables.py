"""A load test as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from runner.features.load.load_test import LoadResult
from runner.features.load.measuring import BEHIND, PERCENTILES, RateResult
from runner.pages.numbers import milliseconds, number, percent, score4
from runner.pages.tables import Column, Table

_STOPPED = {
    "interrupted": "the test was interrupted",
    "load.max_requests": "the limit load.max_requests was reached",
    "load.max_seconds": "the limit load.max_seconds was reached",
    "load.max_failed": "more requests than load.max_failed allows failed or timed out",
}


def heading(result: LoadResult) -> str:
    """Return the title of the report."""
    return f"Load test of {result.target}"


def verdict(result: LoadResult) -> str:
    """Return the highest rate that the service kept up with, and where it saturates."""
    partial = f"Partial result: {_STOPPED[result.stopped]}. " if result.stopped else ""
    if not result.rates:
        return f"{partial}No rate was measured."
    if math.isnan(result.saturation):
        kept = f"It kept up with {result.highest_kept_up:g} requests/s"
        return f"{partial}{kept}; the rate at which it saturates was not reached."
    return f"{partial}It saturates at {result.saturation:.3g} answers/s."


def rates_table(result: LoadResult) -> Table:
    """Return a row for each rate."""
    columns = [
        Column("requests/s", number, numeric=True),
        Column("answers/s", number, numeric=True, spare=3),
        Column("kept up", _yes, spare=4),
        *(Column(f"{name.replace('_', '.')} ms", milliseconds, numeric=True) for name in PERCENTILES),
        Column("failed", percent, numeric=True, spare=1),
        Column("late", percent, numeric=True, spare=1),
        Column(f"{result.primary} under load", score4, numeric=True),
        Column("of answers", score4, numeric=True, spare=5),
    ]
    return Table(columns, [_list_values(rate) for rate in result.rates])


def _list_values(rate: RateResult) -> list[object]:
    return [
        rate.rate,
        rate.throughput,
        rate.kept_up,
        *(getattr(rate.latency, name) for name in PERCENTILES),
        rate.share(rate.failed),
        rate.share(rate.timed_out),
        rate.quality,
        rate.quality_answered,
    ]


def requests_table(result: LoadResult) -> Table:
    """Return the requests of each rate and how the generator sent them."""
    names = ("rate", "requests", "answered", "failed", "timed_out", "unfinished", "short", "waited")
    titles = ("requests/s", "requests", "answered", "failed", "late", "open at the end", "short", "waited")
    columns = [
        *(Column(title, number, numeric=True) for title in titles),
        Column("generator late, p99 ms", milliseconds, numeric=True),
        Column("its processor", percent, numeric=True),
    ]
    rows = [[*(getattr(rate, name) for name in names), rate.lag_p99, rate.cpu] for rate in result.rates]
    return Table(columns, rows)


def errors_table(result: LoadResult) -> Table:
    """Return the errors, most frequent first."""
    counts: dict[str, int] = {}
    for rate in result.rates:
        for error, count in rate.errors.items():
            counts[error] = counts.get(error, 0) + count
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return Table([Column("error", least=20), Column("requests", number, numeric=True)], ordered)


def describe_load(result: LoadResult) -> Iterator[str]:
    """Yield what the figures say, and how they were measured."""
    own = result.settings
    yield verdict(result)
    if late := [rate.rate for rate in result.rates if rate.is_limited_by_generator]:
        yield (
            f"At {', '.join(f'{rate:g}' for rate in late)} requests/s the generator sent requests late: the latencies "
            "are also its own. Run it on a machine with free processors, or lower the rate."
        )
    if any(rate.waited for rate in result.rates):
        yield "Some requests waited for a free connection; this is part of their latency."
    yield (
        f"{result.requests:,} requests were sent, with the queries of {result.dataset} ({result.split}, "
        f"{result.queries:,}), {'equally often' if own.frequency is None else f'as often as {own.frequency} says'}, "
        f"{'at random times (Poisson)' if own.arrivals == 'poisson' else 'at equal intervals'}. Latency counts from "
        f"when a request was due to its complete answer; a late one counts as {own.timeout_s:g} s, a failed one does "
        f"not count. {result.primary} under load is the mean over requests, with 0 for failed and late ones."
    )
    yield (
        "The service saturates at the most answers per second that were measured, if at any rate it fell behind: the "
        f"open requests grew, in the second half, by more than {BEHIND:.0%} of those that arrived, or more timed out."
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
