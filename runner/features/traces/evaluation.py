"""Evaluate one recorded run: from its folder to the files of its events and of its measures.

Any folder gives both files, which name what could not be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import orjson
from pydantic.dataclasses import dataclass as settings

from retrievers.files import replace_file
from retrievers.store import fingerprint
from runner.config.objects import ConfigError
from runner.features.traces.events.document import build_document, iter_json, load_document
from runner.features.traces.events.records import EventDocument
from runner.features.traces.events.sightings import Sighting, choose_richer, create_observer
from runner.features.traces.formats import read_trace
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import build_artifact, round_numbers
from runner.features.traces.reading import read_run
from runner.features.traces.runs.layout import RunFolder
from runner.features.traces.runs.outcomes import RunOutcome, read_outcome, read_records
from runner.features.traces.runs.provenance import find_provenance
from runner.features.traces.runs.tasks import Tasks
from runner.features.traces.runs.walk import list_folder
from runner.features.traces.trace import Observer, ToolCall, Trace
from runner.features.traces.truth.ground_truth import GroundTruth, read_ground_truth
from runner.features.traces.truth.paths import File
from runner.metrics.settings import RESULTS_VERSION as METRICS_VERSION
from runner.metrics.settings import MetricSettings

RESULTS_VERSION = f"traces 2, {METRICS_VERSION}"

EVENTS, METRICS = ".retrieval_events.json", ".retrieval_metrics.json"
"""The endings of the files that are written for a run."""

_TRACE_FOLDERS = {"agent", "agent_output"}  # the folders of a run that may contain its trace
_PARTS = ("tests", "solution", "environment")  # of a task's definition
_REWARD = Path("verifier", "reward.txt")
_CACHED_TASKS = 64  # ground truths in memory: a task may have many runs


@settings(frozen=True, config={"extra": "forbid"})
class Reading:
    """Settings that decide how traces and tasks are read, and the cutoffs for measuring rankings.

    `tools` is a YAML file that describes the user's own tools. With `shell`, the files of shell commands count. With
    `sufficient_files`, gold files of which any one is enough are all required.
    """

    tools: str | None = None
    shell: bool = True
    sufficient_files: bool = False
    k_values: tuple[int, ...] = MetricSettings.k_values

    @property
    def identity(self) -> str:
        """Return a hash of the settings, tools and code that, besides its files, decide the events of a trace."""
        own = [] if self.tools is None else [Path(self.tools).read_text(encoding="utf-8")]
        return fingerprint(
            RESULTS_VERSION, _read_tools(), str(self.shell), str(self.sufficient_files), repr(self.k_values), *own
        )


@dataclass(frozen=True, slots=True)
class Inputs:
    """The state of some files: a hash of their names, sizes and times, and the newest of these times."""

    fingerprint: str
    newest_ns: int


@dataclass(frozen=True, slots=True)
class Job:
    """A run to evaluate, and its inputs; `definition` is the part of them that defines its task."""

    run: RunFolder
    inputs: Inputs
    definition: Inputs


@dataclass(frozen=True)
class Evaluation:
    """Evaluates runs, and writes the files of each below a folder. It can be sent to another process."""

    reading: Reading
    output: Path

    def __call__(self, job: Job) -> Artifact:
        """Write the events and the rounded measures of a run; return the measures in full precision."""
        run, when = job.run, datetime.fromtimestamp(job.inputs.newest_ns // 10**9, UTC)
        trace = _read_trace(run, _share_files(_create_observer(self.reading)))
        truth = _read_truth(tuple(run.tasks), job.definition, self.reading.sufficient_files)
        document = build_document(trace, truth, run.provenance, when)
        artifact = build_artifact(document, _complete_outcome(run.folder, trace), self.reading.k_values)
        events_file, metrics_file = self.files(run.artifact)
        events_file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(events_file) as new, new.open("wb") as file:
            file.writelines(iter_json(document))
        with replace_file(metrics_file) as new:
            new.write_bytes(orjson.dumps(round_numbers(artifact), option=orjson.OPT_INDENT_2))
        return artifact

    def load_events(self, name: str) -> EventDocument:
        """Return the events of a run, given its artifact's name."""
        return load_document(self.files(name)[0])

    def files(self, name: str) -> tuple[Path, Path]:
        """Return the paths of the events and the measures of a run, given its artifact's name."""
        return self.output / f"{name}{EVENTS}", self.output / f"{name}{METRICS}"


