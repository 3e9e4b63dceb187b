"""List, prune and verify what is kept between runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from omegaconf import DictConfig, OmegaConf
from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass as settings

if TYPE_CHECKING:
    from runner.store.base import Entry, WorkStore

FAILED = 1
"""The exit code when something is damaged, or can't be removed."""

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

PREFIX = re.compile("[0-9a-f]{6,32}")
"""What of a fingerprint is enough to be sure."""


def _with_unit(units: Mapping[str, float], example: str) -> Callable[[object], object]:
    lower = {unit.lower(): size for unit, size in units.items()}

    def parse(value: object) -> object:
        if value is None:
            return None
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", str(value).lower())
        if not found or found[2] not in lower:
            raise ValueError(f"should be a number and one of {', '.join(units)}, such as {example}")
        return float(found[1]) * lower[found[2]]

    return parse


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class CacheSettings:
    """Which entries are meant, and what is done with them: see `conf/cache.yaml`."""

    kind: str | None = None
    dataset: str | None = None
    older_than: Annotated[float | None, BeforeValidator(_with_unit(SECONDS, "30d"))] = None
    max_size: Annotated[float | None, BeforeValidator(_with_unit(BYTES, "2GB"))] = None
    verify: bool = False
    remove: bool = False
    json: bool = False

    @property
    def choosing(self) -> bool:
        """Return whether it is said which entries are meant."""
        return any(value is not None for value in (self.kind, self.dataset, self.older_than, self.max_size))


def main(cfg: DictConfig) -> int:
    """Tell of the entries that are meant, and remove them if that is wanted; return 1 for damage."""
    from runner.config.objects import ConfigError, build
    from runner.config.values import store_path
    from runner.reports import console
    from runner.reports.cache import as_json, leftover_lines
    from runner.store.opening import open_store
    from runner.tracking.leftovers import find_orphaned_artifacts, waiting_results

    config: Any = OmegaConf.to_container(cfg, resolve=True)
    wanted: CacheSettings = build({**config["cache"], "_target_": f"{__name__}.CacheSettings"}, "cache")
    if wanted.remove and not (wanted.choosing or wanted.verify):
        raise ConfigError(
            "cache.remove=true: say what is to go: cache.older_than=30d, cache.dataset=NAME, ...; cache.older_than=0d "
            "is everything"
        )
    store, now = open_store(store_path(config)), time.time()
    kept = store.list_entries()
    meant = chosen(kept, wanted, now)
    damaged = _damaged(store, meant) if wanted.verify else None
    doomed = meant if damaged is None else list(damaged)
    stays = _remove(store, doomed, wanted.verify) if wanted.remove else {}
    removed = [entry for entry in doomed if wanted.remove and entry not in stays]
    waiting, orphans = waiting_results(store.run_files), find_orphaned_artifacts(build(config["tracking"], "tracking"))
    if wanted.json:
        console.line(as_json(store.location, meant, damaged, removed, waiting, orphans))
    elif damaged is not None:
        _tell_damage(meant, damaged, removed, wanted)
    else:
        _tell(store.location, kept, meant, removed, wanted, now)
    if not wanted.json:
        for line in leftover_lines(waiting, orphans):
            console.line(line)
    for entry, why in stays.items():
        console.error(f"{entry.place}: can't be removed ({why})")
    return FAILED if damaged or stays else 0


def chosen(kept: Sequence[Entry], wanted: CacheSettings, now: float) -> list[Entry]:
    """Return the entries that are meant, the least recently used first, in which order they are given."""
    meant = [
        entry
        for entry in kept
        if (wanted.kind is None or entry.kind == wanted.kind)
        and (wanted.dataset is None or _is_of(entry, wanted.dataset))
        and (wanted.older_than is None or now - entry.used >= wanted.older_than)
    ]
    if wanted.max_size is None:
        return meant
    total, goes = sum(entry.bytes for entry in meant), 0
    while total > wanted.max_size:
        total -= meant[goes].bytes
        goes += 1
    return meant[:goes]


def _is_of(entry: Entry, dataset: str) -> bool:
    """Tell whether an entry was used by a dataset, or made from its content."""
    prints = {*entry.parts.values(), *(use.fingerprint for use in entry.uses)}
    return any(use.dataset == dataset for use in entry.uses) or (
        PREFIX.fullmatch(dataset) is not None and any(text.startswith(dataset) for text in prints)
    )


def _damaged(store: WorkStore, meant: Sequence[Entry]) -> dict[Entry, str]:
    """Read entries, all of each, and return what is wrong with those that are damaged."""
    from runner.reports import console

    found = {}
    with console.Working("cache") as working:
        for n, entry in enumerate(meant):
            working.note(f"verifying {n + 1:,} of {len(meant):,}")
            if (wrong := store.find_damage(entry)) is not None:
                found[entry] = wrong
    return found


def _remove(store: WorkStore, doomed: Iterable[Entry], damaged: bool) -> dict[Entry, str]:
    """Remove entries, what processes that are gone left, and notes on what is gone; return what stays, and why."""
    stays = {}
    for entry in doomed:
        try:
            store.remove(entry, only_damaged=damaged)
        except OSError as error:
            stays[entry] = error.strerror or str(error)
    store.tidy()
    return stays


def _tell(
    store: str,
    kept: Sequence[Entry],
    meant: Sequence[Entry],
    removed: Sequence[Entry],
    wanted: CacheSettings,
    now: float,
) -> None:
    from runner.reports import console
    from runner.reports.cache import describe_size, entries_table

    if not kept:
        console.line(f"{store}: nothing is kept there")
    elif not wanted.choosing:
        console.line(f"{store}: {describe_size(kept)}")
    elif not meant:
        console.line(f"{store}: {describe_size(kept)}, none of which fits{_near(kept, wanted)}")
    elif wanted.remove:
        console.line(f"{store}: {describe_size(removed)} removed, of {describe_size(kept)}")
    else:
        console.line(f"{store}: {describe_size(meant)}, of {describe_size(kept)}; cache.remove=true removes them")
    console.show_table(entries_table(meant, now))


def _near(kept: Sequence[Entry], wanted: CacheSettings) -> str:
    """Return what may have been meant by a kind or a dataset of which there is nothing."""
    from runner.config.objects import suggestion

    kinds = {entry.kind for entry in kept}
    datasets = {use.dataset for entry in kept for use in entry.uses}
    if wanted.kind is not None and wanted.kind not in kinds:
        return f" cache.kind={wanted.kind}; {suggestion(wanted.kind, kinds)}"
    if wanted.dataset is not None and not any(_is_of(entry, wanted.dataset) for entry in kept):
        return f" cache.dataset={wanted.dataset}; {suggestion(wanted.dataset, datasets)}"
    return ""


def _tell_damage(
    meant: Sequence[Entry], damaged: Mapping[Entry, str], removed: Sequence[Entry], wanted: CacheSettings
) -> None:
    from runner.reports import console
    from runner.reports.cache import damage_table, describe_size

    found = f"{len(damaged):,} damaged" if damaged else "none damaged"
    done = f", {len(removed):,} removed" if wanted.remove else "; cache.remove=true removes them" if damaged else ""
    console.line(f"{describe_size(meant)}: {found}{done}")
    console.show_table(damage_table(damaged))
