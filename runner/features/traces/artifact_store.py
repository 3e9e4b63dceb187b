"""Store the artifacts of runs in one file as they are made, so that interrupted work can be resumed.

The file has one artifact per line in full precision; memory holds only the position of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from retrievers.files import replace_file
from retrievers.store import fingerprint
from runner.config.objects import ConfigError
from runner.features.traces.measures.records import Artifact

FILE, LOCK = "artifacts.jsonl", "artifacts.lock"


class _StoredArtifact(TypedDict):
    """A line of the file; `inputs` and `artifact` are None for an artifact that was removed."""

    name: str
    inputs: str | None
    artifact: Artifact | None


_LINE = TypeAdapter(_StoredArtifact)


class ArtifactStore(Mapping[str, Artifact]):
    """The artifacts in a folder by name, each with a hash of its inputs.

    They are in the order in which they were added, and one is read each time it is requested. An existing file is
    opened without the lines that a killed process left incomplete. Raises `ConfigError` if it cannot be written; see
    `open_artifacts`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / FILE
        self._places: dict[str, tuple[str, int]] = {}
        self._end = 0
        with check_output(folder), self._file.open("a+b") as file:
            file.seek(0)
            for line in file:
                if stored := _parse_line(line):
                    self._places.pop(stored["name"], None)
                    if stored["inputs"] is not None:
                        self._places[stored["name"]] = stored["inputs"], self._end
                self._end += len(line)
            self._torn = self._end > 0 and not line.endswith(b"\n")

    def has(self, name: str, inputs: str) -> bool:
        """Return whether the artifact of this name exists and was made from these inputs."""
        return name in self._places and self._places[name][0] == inputs

    def fingerprint(self, names: Iterable[str]) -> str:
        """Return a hash of the inputs of these artifacts."""
        return fingerprint(*(f"{name} {self._places[name][0]}" for name in names))

    def add(self, name: str, inputs: str, artifact: Artifact) -> None:
        """Store an artifact, in place of any other with its name."""
        self._places[name] = inputs, self._append({"name": name, "inputs": inputs, "artifact": artifact})

    def remove(self, name: str) -> None:
        """Remove an artifact, because the files that belong to it are about to be rewritten."""
        if self._places.pop(name, None):
            self._append({"name": name, "inputs": None, "artifact": None})

    def compact(self, names: Collection[str]) -> None:
        """Keep only the artifacts with these names, in their order, and remove everything else from the file."""
        places: dict[str, tuple[str, int]] = {}
        end = 0
        with (
            check_output(self._folder),
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

    def _append(self, content: _StoredArtifact) -> int:
        """Write a line, and return where it starts."""
        place = self._end + self._torn
        line = b"\n" * self._torn + orjson.dumps(content) + b"\n"
        with check_output(self._folder), self._file.open("ab") as file:
            file.write(line)
        self._end, self._torn = self._end + len(line), False
        return place

    def __getitem__(self, name: str) -> Artifact:
        """Read an artifact; its line was checked when the file was opened, or written by this process."""
        _, place = self._places[name]
        with self._file.open("rb") as file:
            file.seek(place)
            artifact: Artifact = orjson.loads(file.readline())["artifact"]
        return artifact

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of artifacts."""
        return len(self._places)


@contextmanager
def check_output(folder: Path) -> Iterator[None]:
    """Raise `ConfigError` if a folder cannot be written to, or another process is writing to it."""
    try:
        yield
    except Timeout as error:
        way_out = "wait until it has finished, or choose another folder"
        raise ConfigError(f"output={folder}: another command is writing to this folder; {way_out}") from error
    except OSError as error:
        raise ConfigError(f"output={folder}: cannot be written ({error.strerror or error})") from error


@contextmanager
def open_artifacts(folder: Path) -> Iterator[ArtifactStore]:
    """Create a folder if necessary, and open its artifacts exclusively for this process.

    Raises `ConfigError` if another process has them open, or they cannot be written.
    """
    with ExitStack() as stack:
        with check_output(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / LOCK).acquire(timeout=0))
        yield ArtifactStore(folder)


def _parse_line(line: bytes) -> _StoredArtifact | None:
    """Return the content of a line; None if the line is damaged or was not written by this module."""
    try:
        return _LINE.validate_json(line)
    except ValidationError:
        return None