def iter_jobs(runs: Iterable[RunFolder], reading: Reading) -> Iterator[Job]:
    """Yield runs with their inputs in their current state, without files that no longer exist."""
    identity = reading.identity
    definitions: dict[tuple[Path, ...], Inputs] = {}
    for run in runs:
        folders = tuple(run.tasks)
        if folders not in definitions:
            definitions[folders] = _hash_files([file for folder in folders for file in _iter_files(folder, _PARTS)])
        task = definitions[folders]
        traces = {file for file in (run.trajectory, run.transcript, run.session) if file}
        files = sorted({*traces, *_iter_files(run.folder), run.folder / _REWARD})
        own = _hash_files(files, run.folder.stat().st_mtime_ns)
        inputs = fingerprint(identity, run.artifact, repr(run.provenance), own.fingerprint, task.fingerprint)
        yield Job(run, Inputs(inputs, max(own.newest_ns, task.newest_ns)), task)


def read_events(file: Path, reading: Reading, tasks: Tasks) -> EventDocument:
    """Return the events of one trace; the files beside it tell which run it belongs to.

    Raises `ConfigError` if there is no such file.
    """
    if not file.is_file():
        raise ConfigError(
            f"file={file}: {'expected a file, found a folder; set path=FOLDER' if file.is_dir() else 'no such file'}"
        )
    folder = file.parent.parent if file.parent.name in _TRACE_FOLDERS else file.parent
    provenance, folders = find_provenance(folder, read_records(folder), tasks)
    when = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
    trace = read_trace(file, _share_files(_create_observer(reading)))
    return build_document(trace, read_ground_truth(folders, reading.sufficient_files), provenance, when)


def _read_trace(run: RunFolder, observe: Observer[Sighting]) -> Trace[Sighting]:
    """Read the trace of a run. Without a trajectory, a session log supplies times that a transcript lacks."""
    if run.trajectory:
        return read_run(run.trajectory, run.transcript or run.session, observe, choose_richer)
    trace = read_run(run.session, run.transcript, observe, choose_richer)
    losses = {what.replace(" in the trajectory", " in the session"): n for what, n in trace.losses.items()}
    return replace(trace, source=trace.source and "transcript", losses=losses)


def _complete_outcome(folder: Path, trace: Trace[Sighting]) -> RunOutcome:
    """Return how a run ended, from its records, completed by its trace."""
    outcome = read_outcome(folder)
    name, _, version = (trace.harness or "").rpartition(" ")
    of_trace: RunOutcome = {
        "cost": trace.cost,
        "tokens": trace.total_tokens,
        "seconds": trace.seconds,
        "agent": name or version or None,
        "agent_version": version if name else None,
        "model": trace.model,
    }
    known = {key: value for key, value in outcome.items() if value is not None}
    return cast("RunOutcome", {**outcome, **of_trace, **known})


@lru_cache(1)
def _create_observer(reading: Reading) -> Observer[Sighting]:
    return create_observer(reading.tools, reading.shell)


def _share_files(observe: Observer[Sighting]) -> Observer[Sighting]:
    """Return an observer for one trace that keeps each file in memory once, however often it is seen."""
    known: dict[File, File] = {}

    def share(file: File) -> File:
        return known.setdefault(file, file)

    def observe_sharing(call: ToolCall) -> Sighting:
        seen = observe(call)
        views = [
            replace(view, files=tuple(map(share, view.files)), lines=tuple((share(file), n) for file, n in view.lines))
            for view in seen.views
        ]
        return replace(seen, views=tuple(views))

    return observe_sharing


@lru_cache(_CACHED_TASKS)
def _read_truth(folders: tuple[Path, ...], _: Inputs, sufficient: bool) -> GroundTruth:
    return read_ground_truth(folders, sufficient)


def _hash_files(files: Iterable[Path], default_ns: int = 0) -> Inputs:
    """Return the state of files; the default is the newest time if there are none."""
    states = {place: (file.name, status) for place, file in enumerate(files) if (status := _stat(file))}
    lines = (f"{place} {name} {status.st_size} {status.st_mtime_ns}" for place, (name, status) in states.items())
    return Inputs(fingerprint(*lines), max((status.st_mtime_ns for _, status in states.values()), default=default_ns))


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None


def _iter_files(folder: Path, parts: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the files in a folder, and in its subfolders of these names."""
    if content := list_folder(folder):
        yield from (folder / name for name in sorted(content.files))
        for part in parts:
            yield from _iter_files(folder / part) if part in content.folders else ()


@cache
def _read_tools() -> str:
    """Return the table of known tools, which determines events."""
    return (Path(__file__).parent / "events" / "tools.yaml").read_text(encoding="utf-8")
