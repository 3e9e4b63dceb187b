"""Count the looks at locked splits: a file for each look, created exclusively, so that none is lost or counted twice.

A process that dies while it writes a file leaves a look without a question, which counts as a look that did not pass.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True)
class RecordedLook:
    """A look: its number from 1, a hash of the question, the terms it was asked on, and whether the answer was yes."""

    number: int
    question: str = ""
    alpha: float = 0.0
    budget: int = 0
    level: float = 0.0
    passed: bool = False


class Looks:
    """The looks at one locked split, in a folder that several processes may share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> list[RecordedLook]:
        """Return the looks by number; raises `OSError`."""
        files = sorted(self.folder.glob("*.json"), key=lambda file: int(file.stem))
        return [_read_look(file) for file in files]

    def add(self, look: RecordedLook) -> bool:
        """Write a look to the disk; return False if its number is taken. Raises `OSError`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(self.folder / f"{look.number}.json", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(file, "wb") as stream:
            stream.write(orjson.dumps(asdict(look), option=orjson.OPT_APPEND_NEWLINE))
            stream.flush()
            os.fsync(stream.fileno())
        return True


def _read_look(file: Path) -> RecordedLook:
    try:
        return RecordedLook(**orjson.loads(file.read_bytes()))
    except (ValueError, TypeError):
        return RecordedLook(int(file.stem))
