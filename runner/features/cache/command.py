"""List, prune and verify the cache."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from omegaconf import DictConfig
from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.engines.postgres_tables import drop_table
from retrievers.work import kind_of
from runner.config.consent import Consent, shorten
from runner.config.objects import ConfigError, build, build_settings, suggestion
from runner.config.values import resolve_config
from runner.features.cache import report as report
from runner.pages import console
from runner.pages.progress import Status
from runner.store.base import Entry, WorkStore
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.leftovers import find_orphaned_artifacts, waiting_results

FAILED = 1
"""The exit code if an entry is damaged or cannot be removed."""

DROPPING = ("services", "secrets")
"""The words of `trust` with which tables are dropped: an entry of a store is data, and names the server."""

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

PREFIX = re.compile("[0-9a-f]{6,32}")
"""The beginning of a fingerprint, long enough to identify it."""


def _with_unit(units: Mapping[str, float], example: str) -> Callable[[object], object]:
    """Return a parser of numbers with a unit."""
    sizes = {unit.lower(): size for unit, size in units.items()}

    def parse(value: object) -> object:
        if value is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", str(value).lower())
        if not match or match[2] not in sizes:
            raise ValueError(f"should be a number followed by one of {', '.join(units)}, such as {example}")
        return float(match[1]) * sizes[match[2]]

    return parse


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class CacheSettings:
    """Which entries to select and what to do with them: see `conf/cache.yaml`."""

    kind: str | None = None
    dataset: str | None = None
    older_than: Annotated[float | None, BeforeValidator(_with_unit(SECONDS, "30d"))] = None
    max_size: Annotated[float | None, BeforeValidator(_with_unit(BYTES, "2GB"))] = None
    verify: bool = False
    remove: bool = False

    @property
    def has_filter(self) -> bool:
        """Return whether any setting restricts the selection."""
        return any(value is not None for value in (self.kind, self.dataset, self.older_than, self.max_size))


def main(cfg: DictConfig) -> int:
    """List the selected entries, and verify or remove them on request; return 1 for damage or failed removals."""
    config = resolve_config(cfg)
    own = build_settings(CacheSettings, config["cache"], "cache")
    if own.remove and not (own.has_filter or own.verify):
        raise ConfigError(
            "cache.remove=true: needs a filter, such as cache.older_than=30d or cache.dataset=NAME; to remove "
            "everything, add cache.older_than=0d"
        )
    store, now = open_store(store_settings(config)), time.time()
    present = store.list_entries()
    selection = select_entries(present, own, now)
    damage = _find_damage(store, selection) if own.verify else None
    doomed = selection if damage is None else list(damage)
    on_servers = _group_by_server(doomed) if own.remove and not own.verify else {}
    kept = {} if set(DROPPING).issubset(Consent.of(config).trust) else on_servers
    stay = {entry for entries in kept.values() for entry in entries}
    doomed = [entry for entry in doomed if entry not in stay]
    failures = _remove(store, doomed, own.verify) if own.remove else {}
    removed = [entry for entry in doomed if own.remove and entry not in failures]
    waiting, orphans = waiting_results(store.run_files), find_orphaned_artifacts(build(config["tracking"], "tracking"))
    console.document(lambda: report.as_json(store.location, selection, damage, removed, waiting, orphans))
    if damage is not None:
        _show_damage(selection, damage, removed, own)
    else:
        _show_entries(store.location, present, selection, removed, own, now)
    for line in report.leftover_lines(waiting, orphans):
        console.line(line)
    for entry, reason in failures.items():
        console.error(f"{entry.place}: cannot be removed ({reason})")
    for server, entries in kept.items():
        console.error(
            f"{store.location}: {report.describe_size(entries)} kept: the store names the server of the tables "
            f"({shorten(server)}), and a password may be sent to it; to drop the tables, add "
            f"'trust=[{','.join(DROPPING)}]'"
        )
    return FAILED if damage or failures or kept else 0


def select_entries(present: Sequence[Entry], own: CacheSettings, now: float) -> list[Entry]:
    """Return the entries that match all settings, in the order of `present`: least recently used first."""
    selection = [
        entry
        for entry in present
        if (own.kind is None or entry.kind == own.kind)
        and (own.dataset is None or _is_of(entry, own.dataset))
        and (own.older_than is None or now - entry.used >= own.older_than)
    ]
    if own.max_size is None:
        return selection
    total, count = sum(entry.bytes for entry in selection), 0
    while total > own.max_size:
        total -= selection[count].bytes
        count += 1
    return selection[:count]


def _is_of(entry: Entry, dataset: str) -> bool:
    """Return whether an entry was used for a dataset (its name or the start of a fingerprint) or made from it."""
    prints = {*entry.parts.values(), *(use.fingerprint for use in entry.uses)}
    return any(use.dataset == dataset for use in entry.uses) or (
        PREFIX.fullmatch(dataset) is not None and any(text.startswith(dataset) for text in prints)
    )


def _find_damage(store: WorkStore, selection: Sequence[Entry]) -> dict[Entry, str]:
    """Read entries in full, and return the damage of each damaged entry."""
    damage = {}
    with Status("cache") as status:
        for n, entry in enumerate(selection):
            status.note(f"verifying {n + 1:,} of {len(selection):,}")
            if (problem := store.find_damage(entry)) is not None:
                damage[entry] = problem
    return damage


def _group_by_server(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return the entries that stand for a table of a server, by the address in their manifests."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if (server := _find_server(entry)) is not None:
            groups.setdefault(server, []).append(entry)
    return groups


def _find_server(entry: Entry) -> str | None:
    """Return the address of the server with the table of an entry, None without a table."""
    return (
        entry.parts["server"] if kind_of(entry.kind).external and {"server", "schema"} <= entry.parts.keys() else None
    )


def _remove(store: WorkStore, doomed: Iterable[Entry], damaged: bool) -> dict[Entry, str]:
    """Remove entries and the leftovers of dead processes; return the reason for each entry that was not removed."""
    failures = {}
    for entry in doomed:
        try:
            if _find_server(entry) is not None and not damaged:
                drop_table(entry.parts, entry.digest)
            store.remove(entry, only_damaged=damaged)
        except OSError as error:
            failures[entry] = error.strerror or str(error)
        except RetrieverError as error:
            failures[entry] = str(error)
    store.tidy()
    return failures


def _show_entries(
    store: str,
    present: Sequence[Entry],
    selection: Sequence[Entry],
    removed: Sequence[Entry],
    own: CacheSettings,
    now: float,
) -> None:
    total = report.describe_size(present)
    if not present:
        console.line(f"{store}: the cache is empty")
    elif not own.has_filter:
        console.line(f"{store}: {total}")
    elif not selection:
        console.line(f"{store}: {total}; no entry matches{_suggest_filter(present, own)}")
    elif own.remove:
        console.line(f"{store}: removed {report.describe_size(removed)} of {total}")
    else:
        console.line(f"{store}: {report.describe_size(selection)} of {total}; add cache.remove=true to remove them")
    console.show_table(report.entries_table(selection, now))


def _suggest_filter(present: Sequence[Entry], own: CacheSettings) -> str:
    """Return a correction for an unknown kind or dataset, "" if both are known."""
    kinds = {entry.kind for entry in present}
    datasets = {use.dataset for entry in present for use in entry.uses}
    if own.kind is not None and own.kind not in kinds:
        return f" cache.kind={own.kind}; {suggestion(own.kind, kinds)}"
    if own.dataset is not None and not any(_is_of(entry, own.dataset) for entry in present):
        return f" cache.dataset={own.dataset}; {suggestion(own.dataset, datasets)}"
    return ""


def _show_damage(
    selection: Sequence[Entry], damage: Mapping[Entry, str], removed: Sequence[Entry], own: CacheSettings
) -> None:
    count = f"{len(damage):,} damaged" if damage else "none damaged"
    action = f", {len(removed):,} removed" if own.remove else "; cache.remove=true removes them" if damage else ""
    console.line(f"{report.describe_size(selection)}: {count}{action}")
    console.show_table(report.damage_table(damage))
