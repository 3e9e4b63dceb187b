"""Results that the store of runs did not take, kept on disk until it does: each a folder of its own.

They are logged at the end of the sweep, or by the same command later; nothing is computed again.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from runner.result import Result, ResultError, load, save


class Unlogged:
    """The results of one sweep that wait to be logged, by the identity of their combination."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for aside in folder.glob(".*"):  # what was being written when a process died: one at a time is at a sweep
            shutil.rmtree(aside, ignore_errors=True)

    def combinations(self) -> list[str]:
        """Return the combinations whose results wait."""
        return sorted(file.name for file in self.folder.glob("[!.]*"))

    def keep(self, combination: str, result: Result) -> None:
        """Keep a result; raises `OSError`."""
        if self.find(combination) is not None:
            return
        aside = self.folder / f".{combination}.{os.getpid()}"
        try:
            save(result, aside)
            shutil.rmtree(self.folder / combination, ignore_errors=True)
            aside.rename(self.folder / combination)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def find(self, combination: str) -> Result | None:
        """Return a result that waits, None where there is none that can be read."""
        try:
            return load(self.folder / combination) if (self.folder / combination).is_dir() else None
        except (ResultError, OSError, ValueError):
            return None

    def drop(self, combination: str) -> None:
        """Forget a result, which was logged."""
        shutil.rmtree(self.folder / combination, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()
