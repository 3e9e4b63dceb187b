"""What an agent should have found: the files, symbols and line ranges that a task's definition names.

A definition is a folder with any of a dozen files that name them, some surely, some by the way. Paths stay as it wrote
them; how a path in a trace is matched to one of these is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.agents.runs.records import Unusable, json_at, text_at, within
from runner.agents.truth.gold_files import (
    Found,
    GoldChunk,
    GoldFile,
    GoldSymbol,
    chunk_of,
    chunks_in,
    files_in,
    named_files,
    patched_files,
    paths_in,
    sufficient_files,
    symbols_in,
    told_files,
)
from runner.agents.truth.output_files import is_output, output_files

__all__ = ["Confidence", "GoldChunk", "GoldFile", "GoldSymbol", "GroundTruth", "ground_truth_in"]

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class GroundTruth:
    """What a task's definition says is right, which of its files said so, and how far that file is to be trusted.

    `expected_edit_files` is None where no source says reliably which files are to change. `source` and `confidence`
    are None where nothing names a file. `problems` says in words what was there and could not be used.
    """

    files: Sequence[GoldFile] = ()
    symbols: Sequence[GoldSymbol] = ()
    chunks: Sequence[GoldChunk] = ()
    expected_edit_files: Sequence[GoldFile] | None = None
    source: str | None = None
    confidence: Confidence | None = None
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class _Source:
    """One file of a definition as a source of gold files: how it is read, and how far that is to be trusted.

    From a source that only mentions files, those that the task asks the agent to write are left out.
    """

    name: str
    confidence: Confidence
    read: Callable[[Any], Found]
    only_mentions: bool = False


def _oracle_files(record: object) -> Found:
    return files_in([value for name in ("files", "chain", "symbols") if (value := within(record, name)) is not None])


def _defects(record: object) -> object:
    """Return the list of defects, which may be a field of its own."""
    named = (within(record, name) for name in ("defects", "expected_defects"))
    return next((value for value in named if value is not None), record)


def _defective_files(record: object) -> Found:
    return files_in(_defects(record))


def _mentioned_files(text: str) -> Found:
    return files_in(paths_in(text))


_PATCHES = ("reference_fix.patch", "expected.diff", "expected.patch")
_SOURCES: Sequence[_Source] = (
    _Source("ground_truth.json", "high", named_files),
    _Source("ground_truth_agent.json", "high", named_files),
    _Source("oracle_answer.json", "high", _oracle_files),
    _Source("expected_defects.json", "high", _defective_files),
    _Source("expected_changes.json", "high", named_files),
    *(_Source(name, "high", patched_files) for name in _PATCHES),
    _Source("ground_truth.json", "medium", told_files, only_mentions=True),
    _Source("solve.sh", "medium", patched_files),
    _Source("test.sh", "medium", _mentioned_files, only_mentions=True),
    _Source("instruction.md", "low", _mentioned_files, only_mentions=True),
)
"""Where gold files come from, the surest first. What yields none leaves it to the next."""

_EDITS: Sequence[tuple[str, Callable[[Any], Found]]] = (
    ("ground_truth.json", lambda record: files_in(within(record, "expected_edit_files") or [])),
    ("ground_truth_agent.json", lambda record: files_in(within(record, "expected_edit_files") or [])),
    ("expected_changes.json", named_files),
    *((name, patched_files) for name in (*_PATCHES, "solve.sh")),
)
"""What says which files are to change: a definition's own word, the changes that are expected, or a patch."""

_PLACES = ("tests", "", "solution", "environment")
_JSON = ".json"


@dataclass(frozen=True)
class _Definition:
    """What the files of a task's folder hold, by name; the place of each within the folder; and what is damaged."""

    contents: Mapping[str, Any]
    places: Mapping[str, str]
    problems: Sequence[str]


