"""An assessor's journal: one line of JSON per keystroke, on disk before the page confirms it, and never rewritten.

What an assessor has decided follows from the lines in order, so a later line can undo an earlier one. A file lock makes
sure that only one process writes a journal. Nothing here knows what a pool is.
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
from typing import Literal, Self, get_args

import orjson
from filelock import FileLock, Timeout

from runner.analysis.sheet import PairIds
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError

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

    `order` has the entries that an undo can still take back, oldest first.
    """

    decisions: Mapping[PairIds, JournalEntry] = field(default_factory=dict)
    settled: Mapping[PairIds, JournalEntry] = field(default_factory=dict)
    notes: Mapping[PairIds, str] = field(default_factory=dict)
    order: Sequence[JournalEntry] = ()

    @property
    def grades(self) -> dict[PairIds, int]:
        """Return the grades by pair."""
        return {pair: entry.grade for pair, entry in self.decisions.items() if entry.grade is not None}


def fold_entries(entries: Sequence[JournalEntry]) -> Assessment:
    """Return what follows from the entries of one assessor."""
    order: list[JournalEntry] = []
    notes: dict[PairIds, str] = {}
    for entry in entries:
        if entry.action == "undo":
            order = order[:-1]
        elif entry.action == "note":
            notes[entry.pair] = entry.note
        else:
            order.append(entry)
    decisions = {entry.pair: entry for entry in order if entry.action != "settle"}
    return Assessment(decisions, {entry.pair: entry for entry in order if entry.action == "settle"}, notes, order)


def normalise_assessor(name: str) -> str:
    """Return an assessor's name as a file name: lower case, so that one person has one journal on every system."""
    plain = unicodedata.normalize("NFC", name.strip()).casefold()
    if not _NAME.fullmatch(plain):
        raise ConfigError(
            f"assessor={name}: not a name; use 1 to 64 letters, digits, spaces and . @ + - _, beginning with a letter"
        )
    return plain


def load_journals(folder: Path) -> dict[str, Assessment]:
    """Return what each assessor has decided, by name, in alphabetical order."""
    files = sorted(folder.glob("*.jsonl"))
    return {file.stem: fold_entries(_read_entries(file)) for file in files}


class AssessorJournal:
    """The journal of one assessor, open for writing; `close` lets another process open it."""

    def __init__(self, folder: Path, assessor: str) -> None:
        self.assessor, self.file = normalise_assessor(assessor), folder / f"{normalise_assessor(assessor)}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.file.with_suffix(".lock"), thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ConfigError(
                f"assessor={assessor}: this assessor already judges in another process, which writes to {self.file}; "
                "use its page, or set assessor= to another name"
            ) from None
        try:
            self._entries = _read_entries(self.file)
            self._descriptor = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except BaseException:
            self._lock.release()
            raise
        self._size = _find_end(self.file.read_bytes())
        os.ftruncate(self._descriptor, self._size)  # a line that a killed process did not finish was never confirmed
        _flush_folder(folder)
        self.assessment = fold_entries(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def append(
        self, action: Action, pair: PairIds, grade: int | None = None, note: str = "", seconds: float | None = None
    ) -> None:
        """Write an entry; it is on disk when this returns. Raises `OSError`, and then nothing was written."""
        entry = JournalEntry(action, pair, datetime.now(UTC).isoformat(timespec="milliseconds"), grade, note, seconds)
        line = orjson.dumps(_format_entry(entry)) + b"\n"
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise OSError(f"{self.file}: the disk is full")
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)
        self._entries = [*self._entries, entry]
        self.assessment = fold_entries(self._entries)

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._descriptor)
        self._lock.release()


def _format_entry(entry: JournalEntry) -> dict[str, object]:
    query, document = entry.pair
    row = {"at": entry.at, "action": entry.action, "query_id": query, "document_id": document}
    known = {"grade": entry.grade, "note": entry.note or None, "seconds": entry.seconds}
    return row | {name: value for name, value in known.items() if value is not None}


def _read_entries(file: Path) -> list[JournalEntry]:
    """Read the finished lines of a journal; raises `DatasetError`, with the line, for one that is damaged."""
    if not file.is_file():
        return []
    entries, content = [], file.read_bytes()
    for number, line in enumerate(content[: _find_end(content)].splitlines(), start=1):
        try:
            row = orjson.loads(line)
            pair, grade = (row["query_id"], row["document_id"]), row.get("grade")
            has_grade = row["action"] not in ("grade", "settle") or type(grade) is int
            if row["action"] not in get_args(Action) or not has_grade:
                raise ValueError("no such action, or no grade")
            entry = JournalEntry(row["action"], pair, row["at"], grade, row.get("note", ""), row.get("seconds"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"{file}:{number}: not an entry of a journal ({error}); restore the file, or delete the line"
            ) from None
        entries.append(entry)
    return entries


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
