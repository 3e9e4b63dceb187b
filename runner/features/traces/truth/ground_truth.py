"""Read what an agent should find: the files, symbols and line ranges that a task's definition names.

A definition is a folder with any of a dozen files, some of which name the gold reliably while others only mention it.
Paths are kept as written there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.features.traces.runs.records import UnusableFileError, get_nested, read_json, read_text
from runner.features.traces.truth.gold_files import (
    GoldChunk,
    GoldFile,
    GoldFiles,
    GoldSymbol,
    find_paths,
    parse_alternatives,
    parse_answer,
    parse_chunk,
    parse_chunks,
    parse_files,
    parse_gold,
    parse_patch,
    parse_symbols,
)
from runner.features.traces.truth.output_files import find_output_files, is_output

__all__ = ["Confidence", "GoldChunk", "GoldFile", "GoldSymbol", "GroundTruth", "read_ground_truth"]

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class GroundTruth:
    """The gold of a task, the file of its definition that names it, and the confidence in that file.

    `expected_edit_files` is None if no reliable source names the files to change. `source` and `confidence` are None
    if nothing names a file. `problems` describes what could not be used.
    """

    files: Sequence[GoldFile] = ()
    symbols: Sequence[GoldSymbol] = ()
    chunks: Sequence[GoldChunk] = ()
    expected_edit_files: Sequence[GoldFile] | None = None
    source: str | None = None
    confidence: Confidence | None = None
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class _GoldSource:
    """One file of a definition as a source of gold files: its reader, and the confidence in it.

    For a source that only mentions files, the files that the task asks the agent to write are left out.
    """

    name: str
    confidence: Confidence
    read: Callable[[object], GoldFiles]
    only_mentions: bool = False


def _parse_oracle(record: object) -> GoldFiles:
    return parse_files(
        [value for name in ("files", "chain", "symbols") if (value := get_nested(record, name)) is not None]
    )


def _list_defects(record: object) -> object:
    """Return the list of defects, which may be a field of the record."""
    named = (get_nested(record, name) for name in ("defects", "expected_defects"))
    return next((value for value in named if value is not None), record)


def _parse_defects(record: object) -> GoldFiles:
    return parse_files(_list_defects(record))


def _parse_patch(content: object) -> GoldFiles:
    return parse_patch(content) if isinstance(content, str) else GoldFiles()


def _parse_prose(content: object) -> GoldFiles:
    return parse_files(find_paths(content)) if isinstance(content, str) else GoldFiles()


_PATCHES = ("reference_fix.patch", "expected.diff", "expected.patch")
_SOURCES: Sequence[_GoldSource] = (
    _GoldSource("ground_truth.json", "high", parse_gold),
    _GoldSource("ground_truth_agent.json", "high", parse_gold),
    _GoldSource("oracle_answer.json", "high", _parse_oracle),
    _GoldSource("expected_defects.json", "high", _parse_defects),
    _GoldSource("expected_changes.json", "high", parse_gold),
    *(_GoldSource(name, "high", _parse_patch) for name in _PATCHES),
    _GoldSource("ground_truth.json", "medium", parse_answer, only_mentions=True),
    _GoldSource("solve.sh", "medium", _parse_patch),
    _GoldSource("test.sh", "medium", _parse_prose, only_mentions=True),
    _GoldSource("instruction.md", "low", _parse_prose, only_mentions=True),
)
"""The sources of gold files, the most reliable first; if one has no files, the next is used."""

_EDITS: Sequence[tuple[str, Callable[[object], GoldFiles]]] = (
    ("ground_truth.json", lambda record: parse_files(get_nested(record, "expected_edit_files") or [])),
    ("ground_truth_agent.json", lambda record: parse_files(get_nested(record, "expected_edit_files") or [])),
    ("expected_changes.json", parse_gold),
    *((name, _parse_patch) for name in (*_PATCHES, "solve.sh")),
)
"""The sources of the files to change: a field of the definition, the expected changes, or a patch."""

_PLACES = ("tests", "", "solution", "environment")
_JSON = ".json"


@dataclass(frozen=True)
class _Definition:
    """The contents of the files of a task's folder by name, the path of each within it, and the damaged files."""

    contents: Mapping[str, object]
    places: Mapping[str, str]
    problems: Sequence[str]


