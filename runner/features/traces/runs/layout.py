"""Find recorded runs: folders with a trace or other output of a run, in any arrangement.

A trace is found by its name, which a format lists (`runner.features.traces.formats`). Its content is not read here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.config.objects import ConfigError
from runner.features.traces.formats import FORMATS, Format
from runner.features.traces.runs.outcomes import Records, read_records
from runner.features.traces.runs.provenance import Provenance, find_provenance, is_task_folder
from runner.features.traces.runs.tasks import Tasks
from runner.features.traces.runs.walk import FolderContent, list_folder, walk_folders

_HOLDERS = ("agent", "", "agent_output")  # the subfolders that may contain a run's trace, likeliest first

_HARNESSES = ("codex", "cursor", "gemini", "copilot", "openhands")
OUTPUTS = (
    *(f"{harness}-code.txt" for harness in _HARNESSES),
    "openhands.txt",
    "transcript.jsonl",
    "transcript.txt",
    "agent_stdout.log",
)
"""The names of files with the output of a harness, in any format."""
_PACKED = ".gz"

_LEFT_BEHIND = {"result.json", "results.json", "task_metrics.json"}
_PARTS = {"agent", "agent_output"}  # parts of a run with records of their own
_NOT_ENTERED = {"verifier", "retrieval_events"}  # the grader of a run, and files made from it
_LONGEST_NAME = 200  # leaves room for suffixes within the 255 bytes of a file name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run of an agent: the files of its trace, and its provenance.

    `artifact` is a relative path without a suffix, unique among the runs and safe as a file name: `<config>/<task>`,
    extended if another run already has it. `tasks` are the folders that define its task.
    """

    folder: Path
    provenance: Provenance
    artifact: str
    trajectory: Path | None = None
    transcript: Path | None = None
    session: Path | None = None
    tasks: Sequence[Path] = ()


class _TraceNames(NamedTuple):
    """The file names of traces by their role in a run, the likeliest first; `every` includes compressed ones."""

    trajectories: Sequence[str]
    transcripts: Sequence[str]
    sessions: Sequence[str]
    every: frozenset[str]


def _list_names(formats: Mapping[str, Format]) -> _TraceNames:
    trajectories = [name for known in formats.values() if known.source == "trajectory" for name in known.names]
    transcripts = [name for known in formats.values() if known.source != "trajectory" for name in known.names]
    sessions = [name for known in formats.values() for name in known.sessions]
    plain = (*trajectories, *transcripts, *OUTPUTS, *sessions)
    every = frozenset(name + end for name in plain for end in ("", _PACKED))
    return _TraceNames(trajectories, (*transcripts, *OUTPUTS), sessions, every)


def find_runs(path: Path, tasks: Tasks | None = None, formats: Mapping[str, Format] = FORMATS) -> Iterator[RunFolder]:
    """Yield the runs in a folder, which may itself be one, ordered by path.

    A folder is a run if it has a trace; or, for a run without a trace, if it has other output of a run and no run below
    it. Raises `ConfigError` if there is no such folder.
    """
    if not path.is_dir():
        raise ConfigError(
            f"path={path}: {'expected a folder of runs, found a file' if path.exists() else 'no such folder'}"
        )
    taken: set[str] = set()
    names = _list_names(formats)
    for place, traces in _iter_candidates(path, names.every):
        records = read_records(place.path, place.files)
        if not traces and _sums_up_others(records):
            continue
        provenance, folders = find_provenance(place.path, records, tasks or Tasks())
        artifact = next(name for name in _iter_names(provenance, place.path) if name.casefold() not in taken)
        taken.add(artifact.casefold())
        yield RunFolder(
            folder=place.path,
            provenance=provenance,
            artifact=artifact,
            trajectory=_select_trace(place.path, names.trajectories, traces),
            transcript=_select_trace(place.path, names.transcripts, traces),
            session=_select_trace(place.path, names.sessions, traces)
            or (_find_session(place.path) if "agent" in place.folders else None),
            tasks=folders,
        )


