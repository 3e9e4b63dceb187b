"""What was made of runs, kept in one file as it is made, so that work which was cut short goes on where it was.

Artifacts are in it in full precision, one a line; in memory there is only where each of them is. It knows nothing of
how one is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from retrievers.files import replace_file
from retrievers.store import fingerprint
from runner.agents.measures.stages import Artifact
from runner.config.objects import ConfigError

FILE, LOCK = "artifacts.jsonl", "artifacts.lock"


class Kept(Mapping[str, dict[str, Any]]):
    """The artifacts in a folder by their names, each with a hash of what it was made from.

    They are in the order in which they were added; one is read whenever it is asked for. A file that is there is taken
    up again, without the lines that a kill left torn. Raises `ConfigError` where it cannot be written; see `keeping`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / FILE
        self._places: dict[str, tuple[str, int]] = {}
        self._end = 0
        with writing(folder), self._file.open("a+b") as file:
            file.seek(0)
            for line in file:
                name, inputs = _head(line)
                self._places.pop(name, None)
                if inputs is not None:
                    self._places[name] = inputs, self._end
                self._end += len(line)
            self._torn = self._end > 0 and not line.endswith(b"\n")

    def has(self, name: str, inputs: str) -> bool:
        """Tell whether the artifact of this name is there, made from the same."""
        return name in self._places and self._places[name][0] == inputs

    def fingerprint(self, names: Iterable[str]) -> str:
        """Return a hash of what these artifacts were made from."""
        return fingerprint(*(f"{name} {self._places[name][0]}" for name in names))

    def add(self, name: str, inputs: str, made: Artifact) -> None:
        """Keep an artifact; one that had its name is forgotten."""
        self._places[name] = inputs, self._append({"name": name, "inputs": inputs, "made": made})

    def forget(self, name: str) -> None:
        """Keep an artifact no more, as what it goes with is about to be made anew."""
        if self._places.pop(name, None):
            self._append({"name": name, "inputs": None, "made": {}})

    def settle(self, names: Collection[str]) -> None:
        """Leave only the artifacts of these names, in their order, and in the file nothing else."""
        places: dict[str, tuple[str, int]] = {}
        end = 0
        with (
            writing(self._folder),
            replace_file(self._file) as new,
            self._file.open("rb") as old,
            new.open("wb") as file,
        ):
            for name in names:
                inputs, place = self._places[name]
                old.seek(place)
                places[name] = inputs, end
                end += file.write(old.readline().rstrip(b"\n") + b"\n")
        self._places, self._end, self._torn = places, end, False

    def _append(self, content: Mapping[str, Any]) -> int:
        """Write a line, and return where it begins."""
        place = self._end + self._torn
        line = b"\n" * self._torn + orjson.dumps(content) + b"\n"
        with writing(self._folder), self._file.open("ab") as file:
            file.write(line)
        self._end, self._torn = self._end + len(line), False
        return place

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Read an artifact."""
        _, place = self._places[name]
        with self._file.open("rb") as file:
            file.seek(place)
            made: dict[str, Any] = orjson.loads(file.readline())["made"]
        return made

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise `ConfigError` for what cannot be written into a folder, or is written there by another process."""
    try:
        yield
    except Timeout as error:
        way_out = "wait until it has ended, or name another folder"
        raise ConfigError(f"output={folder}: another command is writing there; {way_out}") from error
    except OSError as error:
        raise ConfigError(f"output={folder}: cannot be written ({error.strerror or error})") from error


@contextmanager
def keeping(folder: Path) -> Iterator[Kept]:
    """Open what is kept in a folder, which is made, for this process alone.

    Raises `ConfigError` where another process has it open, and where it cannot be written.
    """
    with ExitStack() as stack:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / LOCK).acquire(timeout=0))
        yield Kept(folder)


def _head(line: bytes) -> tuple[str, str | None]:
    """Return name and inputs of a line; inputs are None of an artifact that is forgotten, and of what is no line."""
    try:
        content = orjson.loads(line)
    except ValueError:
        return "", None
    match content:
        case {"name": str(name), "inputs": str() | None as inputs, "made": {}}:
            return name, inputs
    return "", None
