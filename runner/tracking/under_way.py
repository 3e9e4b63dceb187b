"""Marks on disk the combination that a sweep is evaluating, so that a crash is not repeated.

A crash (`os._exit`, a segmentation fault, lack of memory) leaves the marker behind. The next start reads it and
evaluates that combination last, in a separate process. Processes that share a sweep take turns and share one marker;
any other process has its own marker, with its name in the file name.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from retrievers.files import replace_texts
from runner.system.processes import holder, is_gone

_ENDING = ".under-way"

_LENGTH = 400
"""The size of a marker in bytes, constant so that a shorter one overwrites a longer one completely."""


class UnderWay:
    """The marker of a process that runs a sweep, and the combinations that killed earlier processes."""

    def __init__(self, folder: Path, sweep: str, shared: bool = True) -> None:
        self._sweep, self._list = sweep, folder / f"{sweep}.suspects"
        self.marker = folder / (f"{sweep}{_ENDING}" if shared else f"{sweep}.{holder()}{_ENDING}")
        self.suspects: set[str] = set()
        self._file: int | None = None

    def open(self) -> str:
        """Read the markers of dead processes; return the name of the last combination that killed one, or ""."""
        with suppress(OSError):
            self.suspects = set(self._list.read_text(encoding="utf-8").split())
        last = ""
        for marker in self._list_dead_markers():
            combination, name = _read(marker)
            if combination:
                self.suspects.add(combination)
                self._write()
                last = name
            if marker != self.marker:
                with suppress(OSError):
                    marker.unlink()
        with suppress(OSError):  # without a writable folder, the sweep runs without a marker
            self.marker.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.marker, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
        return last

    def _list_dead_markers(self) -> list[Path]:
        """Return the marker of this process, which an earlier process may have left, and those of dead processes."""
        others = self.marker.parent.glob(f"{self._sweep}.*{_ENDING}")
        dead = (m for m in others if is_gone(m.name.removeprefix(f"{self._sweep}.").removesuffix(_ENDING)))
        return [self.marker, *dead]

    def begin(self, combination: str, name: str) -> None:
        """Mark a combination as running."""
        if self._file is not None:
            marked = f"{combination} {name}".encode(errors="replace")[:_LENGTH].ljust(_LENGTH)
            with suppress(OSError):
                os.lseek(self._file, 0, os.SEEK_SET)  # Windows has no os.pwrite
                os.write(self._file, marked)

    def clear(self, combination: str) -> None:
        """Remove a combination that did not kill its process from the suspects."""
        if combination in self.suspects:
            self.suspects.remove(combination)
            self._write()

    def close(self) -> None:
        """Remove the marker when the sweep ends normally."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self.marker.unlink(missing_ok=True)

    def _write(self) -> None:
        with suppress(OSError):
            if self.suspects:
                replace_texts(self._list.parent, {self._list.name: "\n".join(sorted(self.suspects))})
            else:
                self._list.unlink(missing_ok=True)


def _read(marker: Path) -> tuple[str, str]:
    """Return the identity and the name of the combination in a marker, "" and "" if there is none."""
    try:
        combination, _, name = marker.read_bytes().decode(errors="ignore").strip().partition(" ")
    except OSError:
        return "", ""
    return combination, name


def report_death(marker: Path) -> None:
    """Report on the console which combination the dead process was evaluating."""
    from runner.pages import console

    _, name = _read(marker)
    doing = f" while evaluating {name}" if name else ""
    console.error(f"the sweep's process died{doing}; run the same command to resume")
