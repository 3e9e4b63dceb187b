"""The files that are left of a dataset that was made: each whole or not at all, all named after the first.

It knows nothing of what is in them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from retrievers.files import replace_file
from runner.config.objects import ConfigError

SUMMARY, JOURNAL, INSPECTION = ".summary.json", ".journal.jsonl", ".inspection"
"""How names end: of the summary, of what was paid for until the others are there, of the folder to inspect it into."""


def beside(output: Path, ending: str) -> Path:
    """Return the path of a file that goes with a dataset."""
    return output.with_name(output.name + ending)


def check_output(output: Path, *read: Path) -> None:
    """Raise `ConfigError` where nothing can be written, before any work; nothing is left of having looked.

    Nothing is written over a file that is `read`, nor into a folder that is, whose files are read the next time.
    """
    whole = output.resolve()
    for path in (path.resolve() for path in read):
        is_beside = path.parent == whole.parent and path.name.startswith(f"{whole.name}.")
        if whole == path or is_beside or (path.is_dir() and path in whole.parents):
            raise ConfigError(f"output={output}: would go into what is read, {path}; name a file elsewhere")
    try:
        if output.is_dir():
            raise ConfigError(f"output={output}: is a folder; name a file in it, such as {output / 'dataset.jsonl'}")
        there = next(folder for folder in output.absolute().parents if folder.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be written ({error.strerror})") from None


def save(output: Path, files: Mapping[str, Iterable[Mapping[str, Any]]], summary: Mapping[str, Any]) -> None:
    """Write rows of JSON into the file of each ending, and the summary, the last: where it is, all files are.

    Raises `ConfigError` for what cannot be written.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        beside(output, SUMMARY).unlink(missing_ok=True)
        for ending, rows in files.items():
            _write(beside(output, ending), (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
        _write(beside(output, SUMMARY), [orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)])
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be written ({error.strerror})") from None


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with replace_file(path) as new, new.open("wb") as file:
        file.writelines(parts)