Traces = Mapping[str, frozenset[str]]
"""The names of the traces of a run by subfolder; "" is the run's folder itself."""


def _iter_candidates(path: Path, names: frozenset[str]) -> Iterator[tuple[FolderContent, Traces]]:
    """Yield the folders with a trace, and those without one that look like a run and have no such folder below."""
    waiting: tuple[FolderContent, Traces] | None = None
    for place, traces in _iter_places(path, names):
        if not traces and not _looks_like_a_run(place):
            continue
        if waiting and (waiting[1] or not place.path.is_relative_to(waiting[0].path)):
            yield waiting
        waiting = place, traces
    if waiting:
        yield waiting


def _iter_places(path: Path, names: frozenset[str]) -> Iterator[tuple[FolderContent, Traces]]:
    """Yield each folder with its traces, but not the subfolders that contain the trace of the folder above."""
    held: set[Path] = set()
    for place in walk_folders(path, enters=lambda name: name not in _NOT_ENTERED):
        if place.path in held:
            continue
        traces = {"": _list_traces(place, names)}
        for holder in set(_HOLDERS) & set(place.folders):
            below = list_folder(place.path / holder)
            traces[holder] = _list_traces(below, names) if below else frozenset()
        own = {holder: listed for holder, listed in traces.items() if listed}
        held |= {place.path / holder for holder in own if holder}
        yield place, own


def _list_traces(place: FolderContent, names: frozenset[str]) -> frozenset[str]:
    """Return the names of the traces in a folder; a subfolder with such a name is a trace that cannot be read."""
    return (place.files | {*place.folders}) & names


def _looks_like_a_run(place: FolderContent) -> bool:
    if place.path.name in _PARTS:
        return False
    is_empty = not place.files and not place.folders
    return bool(place.files & _LEFT_BEHIND) or "agent" in place.folders or (is_empty and is_task_folder(place.path))


def _sums_up_others(records: Records) -> bool:
    """Return whether a result is that of a batch: the trials that it counts are elsewhere or were deleted."""
    return "n_total_trials" in records.contents.get("result.json", {})


def _select_trace(folder: Path, names: Iterable[str], traces: Traces) -> Path | None:
    """Return the likeliest trace of one kind; one that is empty or not a file only if all are."""
    either = [name + end for name in names for end in ("", _PACKED)]
    paths = [folder / holder / name for holder in _HOLDERS for name in either if name in traces.get(holder, ())]
    return next((path for path in paths if path.is_file() and path.stat().st_size), paths[0] if paths else None)


def _find_session(folder: Path) -> Path | None:
    """Return the session log in the agent's own configuration folder, but not one of a subagent."""
    projects = folder / "agent" / "sessions" / "projects"
    paths = (path for end in ("", _PACKED) for path in projects.glob(f"*/*.jsonl{end}"))
    return min((path for path in paths if not path.name.startswith("agent-")), default=None)


def _iter_names(provenance: Provenance, folder: Path) -> Iterator[str]:
    """Yield names for the artifact of a run, shortest first; the last is unique."""
    config, name = _format_name(provenance.config_name), provenance.task_name
    yield f"{config}/{_format_name(name)}"
    name = f"{name}--{provenance.run_id}"
    yield f"{config}/{_format_name(name)}"
    if provenance.trial_name:
        name = f"{name}--{provenance.trial_name}"
        yield f"{config}/{_format_name(name)}"
    yield f"{config}/{_format_name(name)}--{_hash(str(folder.absolute()))}"


def _format_name(name: str) -> str:
    """Return a name that is safe for a file: no separators, no leading dot; a truncated name ends in its digest."""
    safe = re.sub(r"[^\w.+@=-]", "_", name)
    safe = re.sub(r"^\.+", "_", safe) or "_"
    return safe if len(safe.encode()) <= _LONGEST_NAME else f"{safe[: _LONGEST_NAME // 4]}~{_hash(name)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]
