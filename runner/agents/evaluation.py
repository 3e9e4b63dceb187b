"""One recorded run, from its folder to what is written of it: its events, and what its retrieval was worth.

Whatever the folder holds gives both files; what could not be read of it is named in them. It knows nothing of other
runs, nor of who else is at work.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic.dataclasses import dataclass as settings

from retrievers.code import hash_code, modules_behind
from retrievers.store import fingerprint
from runner.agents.events.document import Document, events, lazy_events, written
from runner.agents.events.sightings import Sighting, View, choose_richer, create_observer
from runner.agents.formats import read_trace
from runner.agents.measures.stages import artifact, rounded
from runner.agents.reading import read_run
from runner.agents.runs.layout import RunFolder
from runner.agents.runs.outcomes import Outcome, outcome_in, records_in
from runner.agents.runs.provenance import provenance_of
from runner.agents.runs.tasks import Tasks
from runner.agents.runs.walk import place_at
from runner.agents.trace import Observer, ToolCall, Trace
from runner.agents.truth.ground_truth import GroundTruth, ground_truth_in
from runner.agents.truth.paths import File
from runner.config.objects import ConfigError
from runner.metrics.settings import MetricSettings

EVENTS, METRICS = ".retrieval_events.json", ".retrieval_metrics.json"
"""How the files end that are written of a run."""

_HOLDERS = {"agent", "agent_output"}  # the folders in a run's that may hold its trace
_PARTS = ("tests", "solution", "environment")  # of a task's definition
_REWARD = Path("verifier", "reward.txt")
_TASKS_KEPT = 64  # gold of tasks, of which many runs there may be


@settings(frozen=True, config={"extra": "forbid"})
class Reading:
    """How traces and tasks are read, and at which cutoffs rankings are measured.

    `tools` is a YAML file with tools of the user's own. `shell` says whether the files of shell commands count, and
    `sufficient_files` whether gold files of which any one is enough are all required.
    """

    tools: str | None = None
    shell: bool = True
    sufficient_files: bool = False
    k_values: tuple[int, ...] = MetricSettings.k_values

    @property
    def identity(self) -> str:
        """Return a hash of what decides the events of a trace besides its files: settings, tools, code."""
        own = [] if self.tools is None else [Path(self.tools).read_text(encoding="utf-8")]
        return fingerprint(_code(), str(self.shell), str(self.sufficient_files), repr(self.k_values), *own)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What something is made from, by a hash of its files' names, sizes and times, and the newest of these times."""

    fingerprint: str
    newest_ns: int


@dataclass(frozen=True, slots=True)
class Job:
    """A run to evaluate, and from what; `definition` is what of that defines its task."""

    run: RunFolder
    inputs: Inputs
    definition: Inputs


