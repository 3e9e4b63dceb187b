"""An assessor's journal: one line of JSON per keystroke, on disk before the page confirms it, and never rewritten.

What an assessor has decided follows from the lines in order, so a later line can undo an earlier one. A file lock makes
sure that only one process writes a journal. A line that the desk would not have written is skipped and named, as
journals come from other people too. Nothing here knows what a pool is.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import orjson
from filelock import FileLock, Timeout

from retrievers.strict_values import fits_columns
from runner.config.objects import ConfigError
from runner.features.judge.judging import PairIds

Action = Literal["grade", "skip", "unsure", "settle", "note", "undo"]
"""What a line says; `settle` is the final grade of a pair on which assessors differ."""

_NAME = re.compile(r"\w[\w .@+-]{0,63}")


@dataclass(frozen=True)
class JournalEntry:
    """A line of a journal. `grade` belongs to `grade` and `settle`; `seconds` is the time that the pair was shown."""

    action: Action
    pair: PairIds
    at: str
    grade: int | None = None
    note: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Assessment:
    """What an assessor has decided: the last entry on each pair that was not undone, and the last note.

    `order` has the entries that an undo can still take back, oldest first. `damaged` names the lines that were skipped,
    each with what is wrong.
    """

    decisions: Mapping[PairIds, JournalEntry] = field(default_factory=dict)
    settled: Mapping[PairIds, JournalEntry] = field(default_factory=dict)
    notes: Mapping[PairIds, str] = field(default_factory=dict)
    order: Sequence[JournalEntry] = ()
    damaged: Sequence[str] = ()

    @property
    def grades(self) -> dict[PairIds, int]:
        """Return the grades by pair."""
        return {pair: entry.grade for pair, entry in self.decisions.items() if entry.grade is not None}


def fold_entries(entries: Sequence[JournalEntry], damaged: Sequence[str] = ()) -> Assessment:
    """Return what follows from the entries of one assessor; only the last entry can be undone."""
    order: list[JournalEntry] = []
    notes: dict[PairIds, str] = {}
    for entry in entries:
        if entry.action == "undo":
            if order and order[-1].pair == entry.pair:  # otherwise, the line that it takes back is damaged
                order = order[:-1]
        elif entry.action == "note":
            notes[entry.pair] = entry.note
        else:
            order.append(entry)
    decisions = {entry.pair: entry for entry in order if entry.action != "settle"}
    settled = {entry.pair: entry for entry in order if entry.action == "settle"}
    return Assessment(decisions, settled, notes, order, damaged)


def normalise_assessor(name: str) -> str:
    """Return an assessor's name as a file name: lower case, so that one person has one journal on every system."""
    plain = unicodedata.normalize("NFC", name.strip()).casefold()
    if not _NAME.fullmatch(plain):
        raise ConfigError(
            f"assessor={name}: not a name; use 1 to 64 letters, digits, spaces and . @ + - _, beginning with a letter"
        )
    return plain


def list_journals(folder: Path) -> list[Path]:
    """Return the journals in a folder, in alphabetical order."""
    return [file for file in sorted(folder.glob("*.jsonl")) if file.is_file()]


def load_journals(folder: Path, greatest: int) -> dict[str, Assessment]:
    """Return what each assessor has decided, by name; `greatest` is the highest grade of the scale."""
    return {file.stem: fold_entries(*_read_entries(file, greatest)) for file in list_journals(folder)}


