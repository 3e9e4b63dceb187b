"""Entries of a store on disk: how one is written, read, checked, listed and removed, and who used it.

An entry is a folder, `<store>/<kind>/<digest>`, with a .npy file an array and a manifest that has their sizes and
checksums, and its own. It is made aside and renamed into place, and is renamed aside before it is removed: what has its
name is whole, whatever ends a process in between. What a loss of power, a bad disk or anybody's hands do to it shows
when it is opened. Uses are noted in `<store>/.used`, a file a process, to which only that process adds lines. Nothing
here knows what the arrays mean.
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

from retrievers.store import Arrays, Key
from runner.store import seals
from runner.store.base import Entry, EntryUse
from runner.store.lock import holder, is_gone
from runner.store.seals import Damaged, Seals, verify

LEFTOVER_S = 24 * 3600
"""How old a half-made entry is when whoever made it must be gone."""

MANIFEST = "manifest.json"

USES = ".used"

_DIGEST = re.compile(r"[0-9a-f]{32}")
_LOCK = re.compile(rf"{_DIGEST.pattern}\.lock")
_ASIDE = re.compile(rf"\.{_DIGEST.pattern}\.(.+)\.[0-9a-f]{{8}}")


@dataclass(frozen=True)
class Manifest:
    """What an entry is: its key, each array's size and checksum, and what it cost, by digest: (kind, seconds)."""

    kind: str
    parts: Mapping[str, str]
    arrays: Mapping[str, tuple[int, int]]
    costs: Mapping[str, tuple[str, float]]


def folder_of(store: Path, key: Key) -> Path:
    """Return where the entry of a key is."""
    return store / key.kind.replace(" ", "_") / key.digest


def write(folder: Path, key: Key, arrays: Arrays, costs: Mapping[str, tuple[str, float]]) -> None:
    """Make an entry aside, its manifest last, and rename it into place, where another's of the same key may stay."""
    aside = _aside(folder)
    try:
        aside.mkdir(parents=True)
        saved = {name: _save(aside / f"{name}.npy", array) for name, array in arrays.items()}
        manifest = {"kind": key.kind, "parts": dict(key.parts), "arrays": saved, "costs": costs}
        (aside / MANIFEST).write_bytes(seals.dumps(manifest, orjson.OPT_INDENT_2))
        try:
            aside.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def read(folder: Path, verified: Seals) -> tuple[Arrays, Manifest]:
    """Return the arrays of an entry, large ones mapped, and its manifest; `verified` are the files known to be whole.

    Raises `FileNotFoundError` where there is no entry, `Damaged`, and whatever else keeps files from being read.
    """
    raw = _raw(folder)
    manifest = _parsed(raw)
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
        raise Damaged("it was replaced while it was read")
    return arrays, manifest


def damage(folder: Path) -> str | None:
    """Read all of an entry and return what is wrong with it, None if it is whole, or gone."""
    try:
        for name, (size, crc32) in _parsed(_raw(folder)).arrays.items():
            verify(folder / f"{name}.npy", size, crc32)
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing" if folder.exists() else None
    except OSError as error:
        return f"it can't be read: {error.strerror or error}"
    except ValueError as error:
        return str(error)
    return None


def remove(folder: Path) -> None:
    """Remove an entry, at once for whoever looks; what others have mapped stays valid for them. Raises `OSError`."""
    with suppress(FileNotFoundError):
        shutil.rmtree(_taken(folder), ignore_errors=True)


def remove_damaged(folder: Path) -> str | None:
    """Remove an entry if it is damaged, and return what was wrong; one that was made anew meanwhile stays."""
    try:
        aside = _taken(folder)
    except FileNotFoundError:
        return None
    if (wrong := damage(aside)) is None:
        with suppress(OSError):  # there is another by now, which is as good
            aside.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)
    return wrong