def ground_truth_in(folders: Path | Sequence[Path], sufficient: bool = False) -> GroundTruth:
    """Return what the definition of a task names; of several folders, the surest source in the first that has it.

    With `sufficient`, the `sufficient_files` of a ground truth are required as its other files are. Never raises for
    what the folders hold: a file that is damaged is named among the problems, and the next source is tried.
    """
    definitions = [_read(folder) for folder in ([folders] if isinstance(folders, Path) else folders)]
    problems = [problem for definition in definitions for problem in definition.problems]
    silent: list[str] = []
    files: Sequence[GoldFile] = ()
    source: str | None = None
    confidence: Confidence | None = None
    for definition, candidate in [(definition, candidate) for candidate in _SOURCES for definition in definitions]:
        if candidate.name not in definition.contents:
            continue
        place, content = definition.places[candidate.name], definition.contents[candidate.name]
        found = candidate.read(content)
        if sufficient and candidate.read is named_files:
            found = _joined(found, sufficient_files(content))
        if candidate.only_mentions and found.files:
            found = _without_outputs(found, definitions)
        if found.unusable:
            problems.append(f"{place}: {found.unusable} entries name no usable path")
        if found.files:
            files, source, confidence = found.files, place, candidate.confidence
            break
        silent += [place] if candidate.confidence == "high" else []
    problems += [f"{place}: names no file" for place in silent if place != source]
    return GroundTruth(
        files=files,
        symbols=next(filter(None, map(_symbols, definitions)), ()),
        chunks=next(filter(None, map(_chunks, definitions)), ()),
        expected_edit_files=next(filter(None, map(_edits, definitions)), None),
        source=source,
        confidence=confidence,
        problems=tuple(dict.fromkeys(problems)),
    )


def _joined(one: Found, other: Found) -> Found:
    return Found(tuple(dict.fromkeys((*one.files, *other.files))), one.unusable + other.unusable)


def _without_outputs(found: Found, definitions: Sequence[_Definition]) -> Found:
    """Return files without those that the task asks the agent to write."""
    prose = [definition.contents.get(name) for definition in definitions for name in ("instruction.md", "test.sh")]
    outputs = {path for text in prose if text for path in output_files(text)}
    return Found(tuple(file for file in found.files if not is_output(file.path, outputs)), found.unusable)


def _read(folder: Path) -> _Definition:
    contents: dict[str, Any] = {}
    places: dict[str, str] = {}
    problems: list[str] = []
    for name in dict.fromkeys(["task_spec.json", *(source.name for source in _SOURCES)]):
        for place in _PLACES:
            path = folder / place / name
            relative = path.relative_to(folder).as_posix()
            try:
                content = json_at(path) if name.endswith(_JSON) else text_at(path)
            except Unusable as error:
                problems.append(f"{relative}: {error}")
                continue
            if content is not None:
                contents[name], places[name] = content, relative
                break
    return _Definition(contents, places, problems)


def _symbols(definition: _Definition) -> Sequence[GoldSymbol]:
    contents = definition.contents
    required = within(contents.get("task_spec.json"), "artifacts", "oracle", "required_symbols")
    stated = (
        within(contents.get(name), "symbols")
        for name in ("ground_truth.json", "ground_truth_agent.json", "oracle_answer.json")
    )
    return next(filter(None, map(symbols_in, (required, *stated))), ())


def _chunks(definition: _Definition) -> Sequence[GoldChunk]:
    contents = definition.contents
    stated = (within(contents.get(name), "chunks") for name in ("ground_truth.json", "ground_truth_agent.json"))
    found = next(filter(None, map(chunks_in, (_defects(contents.get("expected_defects.json")), *stated))), ())
    changes = contents.get("expected_changes.json")
    lines = within(changes, "expected_line_range")
    if found or not isinstance(lines, list) or len(lines) != 2:
        return found
    expected = chunk_of(within(changes, "expected_file"), *lines)
    return (expected,) if expected else ()


def _edits(definition: _Definition) -> Sequence[GoldFile] | None:
    found = (read(definition.contents[name]).files for name, read in _EDITS if name in definition.contents)
    return next(filter(None, found), None)
