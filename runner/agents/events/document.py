"""What an agent retrieved, step by step, beside what it should have: one document of a run of a task.

The schema is that of the published evaluation of retrieval by code agents (CodeScaleBench, "Retrieval Evaluation
Specification", version 1.0) with more fields that may be left out: version 1.1. It knows nothing of how a trace was
read, and measures nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from runner.agents.events.own_files import OwnFiles
from runner.agents.events.sightings import Sighting, View
from runner.agents.long_json import indented
from runner.agents.runs.provenance import Provenance
from runner.agents.trace import Step, Trace
from runner.agents.truth.gold_files import GoldFile
from runner.agents.truth.ground_truth import GroundTruth
from runner.agents.truth.paths import ROOTS, File, gold_file, in_repository, match_names, plain, short
from runner.config.objects import ConfigError

SCHEMA_VERSION = "1.1"

Document = dict[str, Any]
"""A document of events, as its schema has it."""

_SCHEMA = Path(__file__).parent / "schema" / "retrieval_events.json"
_DIGITS = 3  # of seconds
_MOST = 2**53  # tokens: beyond it, JSON's numbers are not exact everywhere
_ANEW = "delete it, and the command that made it makes it anew"


def events(
    trace: Trace[Sighting],
    truth: GroundTruth,
    provenance: Provenance,
    generated_at: datetime,
    roots: Sequence[str] = ROOTS,
) -> Document:
    """Return the document of a trace: valid, and the same but for `generated_at` whenever the input is the same.

    Paths are written as their repository has them: without `roots` and the folders that the agent was in, and with
    `repo::` before them where there are several repositories. A shell command that both reads and writes is two events
    of one step. `generated_at` has a time zone.
    """
    document = lazy_events(trace, truth, provenance, generated_at, roots)
    return {**document, "events": list(document["events"])}


def lazy_events(
    trace: Trace[Sighting],
    truth: GroundTruth,
    provenance: Provenance,
    generated_at: datetime,
    roots: Sequence[str] = ROOTS,
) -> Document:
    """Return the document of a trace, whose events are made one at a time, and again, whenever they are gone through.

    See `events`.
    """
    names = _Names(trace, [gold_file(file) for file in truth.files], roots)
    document = {
        "schema_version": SCHEMA_VERSION,
        "generated_at": generated_at.isoformat(timespec="seconds"),
        "provenance": {key: value and _clean(value) for key, value in asdict(provenance).items()},
        "coverage": _coverage(trace, truth),
        "ground_truth": _ground_truth(truth, names),
        "events": [],
        "summary": _summary(_Events(trace.steps, names), names.gold),
    }
    check(document)
    return {**document, "events": _Events(trace.steps, names)}


def written(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a document as JSON, an event at a time."""
    return indented(document, "events", document["events"])


def load_events(file: Path) -> Document:
    """Return a document of any version 1.x, with what a later one adds to it. Raises `ConfigError`, in one line."""
    try:
        document = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: cannot be read as a document of retrieval events ({error}); {_ANEW}") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not (isinstance(version, str) and version.split(".")[0] == "1"):
        raise ConfigError(f"{file}: schema_version is {version!r}; this program reads 1.x, and writes {SCHEMA_VERSION}")
    try:
        check(document, str(file), extended=True)
    except ConfigError as error:
        raise ConfigError(f"{error}; {_ANEW}") from error
    return document  # type: ignore[no-any-return]  # the check says that it is one


def check(document: Document, place: str = "events", extended: bool = False) -> None:
    """Raise `ConfigError`, which names the first place that is wrong, unless the schema allows a document.

    `extended` allows fields that the schema does not know.
    """
    _refuse(_validator(extended), document, place)


class _Events:
    """The events of steps, which are made, and checked, when they are gone through."""

    def __init__(self, steps: Sequence[Step[Sighting]], names: _Names) -> None:
        self._steps, self._names = steps, names

    def __iter__(self) -> Iterator[dict[str, Any]]:
        validator = _validator(extended=False, part="retrieval_event")
        for step in self._steps:
            for view in step.seen.views:
                event = _event(step, view, self._names)
                _refuse(validator, event, f"events: step {step.index}")
                yield event


class _Names:
    """What each file of a trace is called in its document, and which of them are gold."""

    def __init__(self, trace: Trace[Sighting], gold: Sequence[File], roots: Sequence[str]) -> None:
        self.gold = [_named(file) for file in gold]
        stripped = [plain(root) for root in (*roots, *sorted(trace.cwds, key=len))]
        seen = dict.fromkeys(file for step in trace.steps for view in step.seen.views for file in view.files)
        inside = {file: in_repository(File(_clean(file.path), file.repo), stripped) for file in seen}
        repos = {short(file.repo) for file in (*inside.values(), *gold) if file.repo}
        self._names = {file: _named(own) if len(repos) > 1 else own.path for file, own in inside.items()}
        self.matches = match_names(self._names.values(), self.gold)

    def of(self, files: Iterable[File]) -> dict[str, str]:
        """Return the names of files, each with its path in the trace."""
        named: dict[str, str] = {}
        for file in files:
            if self._names[file] not in ("", ".", "/"):
                named.setdefault(self._names[file], _clean(file.path))
        return named

    def gold_of(self, names: Iterable[str]) -> list[str]:
        """Return the gold files that names mean, each once."""
        return list(dict.fromkeys(self.matches[name] for name in names if name in self.matches))

    def as_gold(self, file: File) -> str:
        """Return what a file that the task names is called: as one of its gold files, where it is one."""
        name = _named(file)
        return match_names([name], self.gold).get(name, name)


