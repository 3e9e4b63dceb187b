"""What retrievers of several stages note about each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueryLog:
    """The work for a query besides searches: its time in seconds, a note (plain values), figures to sum over queries.

    `settled` is false if something failed that may succeed next time.
    """

    seconds: float = 0.0
    note: Mapping[str, object] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    settled: bool = True
