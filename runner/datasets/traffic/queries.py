"""The queries of traffic: the files are read once, and their searches grouped by what was searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from runner.datasets import files
from runner.datasets.traffic.reading import read_traffic
from runner.datasets.traffic.searches import ServedSearch, Traffic
from runner.datasets.traffic.spans import IdRule, find_attribute, hash_name, normalise_text

ATTRIBUTES = (
    "service.name", "service.version", "deployment.environment.name", "environment", "release",
    "gen_ai.data_source.id",
)  # fmt: skip
"""The attributes that are slices by default."""


@dataclass(frozen=True)
class TrafficQuery:
    """A query of the traffic with its searches by time, at least one; `text_id` is the same for the same text."""

    id: str
    text_id: str
    text: str
    searches: Sequence[ServedSearch]

    @property
    def served(self) -> ServedSearch:
        """Return the newest search whose ranking is known, else the newest."""
        return next((search for search in reversed(self.searches) if search.hits is not None), self.searches[-1])


def group_searches(traffic: Traffic, by_text: bool) -> list[TrafficQuery]:
    """Return the queries of the searches that have one: each text, or each search; the text is the newest spelling."""
    groups: dict[str, list[ServedSearch]] = {}
    for search in traffic.searches:
        if search.query:
            groups.setdefault(hash_query(search.query), []).append(search)
    if by_text:
        return [TrafficQuery(name, name, own[-1].query, own) for name, own in groups.items()]
    return [
        TrafficQuery(f"{name}.{search.span.hex()}", name, search.query, [search])
        for name, own in groups.items()
        for search in own
    ]


@lru_cache(maxsize=1 << 16)
def hash_query(text: str) -> str:
    """Return the id of a query: the same for texts that differ only in case and white space, in any traffic."""
    return f"q{sha256(normalise_text(text).encode(errors='replace')).hexdigest()[:16]}"


def format_week(time_ns: int) -> str:
    """Return the ISO week of a time, such as 2026-W48; "" if the time is unknown."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%G-W%V") if time_ns else ""


def format_time(time_ns: int) -> str:
    """Return a time to the second in ISO format; "" if the time is unknown."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).isoformat() if time_ns else ""


def load_traffic(
    pattern: str,
    rules: tuple[IdRule, ...],
    names: tuple[str, ...] = ATTRIBUTES,
    tenant: str | None = None,
    salt: str = "",
) -> Traffic:
    """Return the traffic in a file, a folder or the files of a glob, which are read again only if they have changed.

    `names` are attributes that become slices, and that of the `tenant` is hashed with the key `salt`, as persons are.
    Raises `DatasetError`.
    """
    paths = files.matching(pattern, "path")
    stats = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    return _read_files(stats, rules, names, tenant, salt)


@lru_cache(maxsize=1)
def _read_files(
    stats: tuple[tuple[str, int, int], ...],
    rules: tuple[IdRule, ...],
    names: tuple[str, ...],
    tenant: str | None,
    salt: str,
) -> Traffic:
    """Read files, or return what they contained when they were last read, unless they have changed."""

    def describe(context: Mapping[str, object]) -> dict[str, str]:
        own = {name: value for name in names if (value := find_attribute(context, name))}
        hidden = hash_name(find_attribute(context, tenant), salt) if tenant else ""
        return {**own, "tenant": hidden} if hidden else own

    return read_traffic([Path(path) for path, _, _ in stats], rules, describe, lambda name: hash_name(name, salt))
