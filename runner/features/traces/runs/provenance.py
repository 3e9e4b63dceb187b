"""Find the provenance of a run: run, task, configuration, suite and model, from its records and its path."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from runner.features.traces.runs.outcomes import Records, find_agent, find_model
from runner.features.traces.runs.tasks import Tasks, strip_decoration

UNKNOWN = "unknown"

_STAGES = ("staging", "official")
_SHELVES = ("archive", "_raw")  # folders of runs within a stage
_CONTAINERS = {"runs", "trials", "studies", "results", "benchmarks", "tasks", *_STAGES, *_SHELVES}
_BATCH = re.compile(r"\d{4}-\d{2}-\d{2}_+\d{2}-\d{2}-\d{2}")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_REPEAT = re.compile(r"(?:rep|repeat|attempt|trial|seed)[-_]?\d+")


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of a trace; see `ProvenanceRecord`."""

    run_id: str
    task_name: str
    config_name: str
    benchmark: str
    batch_timestamp: str | None = None
    trial_name: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class _Position:
    """The parts of a run folder's path: its name, the folders above it, repeats below it, and its batch.

    `run_id` and `config_name` come from `runs/{staging,official}/<run>/<config>/`; elsewhere they are None.
    """

    name: str
    above: Sequence[str]
    repeats: Sequence[str]
    batch: str | None
    run_id: str | None = None
    config_name: str | None = None


def find_provenance(folder: Path, records: Records, tasks: Tasks) -> tuple[Provenance, Sequence[Path]]:
    """Return the provenance of the run in a folder, and the folders that define its task.

    For the task, records take precedence over the path; for run and configuration, the path takes precedence within
    `runs/{staging,official}/<run>/<config>/`.
    """
    position = _parse_path(folder)
    task_name, folders = _find_task(position, records, tasks)
    config_name = position.config_name or _find_config(position, records, task_name)
    suite = _find_suite(records)
    folders = [path for path in folders if path.parent.name == suite] or folders
    beside = folders[0].parent.name if folders else UNKNOWN
    trial = records.first_text("result.json: trial_name") or "-".join(position.repeats) or position.name
    provenance = Provenance(
        run_id=position.run_id or _find_run(position, passed={position.name, task_name, config_name}),
        task_name=task_name,
        config_name=config_name,
        benchmark=(suite or UNKNOWN) if beside in {UNKNOWN, *_CONTAINERS} else beside,
        batch_timestamp=position.batch,
        trial_name=None if trial == task_name else trial,
        model=find_model(records),
    )
    return _replace_unprintable(provenance), folders


def is_task_folder(folder: Path) -> bool:
    """Return whether a folder is that of a task in `runs/{staging,official}/<run>/<config>/`."""
    below = _below_stage(folder.absolute().parts)
    return len(below) == 3 and not _BATCH.fullmatch(below[2])


def _replace_unprintable(provenance: Provenance) -> Provenance:
    """Replace characters that folder names may have but table lines may not: line breaks and undecodable bytes."""
    names: dict[str, str | None] = asdict(provenance)
    printable = {key: _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", name) for key, name in names.items() if name}
    return replace(provenance, **printable)


def _parse_path(folder: Path) -> _Position:
    parts = list(folder.absolute().parts[1:])
    repeats: list[str] = []
    while len(parts) > 1 and _REPEAT.fullmatch(parts[-1]):
        repeats.insert(0, parts.pop())
    batch = next((part for part in reversed(parts) if _BATCH.fullmatch(part)), None)
    below = _below_stage(folder.absolute().parts)
    run_id, config_name = below[:2] if len(below) > 2 else (None, None)
    return _Position(parts[-1] if parts else UNKNOWN, parts[:-1], repeats, batch, run_id, config_name)


def _below_stage(parts: Sequence[str]) -> Sequence[str]:
    for position in range(len(parts) - 1, 0, -1):
        if parts[position] in _STAGES and parts[position - 1] == "runs":
            return [part for part in parts[position + 1 :] if part not in _SHELVES]
    return []


def _find_task(position: _Position, records: Records, tasks: Tasks) -> tuple[str, Sequence[Path]]:
    definition = records.first_text("result.json: config task path", "config.json: task path")
    recorded = [
        records.first_text("result.json: task_name", "results.json: task_id", "task_metrics.json: task_id"),
        PurePosixPath(definition).name if definition else None,
    ]
    signalled = records.first_text("signals.json: task_id")
    placed = (position.name, signalled) if position.config_name else (signalled, position.name)
    names: list[str] = [name for name in [*recorded, *placed] if name]
    above = () if any(recorded) or signalled else reversed(position.above)
    for name in (*names, *above):
        if folders := tasks.find(name):
            return folders[0].name, folders
    return strip_decoration(names[0]), ()


def _find_config(position: _Position, records: Records, task_name: str) -> str:
    recorded = records.first_text(
        "task_metrics.json: config_name",
        "signals.json: config_name",
        "config.json: mode",
        "results.json: config mode",
        "result.json: config_name",
    )
    if recorded:
        return recorded
    if "signals.json" in records.contents and (agent := find_agent(records)):
        return agent  # trials outside runs, distinguished only by their agent
    for name in reversed(position.above):
        if name in _CONTAINERS:
            break
        if name != task_name and not _BATCH.fullmatch(name):
            return name
    return find_agent(records) or UNKNOWN


def _find_suite(records: Records) -> str | None:
    definition = records.first_text("result.json: config task path", "config.json: task path")
    suite = PurePosixPath(definition).parent.name if definition else None
    return suite or records.first_text(
        "task_metrics.json: benchmark",
        "results.json: task_metadata suite",
        "signals.json: benchmark",
        "metadata.json: benchmark",
    )


def _find_run(position: _Position, passed: Collection[str]) -> str:
    """Return the nearest folder above a run that is not named like its task, its configuration, or a container of runs.

    A folder directly within such a container is a run of its own.
    """
    has_passed = False
    for name in reversed(position.above):
        if name in passed or _BATCH.fullmatch(name):
            has_passed = True
        elif name not in _CONTAINERS:
            return name
        elif not has_passed:
            break
    return position.name
