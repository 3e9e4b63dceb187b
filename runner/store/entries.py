"""Entries of a store on disk: write, read, check, list and remove them, and record their use.

An entry is a folder, `<store>/<kind>/<digest>`, with a .npy file for each array and a manifest of their sizes and
checksums, which has its own checksum. An entry is written to a temporary folder beside it and renamed into place, and
renamed again before it is removed. So a folder with the name of an entry is complete, no matter when a process was
killed. Damage by a power failure, a failing disk or edits is detected when an entry is read. Uses are recorded in
`<store>/.used`, in a file for each process, to which only that process appends.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from retrievers.store import ENGINE_BYTES, Arrays, Key
from runner.store import seals
from runner.store.base import Entry, EntryUse
from runner.store.seals import Damaged, Seals, verify
from runner.system.processes import holder, is_gone

LEFTOVER_S = 24 * 3600
"""The age in seconds from which the process of an unfinished entry is assumed to have ended."""

MANIFEST = "manifest.json"

USES = ".used"

_DIGEST = re.compile(r"[0-9a-f]{32}")
_LOCK = re.compile(rf"{_DIGEST.pattern}\.lock")
_ASIDE = re.compile(rf"\.{_DIGEST.pattern}\.(.+)\.[0-9a-f]{{8}}")


SavedCost = tuple[str, float, int | None, float]
"""A cost as in a manifest: kind, seconds, bytes and money."""


@dataclass(frozen=True)
class Manifest:
    """The content of an entry: its key, the size and checksum of each array, and costs by digest.

    `digest` is "" in entries of version 0.2, whose embeddings were paid for.
    """

    kind: str
    parts: Mapping[str, str]
    arrays: Mapping[str, tuple[int, int]]
    costs: Mapping[str, SavedCost]
    digest: str = ""

    def check_place(self, place: Path) -> None:
        """Raise `Damaged` if the entry belongs elsewhere: `place` is its folder, or the name of its object."""
        kind, digest = _folder_of_kind(self.kind), self.digest or place.stem
        if (kind, digest) != (place.parent.name, place.stem):
            raise Damaged(f"it is a copy of {kind}/{digest}")


def folder_of(store: Path, key: Key) -> Path:
    """Return the folder of a key's entry."""
    return store / _folder_of_kind(key.kind.name) / key.digest


def _folder_of_kind(kind: str) -> str:
    return kind.replace(" ", "_")


