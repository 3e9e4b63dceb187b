"""Compares events with hand-checked lists of what agents saw: files that were opened, or shown by path.

What harnesses cut out of results is listed as far as it can be read. Paths are relative to their repository if the
trace shows which folder that is. Whether a file was seen that was opened without a word of it being printed is left
open. A quarter of the lists is held back: rules are made by reading the others, and the held-back score shows whether
they carry over to traces that nobody tuned them on.

Names that one command lists from several folders with no line between them (`ls a; ls b`) are left open too, because
only their order shows the folder of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.features.traces.events.document import build_document
from runner.features.traces.events.sightings import choose_richer, create_observer
from runner.features.traces.reading import read_run
from runner.features.traces.runs.provenance import Provenance
from runner.features.traces.truth.ground_truth import GroundTruth

LISTS = sorted((Path(__file__).parent / "hand_checked").glob("*.json"))
# fmt: off
HELD_BACK = {
    "00394cf1398f", "00d5a78071e9", "03230b56f191", "0a5898e7708f", "d8a721d20251",
    "dep-graph_cli", "v3_dep-traversal", "v6_api-contract",
}
# fmt: on
"""A quarter of the lists, five of 21 trials and three of ten other runs. Do not read these traces to improve a rule."""
LEFT_OPEN = ("opened without a word of it", "in listings of several folders")
RUN = Provenance("run", "task", "configuration", "suite")


def files_of(trace: Path) -> set[str]:
    document = build_document(
        read_run(trace, None, create_observer(), choose_richer), GroundTruth(), RUN, datetime(2026, 1, 1, tzinfo=UTC)
    )
    return {
        _line("written" if event["tool_category"] == "file_write" else "seen", name)
        for event in document["events"]
        for name in event["target_files"]
    }


def _line(kind: str, name: str) -> str:
    return f"{kind} {name.rpartition('::')[2].lower()}"


def compare(traces: Path, file: Path) -> tuple[set[str], set[str]]:
    lists: Mapping[str, list[str]] = json.loads(file.read_text())
    agent_saw = {_line(kind, name) for kind in ("seen", "written") for name in lists[kind]}
    unsure = {_line("seen", name) for key in LEFT_OPEN for name in lists.get(key, ())}
    return files_of(traces / _trace(file)) - (unsure - agent_saw), agent_saw


class Counts(NamedTuple):
    """How many files both the events of a trace and its list have, and how many each has."""

    both: int
    events_have: int
    agent_saw: int


def count(traces: Path, file: Path) -> Counts:
    events_have, agent_saw = compare(traces, file)
    return Counts(len(events_have & agent_saw), len(events_have), len(agent_saw))


def _trace(file: Path) -> str:
    return json.loads(file.read_text()).get("trace") or f"trials/{file.stem}/trajectory.json"


@pytest.mark.parametrize("name", [file.stem for file in LISTS if file.stem not in HELD_BACK])
def test_precision_and_recall_of_each_trace_s_events_are_at_least_95_percent(real_traces: Path, name: str) -> None:
    (file,) = (file for file in LISTS if file.stem == name)
    events_have, agent_saw = compare(real_traces, file)
    both = events_have & agent_saw
    extra, missed = sorted(events_have - agent_saw), sorted(agent_saw - events_have)
    assert len(both) >= 0.95 * len(events_have), f"precision {len(both)}/{len(events_have)}, not seen: {extra}"
    assert len(both) >= 0.95 * len(agent_saw), f"recall {len(both)}/{len(agent_saw)}, missed: {missed}"


def test_precision_and_recall_of_each_held_back_trace_are_at_least_95_percent(real_traces: Path) -> None:
    counts = sorted(count(real_traces, file) for file in LISTS if file.stem in HELD_BACK)
    low = [each for each in counts if each.both < 0.95 * max(each.events_have, each.agent_saw)]
    assert not low, "only counts are shown, because the names would tell what to tune rules on"


def test_traces_of_all_kinds_are_listed_and_a_quarter_is_held_back() -> None:
    traces = [_trace(file) for file in LISTS]
    assert (sum(trace.startswith("trials") for trace in traces), len({*traces})) == (21, 31)
    held_back = [_trace(file) for file in LISTS if file.stem in HELD_BACK]
    assert (sum(trace.startswith("trials") for trace in held_back), len(held_back)) == (5, len(HELD_BACK))
    assert len(HELD_BACK) == round(len(LISTS) / 4)


@pytest.mark.parametrize("held_back", [False, True], ids=["read", "held back"])
def test_precision_and_recall_over_the_lists_are_at_least_98_percent(
    real_traces: Path, held_back: bool, record_property: Callable[[str, object], None]
) -> None:
    counts = [count(real_traces, file) for file in LISTS if (file.stem in HELD_BACK) is held_back]
    both, events_have, agent_saw = map(sum, zip(*counts, strict=True))
    precision, recall = both / events_have, both / agent_saw
    name = f"hand-checked traces{', held back' * held_back} ({len(counts)} lists)"
    record_property("score", f"{name}: precision {precision:.4f}, recall {recall:.4f}")
    assert min(precision, recall) >= 0.98
