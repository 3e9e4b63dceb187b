"""Events against what ten agents saw, listed by reading their traces: files that were opened, or shown by path.

What harnesses cut out of results is listed as far as it can be read. A path is that within its repository.
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


def files_of(trajectory: Path) -> dict[str, set[str]]:
    trace = read_run(trajectory, None, looking(), richer)
    document = events(trace, GroundTruth(), RUN, datetime(2026, 1, 1, tzinfo=UTC))
    files: dict[str, set[str]] = {"seen": set(), "written": set()}
    for event in document["events"]:
        kind = "written" if event["tool_category"] == "file_write" else "seen"
        files[kind] |= {f"{kind} {name.rpartition('::')[2].lower()}" for name in event["target_files"]}
    return files


def listed(file: Path) -> set[str]:
    lists: Mapping[str, list[str]] = json.loads(file.read_text())
    return {f"{kind} {name.lower()}" for kind, names in lists.items() for name in names}


def compared(trials: Path, trial: str) -> tuple[set[str], set[str]]:
    (file,) = (file for file in LISTS if file.stem == trial)
    return set().union(*files_of(trials / trial / "trajectory.json").values()), listed(file)


@pytest.mark.parametrize("trial", [file.stem for file in LISTS])
def test_precision_and_recall_of_each_trial_s_events_are_at_least_95_percent(real_traces: Path, trial: str) -> None:
    events_have, agent_saw = compared(real_traces / "trials", trial)
    both = events_have & agent_saw
    extra, missed = sorted(events_have - agent_saw), sorted(agent_saw - events_have)
    assert len(both) >= 0.95 * len(events_have), f"precision {len(both)}/{len(events_have)}, not seen: {extra}"
    assert len(both) >= 0.95 * len(agent_saw), f"recall {len(both)}/{len(agent_saw)}, missed: {missed}"


def test_ten_trials_are_listed() -> None:
    assert len(LISTS) == 10