def _event(step: Step[Sighting], view: View, names: _Names) -> dict[str, Any]:
    sighting, files = step.seen, names.of(view.files)
    hits = names.gold_of(files)
    event: dict[str, Any] = {
        "step_index": step.index,
        "timestamp": None if step.time is None else _moment(step.time),
        "tool_name": _clean(sighting.tool),
        "tool_category": view.category,
        "is_mcp": sighting.is_mcp,
        "target_files": list(files),
        "hits_ground_truth": bool(hits),
        "matched_ground_truth_files": hits,
        "is_subagent": step.subagent,
        "cumulative_tokens": step.tokens if step.tokens is not None and 0 <= step.tokens < _MOST else None,
        "elapsed_seconds": _seconds(step.elapsed_s),
    }
    if any(name != original for name, original in files.items()):
        event["original_paths"] = list(files.values())
    if sighting.query:
        event["arguments"] = {"query": _clean(sighting.query)}
    if sighting.symbol:
        event["target_symbols"] = [_clean(sighting.symbol)]
    if sighting.inferred:
        event["inferred"] = sighting.inferred
    return event


def _coverage(trace: Trace[Sighting], truth: GroundTruth) -> dict[str, Any]:
    lost = [f"{what} ({times})" for what, times in trace.losses.items()]
    nothing = [] if trace.source and trace.steps else ["no tool calls" if trace.source else "no usable trace"]
    return {
        "has_trajectory": trace.source in ("trajectory", "merged"),
        "has_transcript": trace.source in ("transcript", "merged"),
        "has_ground_truth": bool(truth.files),
        "has_chunk_ground_truth": bool(truth.chunks),
        "trace_source": trace.source,
        "degraded_reason": _clean("; ".join((*nothing, *lost))) or None,
        "ground_truth_source": truth.source and _clean(truth.source),
        "ground_truth_confidence": truth.confidence,
        "ground_truth_problems": [_clean(problem) for problem in truth.problems],
    }


def _ground_truth(truth: GroundTruth, names: _Names) -> dict[str, Any]:
    content: dict[str, Any] = {"files": names.gold, "matches": names.matches}
    if truth.symbols:
        content["symbols"] = [
            {"file": _clean(each.path), "symbol": _clean(each.name), "repo": each.repo and _clean(each.repo)}
            for each in truth.symbols
        ]
    if truth.chunks:
        content["chunks"] = [
            {
                "file": names.as_gold(gold_file(GoldFile(_clean(each.path)))),
                "line_start": each.start,
                "line_end": each.end,
                "annotation": each.note and _clean(each.note),
            }
            for each in truth.chunks
        ]
    if truth.expected_edit_files is not None:
        content["expected_edit_files"] = [names.as_gold(gold_file(file)) for file in truth.expected_edit_files]
    return content


def _summary(events: Iterable[Mapping[str, Any]], gold: Sequence[str]) -> dict[str, Any]:
    categories: Counter[str] = Counter()
    files: set[str] = set()
    hit: set[str] = set()
    own = OwnFiles()
    first, by_mcp = None, 0
    for event in events:
        categories[event["tool_category"]] += 1
        files |= {name.lower() for name in event["target_files"]}
        hits = {file for file in event["matched_ground_truth_files"] if own.is_retrieval(file, event["tool_category"])}
        hit |= hits
        first = event["step_index"] if first is None and hits else first
        by_mcp += event["is_mcp"]
    return {
        "total_events": categories.total(),
        "mcp_events": by_mcp,
        "local_events": categories.total() - by_mcp,
        "unique_files_accessed": len(files),
        "ground_truth_files_hit": len(hit),
        "ground_truth_files_total": len(gold),
        "first_ground_truth_hit_step": first,
        "events_by_category": dict(sorted(categories.items())),
    }


def _named(file: File) -> str:
    return f"{_clean(short(file.repo))}::{_clean(file.path)}" if file.repo else _clean(file.path)


def _seconds(value: float | None) -> float | None:
    return round(value, _DIGITS) if value is not None and math.isfinite(value) else None


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _clean(text: str) -> str:
    if text.isascii():  # the same text, which then is in memory once
        return text
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is text in JSON, and nowhere else


def _refuse(validator: jsonschema_rs.Validator, value: object, place: str) -> None:
    for error in validator.iter_errors(value):
        where = "/".join(str(part) for part in error.instance_path) or "the document"
        raise ConfigError(f"{place}: {where}: {error.message[:300]}")


@cache
def _validator(extended: bool, part: str | None = None) -> jsonschema_rs.Validator:
    """Return a validator of documents, or of a part of them by the name of its definition."""
    schema = orjson.loads(_SCHEMA.read_bytes())
    if part:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{part}"}
    return jsonschema_rs.validator_for(_open(schema) if extended else schema, validate_formats=True)


def _open(schema: Any) -> Any:  # noqa: ANN401 (any JSON)
    if isinstance(schema, list):
        return [_open(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _open(part) for key, part in schema.items() if (key, part) != ("additionalProperties", False)}
