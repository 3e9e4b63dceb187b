"""Where recorded runs lie: folders with a trace or with what a run leaves behind, in any arrangement.

It knows nothing of what is in a trace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.agents.runs.outcomes import Records, records_in
from runner.agents.runs.provenance import Provenance, is_task_place, provenance_of
from runner.agents.runs.tasks import Tasks
from runner.agents.runs.walk import Place, place_at, walked
from runner.config.objects import ConfigError

_HOLDERS = ("agent", "", "agent_output")  # where in a run its trace lies, the likeliest first

_HARNESSES = ("claude", "codex", "cursor", "gemini", "copilot", "openhands")
TRAJECTORIES = ("trajectory.json",)
TRANSCRIPTS = (
    *(f"{harness}-code.txt" for harness in _HARNESSES),
    "openhands.txt",
    "transcript.jsonl",
    "transcript.txt",
    "agent_stdout.log",
)
SESSIONS = ("agent_trace.jsonl", "session.jsonl")
_PACKED = ".gz"
_TRACES = frozenset(name + end for name in (*TRAJECTORIES, *TRANSCRIPTS, *SESSIONS) for end in ("", _PACKED))

_LEFT_BEHIND = {"result.json", "results.json", "task_metrics.json"}
_PARTS = {"agent", "agent_output"}  # of a run, whose records are about that part
_NOT_ENTERED = {"verifier", "retrieval_events"}  # what judged a run, what was made of it
_LONGEST_NAME = 200  # leaves room for what is added, within the 255 bytes of a file's name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run of an agent: where its trace is and whose it is.

    `artifact` is a relative path without a suffix, `<config>/<task>` and more if another run has that, which is safe as
    a file's name and no other run's. `tasks` are the folders that define its task.
    """

    folder: Path
    provenance: Provenance
    artifact: str
    trajectory: Path | None = None
    transcript: Path | None = None
    session: Path | None = None
    tasks: Sequence[Path] = ()


def runs_in(path: Path, tasks: Tasks | None = None) -> Iterator[RunFolder]:
    """Yield the runs in a folder, itself or those below it, in the order of their paths.

    A folder is a run's if it holds a trace, or if it holds what a run leaves behind and no run lies below it: that one
    has no trace. Raises `ConfigError` if there is no such folder.
    """
    if not path.is_dir():
        raise ConfigError(f"path={path}: {'is a file, not a folder of runs' if path.exists() else 'does not exist'}")
    taken: set[str] = set()
    for place, traces in _candidates(path):
        records = records_in(place.path, place.files)
        if not traces and _sums_up_others(records):
            continue
        provenance, folders = provenance_of(place.path, records, tasks or Tasks())
        artifact = next(name for name in _artifact_names(provenance, place.path) if name.casefold() not in taken)
        taken.add(artifact.casefold())
        yield RunFolder(
            folder=place.path,
            provenance=provenance,
            artifact=artifact,
            trajectory=_first(place.path, TRAJECTORIES, traces),
            transcript=_first(place.path, TRANSCRIPTS, traces),
            session=_first(place.path, SESSIONS, traces)
            or (_kept_session(place.path) if "agent" in place.folders else None),
            tasks=folders,
        )


Traces = Mapping[str, frozenset[str]]
"""The names of the traces in a run's folder, by the subfolder that holds them; "" is the folder itself."""


def _candidates(path: Path) -> Iterator[tuple[Place, Traces]]:
    """Yield the folders with a trace, and those without one that look like a run's and have no such folder below."""
    waiting: tuple[Place, Traces] | None = None
    for place, traces in _places(path):
        if not traces and not _looks_like_a_run(place):
            continue
        if waiting and (waiting[1] or not place.path.is_relative_to(waiting[0].path)):
            yield waiting
        waiting = place, traces
    if waiting:
        yield waiting


def _places(path: Path) -> Iterator[tuple[Place, Traces]]:
    """Yield each folder with its traces; one that holds the trace for the folder above it is part of that."""
    held: set[Path] = set()
    for place in walked(path, inside=lambda name: name not in _NOT_ENTERED):
        if place.path in held:
            continue
        traces = {"": _traces(place)}
        for holder in set(_HOLDERS) & set(place.folders):
            below = place_at(place.path / holder)
            traces[holder] = _traces(below) if below else frozenset()
        found = {holder: names for holder, names in traces.items() if names}
        held |= {place.path / holder for holder in found if holder}
        yield place, found


def _traces(place: Place) -> frozenset[str]:
    """Return the names of the traces in a folder; one of them that is a folder is a trace that cannot be read."""
    return (place.files | {*place.folders}) & _TRACES


def _looks_like_a_run(place: Place) -> bool:
    if place.path.name in _PARTS:
        return False
    is_empty = not place.files and not place.folders
    return bool(place.files & _LEFT_BEHIND) or "agent" in place.folders or (is_empty and is_task_place(place.path))


def _sums_up_others(records: Records) -> bool:
    """Say whether a result is that of a batch: the trials that it counts are elsewhere, or were not kept."""
    return "n_total_trials" in records.contents.get("result.json", {})


def _first(folder: Path, names: Iterable[str], traces: Traces) -> Path | None:
    """Return the likeliest of a run's traces of one kind, one that is empty or no file only where all are."""
    either = [name + end for name in names for end in ("", _PACKED)]
    found = [folder / holder / name for holder in _HOLDERS for name in either if name in traces.get(holder, ())]
    return next((path for path in found if path.is_file() and path.stat().st_size), found[0] if found else None)


def _kept_session(folder: Path) -> Path | None:
    """Return the session that an agent's own settings kept; those of its subagents are not the run's."""
    projects = folder / "agent" / "sessions" / "projects"
    kept = (path for end in ("", _PACKED) for path in projects.glob(f"*/*.jsonl{end}"))
    return min((path for path in kept if not path.name.startswith("agent-")), default=None)


def _artifact_names(provenance: Provenance, folder: Path) -> Iterator[str]:
    """Yield names for what is made of a run, shortest first; the last cannot be another run's."""
    config, name = _file_name(provenance.config_name), provenance.task_name
    yield f"{config}/{_file_name(name)}"
    name = f"{name}--{provenance.run_id}"
    yield f"{config}/{_file_name(name)}"
    if provenance.trial_name:
        name = f"{name}--{provenance.trial_name}"
        yield f"{config}/{_file_name(name)}"
    yield f"{config}/{_file_name(name)}--{_digest(str(folder.absolute()))}"


def _file_name(name: str) -> str:
    """Return a name as a file's: no separators, no leading dot; one that is cut short ends in its digest."""
    safe = re.sub(r"[^\w.+@=-]", "_", name)
    safe = re.sub(r"^\.+", "_", safe) or "_"
    return safe if len(safe.encode()) <= _LONGEST_NAME else f"{safe[: _LONGEST_NAME // 4]}~{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]