def settle(aside: Path, folder: Path) -> None:
    """Rename a complete entry into place; an existing entry of the same key stays."""
    try:
        aside.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def write(folder: Path, key: Key, arrays: Arrays, costs: Mapping[str, SavedCost]) -> None:
    """Write an entry to a temporary folder, manifest last, and rename it; an existing entry of the same key stays."""
    aside = aside_of(folder)
    try:
        aside.mkdir(parents=True)
        saved = {name: _save(aside / f"{name}.npy", array) for name, array in arrays.items()}
        identity = {"kind": key.kind.name, "digest": key.digest, "parts": dict(key.parts)}
        manifest = {**identity, "arrays": saved, "costs": costs}
        (aside / MANIFEST).write_bytes(seals.dumps(manifest, orjson.OPT_INDENT_2))
        settle(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def read(folder: Path, key: Key, verified: Seals) -> tuple[Arrays, Manifest]:
    """Return the arrays of an entry, large ones memory-mapped, and its manifest; `verified` are files already checked.

    Raises `FileNotFoundError` if there is no entry, `Damaged` also for the entry of another key and for arrays that
    cannot be those of the key, and `OSError` for files that cannot be read.
    """
    raw = _raw(folder)
    manifest = parse_manifest(raw)
    manifest.check_place(folder)
    if manifest.parts != dict(key.parts):
        differing = sorted(name for name, _ in manifest.parts.items() ^ dict(key.parts).items())
        raise Damaged(f"it was built from other parts: {', '.join(dict.fromkeys(differing))}")
    arrays = {}
    for name, (size, crc32) in manifest.arrays.items():
        file = folder / f"{name}.npy"
        try:
            verified.check(file, size, crc32)
            array = np.load(file, mmap_mode="r" if size >= seals.MAPPED_BYTES else None, allow_pickle=False)
        except FileNotFoundError:
            raise Damaged(f"{file.name} is missing") from None
        except (ValueError, EOFError) as error:
            raise Damaged(str(error) if isinstance(error, Damaged) else f"{file.name}: {error}") from error
        array.flags.writeable = False
        arrays[name] = array.view(np.ndarray)
    if _raw(folder) != raw:
        raise Damaged("the entry was replaced while it was read")
    if key.check is not None:
        try:
            key.check(arrays)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Damaged(f"{type(error).__name__}: {error}") from error
    return arrays, manifest


def find_damage(folder: Path, place: Path | None = None) -> str | None:
    """Read an entry in full and return what is damaged; None if it is intact or was removed.

    `place` is where the entry belongs, if not in this folder.
    """
    try:
        manifest = parse_manifest(_raw(folder))
        manifest.check_place(place or folder)
        for name, (size, crc32) in manifest.arrays.items():
            verify(folder / f"{name}.npy", size, crc32)
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing" if folder.exists() else None
    except OSError as error:
        return f"the entry cannot be read ({error.strerror or error})"
    except ValueError as error:
        return str(error)
    return None


def remove(folder: Path) -> None:
    """Remove an entry atomically; arrays that other processes have mapped stay valid. Raises `OSError`."""
    with suppress(FileNotFoundError):
        shutil.rmtree(_take(folder), ignore_errors=True)


def remove_damaged(folder: Path) -> str | None:
    """Remove an entry if it is damaged and return what was damaged; an entry that was rebuilt in the meantime stays."""
    try:
        aside = _take(folder)
    except FileNotFoundError:
        return None
    if (wrong := find_damage(aside, folder)) is None:
        with suppress(OSError):  # fails if another process has written the entry, which is just as good
            aside.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)
    return wrong


def tidy(kind: Path) -> None:
    """Remove the unfinished entries and the locks that dead processes left behind in the folder of a kind."""
    for left in kind.glob("*.*"):
        with suppress(OSError):
            if (aside := _ASIDE.fullmatch(left.name)) and _is_left(left, aside[1]):
                shutil.rmtree(left)
            elif _LOCK.fullmatch(left.name) and _is_left(
                left, left.read_text(encoding="utf-8", errors="replace").partition(" ")[0]
            ):
                left.unlink()


def list_entries(store: Path, *kinds: str) -> list[Entry]:
    """Return the entries of a store, least recently used first; with kinds, only those of these."""
    uses, wanted = _uses(store), {_folder_of_kind(kind) for kind in kinds}
    entries = []
    for folder in _folders(store):
        if wanted and folder.parent.name not in wanted:
            continue
        with suppress(FileNotFoundError):  # another process may remove it
            entries.append(_entry(folder, tuple(uses.get(folder.name, ()))))
    return sorted(entries, key=lambda entry: (entry.used, entry.place))


def note_use(store: Path, writer: str, use: EntryUse, digests: Iterable[str]) -> None:
    """Append a use of entries to the writer's own file. An unfinished line does not affect other lines."""
    (store / USES).mkdir(parents=True, exist_ok=True)
    with (store / USES / f"{writer}.jsonl").open("ab", buffering=0) as file:
        file.write(format_note(use, digests))


def format_note(use: EntryUse, digests: Iterable[str]) -> bytes:
    """Return a use of entries as a line of a file of uses."""
    content = {"at": use.at, "dataset": use.dataset, "fingerprint": use.fingerprint, "run": use.run}
    return b"\n" + orjson.dumps({**content, "entries": list(digests)}) + b"\n"