def tidy(kind: Path) -> None:
    """Remove what processes that are gone left in the folder of a kind: half-made entries, and locks."""
    for left in kind.glob("*.*"):
        with suppress(OSError):
            if (aside := _ASIDE.fullmatch(left.name)) and _is_left(left, aside[1]):
                shutil.rmtree(left)
            elif _LOCK.fullmatch(left.name) and _is_left(left, left.read_text(errors="replace").partition(" ")[0]):
                left.unlink()


def listed(store: Path) -> list[Entry]:
    """Return every entry of a store, the one that was not used for longest first."""
    uses = _uses(store)
    found = []
    for folder in _folders(store):
        with suppress(FileNotFoundError):  # it may be removed meanwhile
            found.append(_entry(folder, tuple(uses.get(folder.name, ()))))
    return sorted(found, key=lambda entry: (entry.used, entry.place))


def note(store: Path, writer: str, use: EntryUse, digests: Iterable[str]) -> None:
    """Note who used entries, in the writer's own file. A line that a process could not end spoils no other."""
    (store / USES).mkdir(parents=True, exist_ok=True)
    told = {"at": use.at, "dataset": use.dataset, "fingerprint": use.fingerprint, "run": use.run}
    with (store / USES / f"{writer}.jsonl").open("ab", buffering=0) as file:
        file.write(b"\n" + orjson.dumps({**told, "entries": list(digests)}) + b"\n")


def forget(store: Path) -> None:
    """Remove the notes that tell of no entry that is still there."""
    kept = {folder.name for folder in _folders(store)}
    for file in (store / USES).glob("*.jsonl"):
        with suppress(OSError):
            if not any(kept.intersection(digests) for _, digests in _notes(file)):
                file.unlink()


class _Summed:
    """A file that is written, with the size and the checksum of what was written so far."""

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


def _aside(folder: Path) -> Path:
    """Return a name beside an entry that nobody else has, and that tells who has it."""
    return folder.with_name(f".{folder.name}.{holder()}.{uuid.uuid4().hex[:8]}")


def _taken(folder: Path) -> Path:
    """Take an entry away from its name, for others to see all of it or nothing."""
    aside = _aside(folder)
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


def _parsed(raw: bytes) -> Manifest:
    try:
        return Manifest(**seals.loads(raw))
    except (ValueError, TypeError) as error:
        raise Damaged(f"{MANIFEST}: {error}") from error


def _folders(store: Path) -> Iterator[Path]:
    """Yield the folders of entries, and of nothing else that may be there."""
    for folder in sorted(store.glob("*/*/")):
        if _DIGEST.fullmatch(folder.name):
            yield folder


def _entry(folder: Path, uses: tuple[EntryUse, ...]) -> Entry:
    sizes = [file.stat().st_size for file in folder.iterdir()]
    try:
        manifest = _parsed((folder / MANIFEST).read_bytes())
        made = (folder / MANIFEST).stat().st_mtime
    except (Damaged, OSError):
        kind, made = folder.parent.name.replace("_", " "), folder.stat().st_mtime
        return Entry(str(folder), folder.name, kind, {}, sum(sizes), 0.0, made, uses)
    _, seconds = manifest.costs.get(folder.name, ("", 0.0))
    return Entry(str(folder), folder.name, manifest.kind, manifest.parts, sum(sizes), seconds, made, uses)


def _uses(store: Path) -> dict[str, list[EntryUse]]:
    """Return the uses of entries by their digests."""
    found: dict[str, list[EntryUse]] = {}
    for file in (store / USES).glob("*.jsonl"):
        with suppress(OSError):
            for use, digests in _notes(file):
                for digest in digests:
                    found.setdefault(digest, []).append(use)
    return found


def _notes(file: Path) -> Iterator[tuple[EntryUse, list[str]]]:
    for line in file.read_bytes().splitlines():
        with suppress(ValueError, KeyError, TypeError):
            told = orjson.loads(line)
            digests = told.pop("entries")
            yield EntryUse(**told), digests
