"""Folders of artifacts whose runs are not logged yet: announced before they are written, removed if that never ends.

A run and its artifacts are in two places, and a process may be killed between them. It needs no MLflow.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from retrievers.store import fingerprint
from runner.processes import holder, is_gone

_FOLDER = ".unlogged"
"""Where processes announce what they write, within the folder of all artifacts."""

Logged = Callable[[Sequence[str]], Collection[str]]
"""Tells which ids are of runs that the database has."""


class ArtifactFolders:
    """The folder that has one of each run, where that is on this machine (else None), and the address of its database.

    Several databases may have their artifacts in one folder: each removes only what it announced itself.
    """

    def __init__(self, location: Path | None, uri: str) -> None:
        self.location, self._database = location, fingerprint(uri)  # which may hold a password

    @contextmanager
    def announce(self, ids: Sequence[str], logged: Logged) -> Iterator[None]:
        """Announce runs whose artifacts are written in the block; if it raises, remove those of runs not logged."""
        if self.location is None or not ids:
            yield
            return
        note = self.location / _FOLDER / f"{holder()}.{uuid.uuid4().hex}"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps([self._database, *ids]), encoding="utf-8")
        try:
            yield
        except BaseException:
            missing: Sequence[str] = ids
            with suppress(Exception):  # a database that fails now has none of them
                missing = _missing(ids, logged)
            self._remove(missing)
            raise
        finally:
            note.unlink(missing_ok=True)

    def orphans(self, logged: Logged) -> list[Path]:
        """Return the folders of runs that processes which are gone did not log."""
        return [
            self._of(run)
            for _, runs in self._iter_abandoned()
            for run in _missing(runs, logged)
            if self._of(run).is_dir()
        ]

    def clear(self, logged: Logged) -> None:
        """Remove the folders of runs that processes which are gone did not log."""
        for note, runs in self._iter_abandoned():
            self._remove(_missing(runs, logged))
            note.unlink(missing_ok=True)

    def _iter_abandoned(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield what processes that are gone announced to this database, each note with its runs."""
        if self.location is None:
            return
        for note in sorted((self.location / _FOLDER).glob("*")):
            if not is_gone(note.name.rpartition(".")[0]):
                continue
            with suppress(OSError):
                text = note.read_text(encoding="utf-8")  # "": nothing was written yet
                database, *runs = json.loads(text or json.dumps([self._database]))
                if database == self._database:
                    yield note, runs

    def _of(self, run: str) -> Path:
        assert self.location is not None  # noqa: S101 (nothing is announced without one)
        return self.location / run

    def _remove(self, runs: Sequence[str]) -> None:
        for run in runs:
            shutil.rmtree(self._of(run), ignore_errors=True)


def _missing(runs: Sequence[str], logged: Logged) -> list[str]:
    known = logged(runs)
    return [run for run in runs if run not in known]
