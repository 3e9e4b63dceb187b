"""The entries of a store as tables and JSON, described by the parts of their keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import orjson
from rich.filesize import decimal

from runner.pages.numbers import DASH, duration, gist, number
from runner.pages.tables import Column, Table
from runner.store.base import Entry

LONGEST = 64
"""How many characters of settings are shown."""

CONTENT = frozenset({"corpus", "documents", "characters", "queries", "asked", "texts", "rows"})
"""The parts of keys that stand for documents and queries."""

_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
_OBJECT = re.compile(r"(\w+)\(.*\)", re.DOTALL)
_INNERMOST = re.compile(r"\([^()]*\)")


def size(n: float) -> str:
    """Return a number of bytes as text, in the units that settings take."""
    return decimal(round(n))


def describe_size(entries: Sequence[Entry]) -> str:
    """Return how many entries there are, and how large they are together."""
    noun = "entry" if len(entries) == 1 else "entries"
    return f"{len(entries):,} {noun}, {size(sum(entry.bytes for entry in entries))}"


def entries_table(entries: Iterable[Entry], now: float) -> Table:
    """Return what is kept: a row for each kind, dataset and sort of settings, the largest first."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.kind, _dataset(entry), _sort(entry.parts)), []).append(entry)
    columns = [
        Column("kind"),
        Column("dataset", least=12),
        Column("settings", least=20),
        Column("entries", number, numeric=True, spare=1),
        Column("size", size, numeric=True),
        Column("took", duration, numeric=True, spare=3),
        Column("age", _span, numeric=True, spare=4),
        Column("last used", _ago, numeric=True),
        Column("last run", gist, spare=2, least=12),
    ]
    rows = [_row(kind, dataset, group, now) for (kind, dataset, _), group in groups.items()]
    return Table(columns, sorted(rows, key=lambda row: (-row[4], row[:3])))


def damage_table(damaged: Mapping[Entry, str]) -> Table:
    """Return what is wrong with which entries."""
    columns = [Column("entry", least=32), Column("size", size, numeric=True), Column("problem", least=16)]
    return Table(columns, [[entry.place, entry.bytes, wrong] for entry, wrong in damaged.items()])


class WaitingFolder(Protocol):
    """A folder of results that wait to be logged."""

    @property
    def folder(self) -> Path:
        """Return where it is."""
        ...

    @property
    def results(self) -> int:
        """Return how many results it holds."""
        ...

    @property
    def bytes(self) -> int:
        """Return their size."""
        ...


def leftover_lines(waiting: Sequence[WaitingFolder], orphans: Sequence[Path]) -> list[str]:
    """Return a line for each folder of results that wait to be logged, and one for artifacts without a run."""
    lines = [
        f"{w.folder}: {w.results:,} {'result waits' if w.results == 1 else 'results wait'} to be logged, "
        f"{size(w.bytes)}; run the same command again to log them"
        for w in waiting
    ]
    if orphans:
        noun = "folder" if len(orphans) == 1 else "folders"
        lines.append(
            f"{orphans[0].parent}: {len(orphans):,} {noun} without a run, removed when the next "
            "evaluation or sweep starts"
        )
    return lines


def as_json(
    store: str,
    entries: Sequence[Entry],
    damaged: Mapping[Entry, str] | None,
    removed: Collection[Entry],
    waiting: Sequence[WaitingFolder] = (),
    orphans: Sequence[Path] = (),
) -> str:
    """Return all that is known of entries and leftovers; damage (null: none) only if that was looked for."""
    listed = [
        {
            "kind": entry.kind,
            "digest": entry.digest,
            "parts": entry.parts,
            "bytes": entry.bytes,
            "seconds": entry.seconds,
            "made": _moment(entry.made),
            "used": _moment(entry.used),
            "uses": [{**asdict(use), "at": _moment(use.at)} for use in entry.uses],
            **({} if damaged is None else {"damage": damaged.get(entry)}),
            "removed": entry in removed,
        }
        for entry in entries
    ]
    whole = {"store": str(store), "bytes": sum(entry.bytes for entry in entries), "entries": listed}
    whole["unlogged"] = [{"folder": str(w.folder), "results": w.results, "bytes": w.bytes} for w in waiting]
    whole["orphans"] = [str(folder) for folder in orphans]
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode()


def _row(kind: str, dataset: str, group: Sequence[Entry], now: float) -> list[Any]:
    last = max((use for entry in group for use in entry.uses), key=lambda use: use.at, default=None)
    return [
        kind,
        dataset,
        _settings(group),
        len(group),
        sum(entry.bytes for entry in group),
        sum(entry.seconds for entry in group),
        now - min(entry.made for entry in group),
        now - max(entry.used for entry in group),
        last.run if last else DASH,
    ]


def _dataset(entry: Entry) -> str:
    """Return the datasets that used an entry; where none did, its corpus."""
    names = sorted({use.dataset for use in entry.uses})
    corpus = entry.parts.get("corpus")
    return ", ".join(names) or (f"corpus {corpus[:8]}" if corpus else DASH)


def _telling(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a key that a person has set: neither documents and queries, nor what was left open."""
    telling = {name: value for name, value in parts.items() if name not in CONTENT and value != "None"}
    return {name: value[:8] if _FINGERPRINT.fullmatch(value) else value for name, value in telling.items()}


def _sort(parts: Mapping[str, str]) -> str:
    """Return what entries of one sort have in common: the classes of their settings, or else the settings."""
    telling = _telling(parts)
    classes = [match[1] for value in telling.values() if (match := _OBJECT.fullmatch(value))]
    return ", ".join(classes or (f"{name}={value}" for name, value in telling.items()))


def _settings(group: Sequence[Entry]) -> str:
    """Return the settings of entries of one sort, and how many there are where they differ."""
    distinct = {tuple(_telling(entry.parts).items()): None for entry in group}
    if len(distinct) > 1:
        return f"{len(distinct):,} of {_sort(group[0].parts)}"
    telling = _telling(group[0].parts).items()
    objects = [_brief(value) for _, value in telling if _OBJECT.fullmatch(value)]
    values = [f"{name}={value}" for name, value in telling if not _OBJECT.fullmatch(value)]
    return gist(", ".join(objects + values), LONGEST) or DASH


def _brief(shown: str) -> str:
    """Return an object's repr without the settings of what is within."""
    name, _, inside = shown.partition("(")
    while (less := _INNERMOST.sub("\N{HORIZONTAL ELLIPSIS}", inside[:-1]) + ")") != inside:
        inside = less
    return f"{name}({inside}"


def _span(seconds: float) -> str:
    """Return a long time in the largest unit that it fills."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:,.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _ago(seconds: float) -> str:
    return f"{_span(seconds)} ago"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
