"""The queries of traffic: the files are read once, and their searches grouped by what was searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from runner.datasets import files
from runner.datasets.files import NO_FIELDS
from runner.datasets.traffic.masking import OwnPatterns, build_mask
from runner.datasets.traffic.reading import read_traffic
from runner.datasets.traffic.searches import ServedSearch, Traffic, TrafficCollector
from runner.datasets.traffic.spans import IdRule, ServedDocuments, find_attribute, hash_name, normalise_text, parse_time

ATTRIBUTES = (
    "service.name", "service.version", "deployment.environment.name", "environment", "release",
    "gen_ai.data_source.id",
)  # fmt: skip
"""The attributes that are slices by default."""


def _check_time(value: str) -> str:
    try:
        parse_time(value)
    except ValueError:
        raise ValueError(f"{value} is not a time; write, for example, 2026-11-23 or 2026-11-23T08:00Z") from None
    return value


UtcTime = Annotated[str, AfterValidator(_check_time)]
"""A time in a setting, in UTC unless it names a zone."""


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
    masks: OwnPatterns = NO_FIELDS,
) -> Traffic:
    """Return the traffic of an MLflow server, or in a file, a folder or the files of a glob.

    It is read again only if a file has changed, and that of a server once. `names` are attributes that become slices,
    that of the `tenant` is hashed with the key `salt`, as persons are, and personal data in queries is masked.
    Raises `DatasetError`.
    """
    stats: tuple[tuple[Path | str, int, int], ...] = ((pattern, 0, 0),)
    if not pattern.startswith(("http://", "https://")):
        paths = files.matching(pattern, "path")
        stats = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    return _read_places(stats, rules, names, tenant, salt, None if masks is None else tuple(masks.items()))


@lru_cache(maxsize=1)
def _read_places(
    stats: tuple[tuple[Path | str, int, int], ...],
    rules: tuple[IdRule, ...],
    names: tuple[str, ...],
    tenant: str | None,
    salt: str,
    masks: tuple[tuple[str, str | None], ...] | None,
) -> Traffic:
    """Read files, or return what they contained when they were last read, unless they have changed."""

    def describe(context: Mapping[str, object]) -> dict[str, str]:
        own = {name: value for name in names if (value := find_attribute(context, name))}
        hidden = hash_name(find_attribute(context, tenant), salt) if tenant else ""
        return {**own, "tenant": hidden} if hidden else own

    mask = build_mask(None if masks is None else dict(masks))
    collector = TrafficCollector(ServedDocuments(rules), describe, lambda name: hash_name(name, salt), mask)
    return read_traffic([path for path, _, _ in stats], collector)
