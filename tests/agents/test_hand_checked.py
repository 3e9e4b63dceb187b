"""Events against what agents saw, listed by reading their traces: files that were opened, or shown by path.

What harnesses cut out of results is listed as far as it can be read. A path is that within its repository, where the
trace tells which folder that is. Of what was opened without a word of it being printed, it is open whether it was seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.agents.events.document import events
from runner.agents.events.sightings import looking, richer
from runner.agents.reading import read_run
from runner.agents.runs.provenance import Provenance
from runner.agents.truth.ground_truth import GroundTruth

LISTS = sorted((Path(__file__).parent / "hand_checked").glob("*.json"))
RUN = Provenance("run", "task", "configuration", "suite")


def files_of(trace: Path) -> set[str]:
    document = events(read_run(trace, None, looking(), richer), GroundTruth(), RUN, datetime(2026, 1, 1, tzinfo=UTC))
    return {
        _line("written" if event["tool_category"] == "file_write" else "seen", name)
        for event in document["events"]
        for name in event["target_files"]
    }


def _line(kind: str, name: str) -> str:
    return f"{kind} {name.rpartition('::')[2].lower()}"


def compared(traces: Path, file: Path) -> tuple[set[str], set[str]]:
    lists: Mapping[str, list[str]] = json.loads(file.read_text())
    agent_saw = {_line(kind, name) for kind in ("seen", "written") for name in lists[kind]}
    unsure = {_line("seen", name) for name in lists.get("opened without a word of it", ())}
    return files_of(traces / _trace(file)) - (unsure - agent_saw), agent_saw


def _trace(file: Path) -> str:
    return json.loads(file.read_text()).get("trace") or f"trials/{file.stem}/trajectory.json"


@pytest.mark.parametrize("name", [file.stem for file in LISTS])
def test_precision_and_recall_of_each_trace_s_events_are_at_least_95_percent(real_traces: Path, name: str) -> None:
    (file,) = (file for file in LISTS if file.stem == name)
    events_have, agent_saw = compared(real_traces, file)
    both = events_have & agent_saw
    extra, missed = sorted(events_have - agent_saw), sorted(agent_saw - events_have)
    assert len(both) >= 0.95 * len(events_have), f"precision {len(both)}/{len(events_have)}, not seen: {extra}"
    assert len(both) >= 0.95 * len(agent_saw), f"recall {len(both)}/{len(agent_saw)}, missed: {missed}"


def test_traces_of_all_kinds_are_listed() -> None:
    traces = [_trace(file) for file in LISTS]
    assert (sum(trace.startswith("trials") for trace in traces), len({*traces})) == (21, 31)
