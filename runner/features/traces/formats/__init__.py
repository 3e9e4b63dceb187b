"""The formats in which agents record their work: one module reads each, with an entry in `FORMATS`.

A folder of runs is searched for the file names of all formats. The format of a file is then recognised by its content.
What tools do is described in `runner/features/traces/events/tools.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from runner.features.traces.formats import atif, claude_code, cursor
from runner.features.traces.formats.recording import Recording
from runner.features.traces.formats.tolerant import TolerantFile
from runner.features.traces.trace import Observer, Seen, Trace, TraceSource

_BLOCK = 1 << 18


class Format(NamedTuple):
    """A format: the kind of its files, a pattern of bytes that is rare in files of other formats, and its reader.

    A folder of runs is searched for `names`, the likeliest first, and for `sessions`, the agent's own logs. Names that
    the output of any harness may have (`runner.features.traces.runs.layout.OUTPUTS`) need not be listed.
    """

    source: TraceSource
    signs: bytes
    read: Callable[[BufferedReader[Any], Recording[Any]], None]
    names: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


FORMATS: Mapping[str, Format] = {
    "ATIF": Format(
        "trajectory",
        rb'"schema_version"\s*:\s*"ATIF|"(?:tool_call_id|source_call_id|function_name)"\s*:',
        atif.read,
        names=("trajectory.json",),
    ),
    "Claude Code": Format(
        "transcript",
        rb'"type"\s*:\s*"(?:assistant|tool_use)"|"(?:isSidechain|parent_tool_use_id)"\s*:',
        claude_code.read,
        names=("claude-code.txt",),
        sessions=("agent_trace.jsonl", "session.jsonl"),
    ),
    "Cursor": Format(
        "trajectory",
        rb'"schema_version"\s*:\s*"cursor|"type"\s*:\s*"tool_call"|"subtype"\s*:\s*"(?:delta|started|completed)"',
        cursor.read,
    ),
}


def read_trace(path: Path, observe: Observer[Seen], formats: Mapping[str, Format] = FORMATS) -> Trace[Seen]:
    """Read a trace in any of these formats, plain or gzipped; memory use does not grow with its results.

    Never raises because of a file's content: whatever cannot be read is described and counted in the trace's `losses`.
    A file that cannot be opened, is empty, or has no known format gives a trace without a source.
    """
    try:
        recognised = _recognise(path, formats)
        if isinstance(recognised, str):
            return Trace(source=None, losses={recognised: 1})
        raw = TolerantFile(path)
    except OSError as error:
        return Trace(source=None, losses={f"files that cannot be opened ({error.strerror or error})": 1})
    recording = Recording(observe)
    with BufferedReader(raw, _BLOCK) as file:
        recognised.read(file, recording)
    if raw.fault:
        recording.count_loss(f"files that cannot be read completely ({raw.fault})")
    return recording.build_trace(recognised.source)


def _recognise(path: Path, formats: Mapping[str, Format]) -> Format | str:
    """Return the format with the most matches in the first block of the file that has any, or the file's problem."""
    problem = "empty files"
    with BufferedReader(TolerantFile(path), _BLOCK) as file:
        while block := file.read(_BLOCK):
            problem = "files of an unknown format"
            signs = {name: len(re.findall(candidate.signs, block)) for name, candidate in formats.items()}
            best = max(signs, key=signs.__getitem__)
            if signs[best]:
                return formats[best]
    return problem
