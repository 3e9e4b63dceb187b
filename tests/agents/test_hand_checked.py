"""Events against what ten agents saw, listed by reading their traces: files that were opened, or shown by path.

What harnesses cut out of results is listed as far as it can be read. A path is that within its repository.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean

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


@cache
def compared(trials: Path) -> dict[str, tuple[set[str], set[str]]]:
    return {
        file.stem: (set().union(*files_of(trials / file.stem / "trajectory.json").values()), listed(file))
        for file in LISTS
    }


@pytest.mark.parametrize("trial", [file.stem for file in LISTS])
def test_each_trial_s_events_are_nearly_what_its_agent_saw(real_traces: Path, trial: str) -> None:
    events_have, agent_saw = compared(real_traces / "trials")[trial]
    both = events_have & agent_saw
    extra, missed = sorted(events_have - agent_saw), sorted(agent_saw - events_have)
    assert len(both) >= 0.85 * len(events_have), f"precision {len(both)}/{len(events_have)}, not seen: {extra}"
    assert len(both) >= 0.85 * len(agent_saw), f"recall {len(both)}/{len(agent_saw)}, missed: {missed}"


def test_precision_and_recall_are_at_least_95_percent_over_all_files_and_in_the_mean_of_trials(
    real_traces: Path,
) -> None:
    pairs = compared(real_traces / "trials").values()
    assert len(pairs) == 10
    both = [len(events_have & agent_saw) for events_have, agent_saw in pairs]
    for sizes in ([len(events_have) for events_have, _ in pairs], [len(agent_saw) for _, agent_saw in pairs]):
        assert sum(both) >= 0.95 * sum(sizes)
        assert fmean(found / size for found, size in zip(both, sizes, strict=True)) >= 0.95
