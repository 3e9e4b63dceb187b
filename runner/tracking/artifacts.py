"""Folders of artifacts whose runs are not logged yet: announced before they are written, removed if logging fails.

A run and its artifacts are stored in two places, and a process may be killed between the two writes. MLflow is not
needed.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from retrievers.store import fingerprint
from runner.system.processes import holder, is_gone

_FOLDER = ".unlogged"
"""The subfolder of the folder of all artifacts in which processes announce runs."""

Logged = Callable[[Sequence[str]], Collection[str]]
"""Returns those of the given run ids that are in the database."""


class ArtifactFolders:
    """The artifact folders of runs. `location` contains them; it is None if artifacts are not on this machine.

    `uri` is the address of the database. Several databases may share a location, so folders are removed only if they
    were announced for the same database.
    """

    def __init__(self, location: Path | None, uri: str) -> None:
        self.location, self._database = location, fingerprint(uri)  # hashed, as the address may contain a password

    @contextmanager
    def announce(self, ids: Sequence[str], logged: Logged) -> Iterator[None]:
        """Announce runs whose artifacts the block writes; if it raises, remove the artifacts of runs not logged."""
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
            with suppress(Exception):  # if the database cannot be read, no run was logged
                missing = _missing(ids, logged)
            self._remove(missing)
            raise
        finally:
            note.unlink(missing_ok=True)

    def orphans(self, logged: Logged) -> list[Path]:
        """Return the folders of runs that dead processes announced but did not log."""
        return [
            self._of(run)
            for _, runs in self._iter_abandoned()
            for run in _missing(runs, logged)
            if self._of(run).is_dir()
        ]

    def clear(self, logged: Logged) -> None:
        """Remove the folders of runs that dead processes announced but did not log."""
        for note, runs in self._iter_abandoned():
            self._remove(_missing(runs, logged))
            note.unlink(missing_ok=True)

    def _iter_abandoned(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the announcement files of dead processes for this database, with the ids of their runs."""
        if self.location is None:
            return
        for note in sorted((self.location / _FOLDER).glob("*")):
            if not is_gone(note.name.rpartition(".")[0]):
                continue
            with suppress(OSError):
                text = note.read_text(encoding="utf-8")  # "" if the process was killed before it wrote the file
                database, *runs = json.loads(text or json.dumps([self._database]))
                if database == self._database:
                    yield note, runs

    def _of(self, run: str) -> Path:
        assert self.location is not None  # noqa: S101 (without one, nothing is announced)
        return self.location / run

    def _remove(self, runs: Sequence[str]) -> None:
        for run in runs:
            shutil.rmtree(self._of(run), ignore_errors=True)


def _missing(runs: Sequence[str], logged: Logged) -> list[str]:
    known = logged(runs)
    return [run for run in runs if run not in known]