class AssessorJournal:
    """The journal of one assessor, read until `open` locks it for writing; `close` lets another process open it.

    Neither the file nor its folder exists before `open`. `greatest` is the highest grade of the scale.
    """

    def __init__(self, folder: Path, assessor: str, greatest: int) -> None:
        self.assessor, self.file = normalise_assessor(assessor), folder / f"{normalise_assessor(assessor)}.jsonl"
        self._greatest = greatest
        self._lock = FileLock(self.file.with_suffix(".lock"), thread_local=False)
        self._descriptor: int | None = None
        self._size, self._entries, self._assessment = 0, list[JournalEntry](), Assessment()
        self._load()

    @property
    def is_open(self) -> bool:
        """Return whether this process writes the journal."""
        return self._descriptor is not None

    @property
    def assessment(self) -> Assessment:
        """Return what the assessor has decided, read again if another process has extended the journal."""
        if not self.is_open and self._measure_size() != self._size:
            self._load()
        return self._assessment

    def open(self) -> Self:
        """Lock the journal, once, and create it if there is none; raises `ConfigError` if another process has it."""
        self._open()
        return self

    def _open(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ConfigError(
                f"assessor={self.assessor}: this assessor already judges in another process, which writes to "
                f"{self.file}; use its page, or set assessor= to another name"
            ) from None
        try:
            descriptor = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except BaseException:
            self._lock.release()
            raise
        self._descriptor = descriptor
        self._load()
        self._size = _find_end(self.file.read_bytes())
        os.ftruncate(descriptor, self._size)  # a line that a killed process did not finish was never confirmed
        _flush_folder(self.file.parent)
        return descriptor

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def append(
        self, action: Action, pair: PairIds, grade: int | None = None, note: str = "", seconds: float | None = None
    ) -> None:
        """Write an entry, in a journal that this opens if need be; it is on disk when this returns.

        Raises `ConfigError` if another process has the journal, and `OSError`; then nothing was written.
        """
        descriptor = self._open()
        entry = JournalEntry(action, pair, datetime.now(UTC).isoformat(timespec="milliseconds"), grade, note, seconds)
        line = orjson.dumps(_format_entry(entry)) + b"\n"
        try:
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(f"{self.file}: the disk is full")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, self._size)
            raise
        self._size += len(line)
        self._entries = [*self._entries, entry]
        self._assessment = fold_entries(self._entries, self._assessment.damaged)

    def close(self) -> None:
        """Close the file and release its lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._lock.release()

    def _load(self) -> None:
        self._size = self._measure_size()
        self._entries, damaged = _read_entries(self.file, self._greatest)
        self._assessment = fold_entries(self._entries, damaged)

    def _measure_size(self) -> int:
        return self.file.stat().st_size if self.file.is_file() else 0


def _format_entry(entry: JournalEntry) -> dict[str, object]:
    query, document = entry.pair
    row = {"at": entry.at, "action": entry.action, "query_id": query, "document_id": document}
    known = {"grade": entry.grade, "note": entry.note or None, "seconds": entry.seconds}
    return row | {name: value for name, value in known.items() if value is not None}


def _read_entries(file: Path, greatest: int) -> tuple[list[JournalEntry], list[str]]:
    """Read the finished lines of a journal; also return the lines that are damaged, each with what is wrong."""
    entries, damaged = list[JournalEntry](), list[str]()
    try:
        content = file.read_bytes() if file.is_file() else b""
    except OSError as error:
        return [], [f"{file}: cannot be read ({error.strerror})"]
    for number, line in enumerate(content[: _find_end(content)].split(b"\n")[:-1], start=1):
        try:
            entries.append(_parse_entry(line, greatest))
        except ValueError as error:
            damaged.append(
                f"{file}:{number}: not a line that the desk writes ({str(error)[:100]}); restore or delete it"
            )
    return entries, damaged


def _parse_entry(line: bytes, greatest: int) -> JournalEntry:
    """Return the entry of a line; raises `ValueError` with what is wrong."""
    row: Any = orjson.loads(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    fields = ("action", "query_id", "document_id", "at", "grade", "note", "seconds")
    values: list[Any] = [({"note": ""} | row).get(name) for name in fields]
    action, query, document, at, grade, note, seconds = values
    if action not in get_args(Action):
        raise ValueError("the action does not exist")
    if not all(isinstance(name, str) and fits_columns(name) for name in (query, document)):
        raise ValueError("an id is not a text without tabs and line breaks")
    if not isinstance(at, str) or not isinstance(note, str):
        raise ValueError("the time or the note is not a text")
    datetime.fromisoformat(at)
    if seconds is not None and (type(seconds) not in (int, float) or seconds < 0):
        raise ValueError("the seconds are not a positive number")
    if action not in ("grade", "settle"):
        if grade is not None:
            raise ValueError(f"{action} has no grade")
    elif type(grade) is not int or not 0 <= grade <= greatest:
        raise ValueError(f"the grade {str(grade)[:20]} is outside the scale from 0 to {greatest}")
    return JournalEntry(action, (query, document), at, grade, note, seconds)


def _find_end(content: bytes) -> int:
    """Return the length of the finished lines."""
    return content.rfind(b"\n") + 1


def _flush_folder(folder: Path) -> None:
    """Write a new file's entry in its folder to disk."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