def read_ground_truth(folders: Path | Sequence[Path], sufficient: bool = False) -> GroundTruth:
    """Return the gold of a task; of several folders, from the most reliable source in the first that has it.

    With `sufficient`, the `sufficient_files` of a ground truth are required like its other files. Never raises because
    of the folders' content: a damaged file is named among the problems, and the next source is tried.
    """
    definitions = [_read_definition(folder) for folder in ([folders] if isinstance(folders, Path) else folders)]
    problems = [problem for definition in definitions for problem in definition.problems]
    silent: list[str] = []
    files: Sequence[GoldFile] = ()
    source: str | None = None
    confidence: Confidence | None = None
    for definition, candidate in [(definition, candidate) for candidate in _SOURCES for definition in definitions]:
        if candidate.name not in definition.contents:
            continue
        place, content = definition.places[candidate.name], definition.contents[candidate.name]
        gold = candidate.read(content)
        if sufficient and candidate.read is parse_gold:
            gold = _join(gold, parse_alternatives(content))
        if candidate.only_mentions and gold.files:
            gold = _drop_outputs(gold, definitions)
        if gold.unusable:
            problems.append(f"{place}: {gold.unusable} entries contain no usable path")
        if gold.files:
            files, source, confidence = gold.files, place, candidate.confidence
            break
        silent += [place] if candidate.confidence == "high" else []
    problems += [f"{place}: names no file" for place in silent if place != source]
    return GroundTruth(
        files=files,
        symbols=next(filter(None, map(_find_symbols, definitions)), ()),
        chunks=next(filter(None, map(_find_chunks, definitions)), ()),
        expected_edit_files=next(filter(None, map(_find_edits, definitions)), None),
        source=source,
        confidence=confidence,
        problems=tuple(dict.fromkeys(problems)),
    )


def _join(one: GoldFiles, other: GoldFiles) -> GoldFiles:
    return GoldFiles(tuple(dict.fromkeys((*one.files, *other.files))), one.unusable + other.unusable)


def _drop_outputs(gold: GoldFiles, definitions: Sequence[_Definition]) -> GoldFiles:
    """Return files without those that the task asks the agent to write."""
    prose = [definition.contents.get(name) for definition in definitions for name in ("instruction.md", "test.sh")]
    outputs = {path for text in prose if isinstance(text, str) for path in find_output_files(text)}
    return GoldFiles(tuple(file for file in gold.files if not is_output(file.path, outputs)), gold.unusable)


def _read_definition(folder: Path) -> _Definition:
    contents: dict[str, object] = {}
    places: dict[str, str] = {}
    problems: list[str] = []
    for name in dict.fromkeys(["task_spec.json", *(source.name for source in _SOURCES)]):
        for place in _PLACES:
            path = folder / place / name
            relative = path.relative_to(folder).as_posix()
            try:
                content = read_json(path) if name.endswith(_JSON) else read_text(path)
            except UnusableFileError as error:
                problems.append(f"{relative}: {error}")
                continue
            if content is not None:
                contents[name], places[name] = content, relative
                break
    return _Definition(contents, places, problems)


def _find_symbols(definition: _Definition) -> Sequence[GoldSymbol]:
    contents = definition.contents
    required = get_nested(contents.get("task_spec.json"), "artifacts", "oracle", "required_symbols")
    stated = (
        get_nested(contents.get(name), "symbols")
        for name in ("ground_truth.json", "ground_truth_agent.json", "oracle_answer.json")
    )
    return next(filter(None, map(parse_symbols, (required, *stated))), ())


def _find_chunks(definition: _Definition) -> Sequence[GoldChunk]:
    contents = definition.contents
    stated = (
        get_nested(contents.get(name), field)
        for name in ("ground_truth.json", "ground_truth_agent.json")
        for field in ("chunks", "spans")
    )
    chunks = next(filter(None, map(parse_chunks, (_list_defects(contents.get("expected_defects.json")), *stated))), ())
    changes = contents.get("expected_changes.json")
    lines = get_nested(changes, "expected_line_range")
    if chunks or not isinstance(lines, list) or len(lines) != 2:
        return chunks
    expected = parse_chunk(get_nested(changes, "expected_file"), *lines)
    return (expected,) if expected else ()


def _find_edits(definition: _Definition) -> Sequence[GoldFile] | None:
    sources = (read(definition.contents[name]).files for name, read in _EDITS if name in definition.contents)
    return next(filter(None, sources), None)
