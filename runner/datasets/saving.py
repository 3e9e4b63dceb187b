"""Write the files of a generated dataset: each is written atomically, and all are named after the first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from retrievers.files import replace_file
from runner.config.objects import ConfigError

SUMMARY, JOURNAL, INSPECTION = ".summary.json", ".journal.jsonl", ".inspection"
"""The suffixes of the summary, of the journal of unfinished work, and of the folder for the output of `inspect`."""


def beside(output: Path, ending: str) -> Path:
    """Return the path of a file that accompanies a dataset."""
    return output.with_name(output.name + ending)


def check_output(output: Path, *read: Path) -> None:
    """Raise `ConfigError` if the output cannot be written, before any work and without leaving a file.

    The output may not overwrite a file that is `read`, or be in a folder that is, because the next run would read it.
    """
    whole = output.resolve()
    for path in (path.resolve() for path in read):
        is_beside = path.parent == whole.parent and path.name.startswith(f"{whole.name}.")
        if whole == path or is_beside or (path.is_dir() and path in whole.parents):
            raise ConfigError(f"output={output}: would change the input {path}; choose a file in another folder")
    try:
        if output.is_dir():
            raise ConfigError(
                f"output={output}: expected a file, found a folder; name a file in it, such as "
                f"{output / 'dataset.jsonl'}"
            )
        there = next(folder for folder in output.absolute().parents if folder.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be written ({error.strerror})") from None


def save(output: Path, files: Mapping[str, Iterable[Mapping[str, Any]]], summary: Mapping[str, Any]) -> None:
    """Write rows of JSON to the file of each ending, then the summary, whose existence means that all are complete.

    Raises `ConfigError` if a file cannot be written.
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
