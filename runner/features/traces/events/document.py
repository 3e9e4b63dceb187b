"""Build the document of a run: what an agent retrieved, step by step, and what it should have retrieved.

Nothing here computes a measure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import orjson

from runner.config.objects import ConfigError
from runner.features.traces.events.gold_matching import match_truth
from runner.features.traces.events.own_files import OwnFiles
from runner.features.traces.events.records import (
    SCHEMA_VERSION,
    CoverageRecord,
    EventDocument,
    EventRecord,
    EventSummary,
    ProvenanceRecord,
    TruthRecord,
    check_document,
)
from runner.features.traces.events.sightings import Sighting, View
from runner.features.traces.long_json import iter_indented
from runner.features.traces.runs.provenance import Provenance
from runner.features.traces.trace import Step, Trace
from runner.features.traces.truth.gold_files import GoldFile
from runner.features.traces.truth.ground_truth import GroundTruth
from runner.features.traces.truth.paths import (
    ROOTS,
    File,
    locate_in_repository,
    normalise_path,
    parse_gold_file,
    short_name,
)

_DIGITS = 3  # of seconds
_MAX_TOKENS = 2**53  # JSON numbers beyond it are not exact everywhere
_RECREATE = "delete it, and run the command that wrote it again"


def build_document(
    trace: Trace[Sighting],
    truth: GroundTruth,
    provenance: Provenance,
    generated_at: datetime,
    roots: Sequence[str] = ROOTS,
) -> EventDocument:
    """Return the document of a trace; it is valid, and identical for identical input.

    Paths are relative to their repository: without `roots` and the agent's working directories, and prefixed by
    `repo::` if there are several repositories. A shell command that both reads and writes becomes two events of one
    step. `generated_at` has a time zone.
    """
    names = _name_files(trace, truth, roots)
    targets = dict.fromkeys(name for name in names.values() if name)
    ground_truth = match_truth(_truth_record(truth), targets)
    matches = ground_truth.get("matches", {})
    gold = {*ground_truth["files"]}
    hits = {name: file for name, file in matches.items() if file in gold}
    events = [_event(step, view, names, hits) for step in trace.steps for view in step.seen.views]
    document: EventDocument = {
        "schema_version": SCHEMA_VERSION,
        "generated_at": generated_at.isoformat(timespec="seconds"),
        "provenance": cast("ProvenanceRecord", asdict(provenance)),
        "coverage": _coverage(trace, truth),
        "ground_truth": ground_truth,
        "events": events,
        "summary": _summarise(events, len(ground_truth["files"])),
    }
    check_document(document)
    return document


def iter_json(document: EventDocument) -> Iterator[bytes]:
    """Yield a document as indented JSON, one event at a time."""
    return iter_indented(document, "events", document["events"])


def load_document(file: Path) -> EventDocument:
    """Return a document of any version 1.x, its files matched with the ground truth.

    Raises `ConfigError`, in one line.
    """
    try:
        content: object = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        problem = f"{file}: cannot be read as a document of retrieval events ({error}); {_RECREATE}"
        raise ConfigError(problem) from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not (isinstance(version, str) and version.split(".")[0] == "1"):
        problem = f"{file}: schema_version is {version!r}, but this program reads 1.x and writes {SCHEMA_VERSION}"
        raise ConfigError(problem)
    try:
        document = check_document(content, str(file), extended=True)
    except ConfigError as error:
        raise ConfigError(f"{error}; {_RECREATE}") from error
    return match_document(document)


def match_document(document: EventDocument) -> EventDocument:
    """Return a document whose files are matched with its ground truth; version 1.0 has no matches."""
    if "matches" in document["ground_truth"]:
        return document
    targets = dict.fromkeys(name for event in document["events"] for name in event["target_files"])
    return {**document, "ground_truth": match_truth(document["ground_truth"], targets)}


def _name_files(trace: Trace[Sighting], truth: GroundTruth, roots: Sequence[str]) -> dict[File, str]:
    """Return the name of each file of a trace in its document; "" for a folder that is a root."""
    stripped = [normalise_path(root) for root in (*roots, *sorted(trace.cwds, key=len))]
    seen = dict.fromkeys(file for step in trace.steps for view in step.seen.views for file in view.files)
    inside = {file: locate_in_repository(File(_clean(file.path), file.repo), stripped) for file in seen}
    gold = map(parse_gold_file, truth.files)
    several = len({short_name(file.repo) for file in (*inside.values(), *gold) if file.repo}) > 1
    names = {file: _format_file(own) if several else own.path for file, own in inside.items()}
    return {file: "" if name in (".", "/") else name for file, name in names.items()}


def _event(step: Step[Sighting], view: View, names: Mapping[File, str], gold: Mapping[str, str]) -> EventRecord:
    sighting = step.seen
    paths: dict[str, str] = {}
    for file in view.files:
        if name := names[file]:
            paths.setdefault(name, _clean(file.path))
    hits = list(dict.fromkeys(gold[name] for name in paths if name in gold))
    event: EventRecord = {
        "step_index": step.index,
        "timestamp": None if step.time is None else _format_time(step.time),
        "tool_name": _clean(sighting.tool),
        "tool_category": view.category,
        "is_mcp": sighting.is_mcp,
        "target_files": list(paths),
        "hits_ground_truth": bool(hits),
        "matched_ground_truth_files": hits,
        "is_subagent": step.subagent,
        "cumulative_tokens": step.tokens if step.tokens is not None and 0 <= step.tokens < _MAX_TOKENS else None,
        "elapsed_seconds": _round_seconds(step.elapsed_s),
    }
    if any(name != original for name, original in paths.items()):
        event["original_paths"] = list(paths.values())
    if shown := {(names[file], lines): None for file, lines in view.lines if names[file]}:
        event["target_lines"] = [
            {"file": name, "line_start": lines.start, "line_end": lines.end} for name, lines in shown
        ]
    if sighting.query:
        event["arguments"] = {"query": _clean(sighting.query)}
    if sighting.symbol:
        event["target_symbols"] = [_clean(sighting.symbol)]
    if sighting.inferred:
        event["inferred"] = sighting.inferred
    return event


def _coverage(trace: Trace[Sighting], truth: GroundTruth) -> CoverageRecord:
    losses = [f"{what} ({times})" for what, times in trace.losses.items()]
    nothing = [] if trace.source and trace.steps else ["no tool calls" if trace.source else "no usable trace"]
    return {
        "has_trajectory": trace.source in ("trajectory", "merged"),
        "has_transcript": trace.source in ("transcript", "merged"),
        "has_ground_truth": bool(truth.files),
        "has_chunk_ground_truth": bool(truth.chunks),
        "trace_source": trace.source,
        "degraded_reason": _clean("; ".join((*nothing, *losses))) or None,
        "ground_truth_source": truth.source and _clean(truth.source),
        "ground_truth_confidence": truth.confidence,
        "ground_truth_problems": [_clean(problem) for problem in truth.problems],
    }


def _truth_record(truth: GroundTruth) -> TruthRecord:
    record: TruthRecord = {"files": [_name_gold(file) for file in truth.files], "matches": {}}
    if truth.symbols:
        record["symbols"] = [
            {"file": _clean(symbol.path), "symbol": _clean(symbol.name), "repo": symbol.repo and _clean(symbol.repo)}
            for symbol in truth.symbols
        ]
    if truth.chunks:
        record["chunks"] = [
            {
                "file": _name_gold(GoldFile(_clean(chunk.path))),
                "line_start": chunk.start,
                "line_end": chunk.end,
                "annotation": chunk.note and _clean(chunk.note),
            }
            for chunk in truth.chunks
        ]
    if truth.expected_edit_files is not None:
        record["expected_edit_files"] = [_name_gold(file) for file in truth.expected_edit_files]
    return record


def _summarise(events: Collection[EventRecord], n_gold: int) -> EventSummary:
    categories: Counter[str] = Counter()
    files: set[str] = set()
    hit: set[str] = set()
    own = OwnFiles()
    first: int | None = None
    for event in events:
        category = event["tool_category"]
        categories[category] += 1
        files |= {name.lower() for name in event["target_files"]}
        hits = {file for file in event.get("matched_ground_truth_files", ()) if own.is_retrieval(file, category)}
        hit |= hits
        first = event["step_index"] if first is None and hits else first
    by_mcp = sum(event["is_mcp"] for event in events)
    return {
        "total_events": len(events),
        "mcp_events": by_mcp,
        "local_events": len(events) - by_mcp,
        "unique_files_accessed": len(files),
        "ground_truth_files_hit": len(hit),
        "ground_truth_files_total": n_gold,
        "first_ground_truth_hit_step": first,
        "events_by_category": dict(sorted(categories.items())),
    }


def _name_gold(file: GoldFile) -> str:
    return _format_file(parse_gold_file(file))


def _format_file(file: File) -> str:
    return f"{_clean(short_name(file.repo))}::{_clean(file.path)}" if file.repo else _clean(file.path)


def _round_seconds(value: float | None) -> float | None:
    return round(value, _DIGITS) if value is not None and math.isfinite(value) else None


def _format_time(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _clean(text: str) -> str:
    if text.isascii():  # return the same object, so that it is in memory only once
        return text
    return text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates are valid only within JSON escapes