@dataclass(frozen=True)
class Evaluation:
    """Evaluates runs, and writes what comes of each below a folder. It can be sent to another process."""

    reading: Reading
    output: Path

    def __call__(self, job: Job) -> dict[str, Any]:
        """Write a run's events and its metrics, rounded; return these in full precision."""
        run, when = job.run, datetime.fromtimestamp(job.inputs.newest_ns // 10**9, UTC)
        trace = _trace(run, _share_files(_observer(self.reading)))
        document = events(
            trace, _gold(tuple(run.tasks), job.definition, self.reading.sufficient_files), run.provenance, when
        )
        made = artifact(document, _outcome(run.folder, trace), self.reading.k_values)
        of_events, of_metrics = self.files(run.artifact)
        of_events.parent.mkdir(parents=True, exist_ok=True)
        with of_events.open("wb") as file:
            file.writelines(written(document))
        of_metrics.write_bytes(orjson.dumps(rounded(made), option=orjson.OPT_INDENT_2))
        return made

    def files(self, name: str) -> tuple[Path, Path]:
        """Return where the events and the metrics of a run are written, given its artifact's name."""
        return self.output / f"{name}{EVENTS}", self.output / f"{name}{METRICS}"


def jobs_of(runs: Iterable[RunFolder], reading: Reading) -> Iterator[Job]:
    """Yield runs with what they are evaluated from, as that is now. A file that is gone is no part of it."""
    identity = reading.identity
    definitions: dict[tuple[Path, ...], Inputs] = {}
    for run in runs:
        folders = tuple(run.tasks)
        if folders not in definitions:
            definitions[folders] = _inputs([file for folder in folders for file in _files(folder, _PARTS)])
        task = definitions[folders]
        traces = {file for file in (run.trajectory, run.transcript, run.session) if file}
        own = _inputs(sorted({*traces, *_files(run.folder), run.folder / _REWARD}), run.folder.stat().st_mtime_ns)
        what = fingerprint(identity, run.artifact, repr(run.provenance), own.fingerprint, task.fingerprint)
        yield Job(run, Inputs(what, max(own.newest_ns, task.newest_ns)), task)


def events_of(file: Path, reading: Reading, tasks: Tasks) -> Document:
    """Return the events of one trace, made when they are gone through; what lies beside it says whose it is.

    Raises `ConfigError` for no file.
    """
    if not file.is_file():
        raise ConfigError(f"file={file}: {'is a folder; say path=FOLDER' if file.is_dir() else 'does not exist'}")
    folder = file.parent.parent if file.parent.name in _HOLDERS else file.parent
    provenance, folders = provenance_of(folder, records_in(folder), tasks)
    when = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
    return lazy_events(
        read_trace(file, _share_files(_observer(reading))),
        ground_truth_in(folders, reading.sufficient_files),
        provenance,
        when,
    )


def _trace(run: RunFolder, observe: Observer[Sighting]) -> Trace[Sighting]:
    """Read what a run recorded. Without a trajectory, a session has the times that a transcript lacks."""
    if run.trajectory:
        return read_run(run.trajectory, run.transcript or run.session, observe, choose_richer)
    trace = read_run(run.session, run.transcript, observe, choose_richer)
    losses = {what.replace(" in the trajectory", " in the session"): n for what, n in trace.losses.items()}
    return replace(trace, source=trace.source and "transcript", losses=losses)


def _outcome(folder: Path, trace: Trace[Sighting]) -> Outcome:
    """Return how a run ended: what its records say, and what they do not say from its trace."""
    said = outcome_in(folder)
    name, _, version = (trace.harness or "").rpartition(" ")
    told: dict[str, Any] = {
        "cost": trace.cost,
        "tokens": trace.total_tokens,
        "seconds": trace.seconds,
        "agent": name or version or None,
        "agent_version": version if name else None,
        "model": trace.model,
    }
    return replace(said, **{key: value for key, value in told.items() if getattr(said, key) is None})


@lru_cache(1)
def _observer(reading: Reading) -> Observer[Sighting]:
    return create_observer(reading.tools, reading.shell)


def _share_files(observe: Observer[Sighting]) -> Observer[Sighting]:
    """Return an observer for one trace that keeps each file in memory once, however often it is seen."""
    known: dict[File, File] = {}

    def observe_sharing(call: ToolCall) -> Sighting:
        seen = observe(call)
        views = (View(view.category, tuple(known.setdefault(file, file) for file in view.files)) for view in seen.views)
        return replace(seen, views=tuple(views))

    return observe_sharing


@lru_cache(_TASKS_KEPT)
def _gold(folders: tuple[Path, ...], _: Inputs, sufficient: bool) -> GroundTruth:
    return ground_truth_in(folders, sufficient)


def _inputs(files: Iterable[Path], otherwise_ns: int = 0) -> Inputs:
    """Return what these files are; without any, another time is the newest."""
    found = {place: (file.name, status) for place, file in enumerate(files) if (status := _status(file))}
    said = (f"{place} {name} {status.st_size} {status.st_mtime_ns}" for place, (name, status) in found.items())
    return Inputs(fingerprint(*said), max((status.st_mtime_ns for _, status in found.values()), default=otherwise_ns))


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None


def _files(folder: Path, parts: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the files in a folder, and in those of its folders that have these names."""
    if place := place_at(folder):
        yield from (folder / name for name in sorted(place.files))
        for part in parts:
            yield from _files(folder / part) if part in place.folders else ()


@cache
def _code() -> str:
    """Return a hash of the modules and tables that make events and metrics."""
    here = Path(__file__).parent / "events"
    tables = [file.read_text(encoding="utf-8") for file in (here / "tools.yaml", *sorted((here / "schema").iterdir()))]
    return fingerprint(*map(hash_code, sorted(modules_behind(__name__))), *tables)