def forget_uses(store: Path) -> None:
    """Remove the files of uses whose entries have all been removed."""
    kept = {folder.name for folder in _folders(store)}
    for file in (store / USES).glob("*.jsonl"):
        with suppress(OSError):
            if not any(kept.intersection(digests) for _, digests in parse_notes(file.read_bytes())):
                file.unlink()


class _Summed:
    """A file that keeps the size and the checksum of the data written so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size, self.crc32 = file, 0, 0

    def write(self, data: bytes) -> int:
        self.size, self.crc32 = self.size + len(data), zlib.crc32(data, self.crc32)
        return self._file.write(data)


def _save(file: Path, array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Write an array and return the size and the checksum of its file."""
    with file.open("wb") as opened:
        summed = _Summed(opened)
        np.save(summed, array, allow_pickle=False)
        if summed.size > seals.SEALED_BYTES:
            opened.flush()
            os.fsync(opened.fileno())
    return summed.size, summed.crc32


def aside_of(folder: Path) -> Path:
    """Return a unique path beside an entry; it contains the name of this process."""
    return folder.with_name(f".{folder.name}.{holder()}.{uuid.uuid4().hex[:8]}")


def _take(folder: Path) -> Path:
    """Rename an entry to a temporary name, so that others see it complete or not at all."""
    aside = aside_of(folder)
    folder.rename(aside)
    return aside


def _is_left(thing: Path, maker: str) -> bool:
    return is_gone(maker) or time.time() - thing.stat().st_mtime > LEFTOVER_S


def _raw(folder: Path) -> bytes:
    try:
        return (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        if folder.exists():
            raise Damaged(f"{MANIFEST} is missing") from None
        raise


def parse_manifest(raw: bytes) -> Manifest:
    """Return the manifest from the content of its file; raises `Damaged`."""
    try:
        return Manifest(**seals.loads(raw))
    except (ValueError, TypeError) as error:
        raise Damaged(f"{MANIFEST}: {error}") from error


def _folders(store: Path) -> Iterator[Path]:
    """Yield the folders of entries and skip all others."""
    for folder in sorted(store.glob("*/*/")):
        if _DIGEST.fullmatch(folder.name):
            yield folder


def _entry(folder: Path, uses: tuple[EntryUse, ...]) -> Entry:
    sizes = [file.stat().st_size for file in folder.iterdir()]
    if (elsewhere := folder / f"{ENGINE_BYTES}.npy").exists():
        with suppress(OSError, ValueError):
            sizes.append(int(np.load(elsewhere, allow_pickle=False)))
    try:
        manifest = parse_manifest((folder / MANIFEST).read_bytes())
        made = (folder / MANIFEST).stat().st_mtime
    except (Damaged, OSError):
        kind, made = folder.parent.name.replace("_", " "), folder.stat().st_mtime
        return Entry(str(folder), folder.name, kind, {}, sum(sizes), 0.0, made, uses)
    seconds = manifest.costs[folder.name][1] if folder.name in manifest.costs else 0.0
    return Entry(str(folder), folder.name, manifest.kind, manifest.parts, sum(sizes), seconds, made, uses)


def _uses(store: Path) -> dict[str, list[EntryUse]]:
    """Return the uses of entries, by digest."""
    uses: dict[str, list[EntryUse]] = {}
    for file in (store / USES).glob("*.jsonl"):
        with suppress(OSError):
            for use, digests in parse_notes(file.read_bytes()):
                for digest in digests:
                    uses.setdefault(digest, []).append(use)
    return uses


def parse_notes(raw: bytes) -> Iterator[tuple[EntryUse, list[str]]]:
    """Yield the uses in the content of a file of uses, with the digests of the entries; skip unfinished lines."""
    for line in raw.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            content = orjson.loads(line)
            digests = content.pop("entries")
            yield EntryUse(**content), digests
