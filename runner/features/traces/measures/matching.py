"""Pair the tasks of two configurations: the same task, model and harness, with a valid reward on both sides.

It reports which tasks are left out, and why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from retrievers.store import fingerprint
from runner.features.traces.measures.figures import REWARD, FigureNames, Floats, build_row
from runner.features.traces.measures.records import Artifact

LOW = "low"
"""The confidence of gold that only prose mentions."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskTrial:
    """The part of an artifact that enters a comparison: the figures of a row, their origin, and the order of trials.

    `setting` is the model, the harness (the agent) and its version, each None if unknown. `confidence` is that of the
    gold.
    """

    task: str
    config: str
    order: tuple[str, ...]
    setting: tuple[str | None, ...]
    figures: Floats
    confidence: str | None = None


@dataclass(frozen=True, eq=False)
class MatchedTrials:
    """The trials of two configurations on the same tasks, by task name, and what was left out.

    `excluded` lists the tasks of both configurations that cannot be compared, by reason. `unverified` counts the pairs
    for which neither side records the model, the harness or its version; `superseded` counts the earlier trials that
    were left out.
    """

    baseline: Sequence[TaskTrial]
    other: Sequence[TaskTrial]
    baseline_only: Sequence[str]
    other_only: Sequence[str]
    excluded: Mapping[str, Sequence[str]]
    unverified: int
    superseded: int


def build_trial(artifact: Artifact, names: FigureNames) -> TaskTrial:
    """Return the part of an artifact that enters a comparison."""
    provenance, outcome = artifact["provenance"], artifact["outcome"] or {}
    content = fingerprint(orjson.dumps(artifact, option=orjson.OPT_SORT_KEYS).decode())  # makes the order total
    return TaskTrial(
        task=provenance["task_name"],
        config=provenance["config_name"],
        order=(
            provenance.get("batch_timestamp") or "",
            provenance["run_id"],
            provenance.get("trial_name") or "",
            content,
        ),
        setting=(
            provenance.get("model") if outcome.get("model") is None else outcome.get("model"),
            outcome.get("agent"),
            outcome.get("agent_version"),
        ),
        figures=build_row(artifact, names),
        confidence=artifact["coverage"].get("ground_truth_confidence"),
    )


def match_trials(baseline: Sequence[TaskTrial], other: Sequence[TaskTrial]) -> MatchedTrials:
    """Pair the tasks of two configurations; of several trials of a task, the latest counts."""
    first, second = ({task: side[place] for task, place in select_latest(side).items()} for side in (baseline, other))
    both = sorted(first.keys() & second.keys())
    reasons = {task: _find_difference(first[task], second[task]) for task in both}
    comparable = [task for task in both if not reasons[task]]
    return MatchedTrials(
        baseline=[first[task] for task in comparable],
        other=[second[task] for task in comparable],
        baseline_only=sorted(first.keys() - second.keys()),
        other_only=sorted(second.keys() - first.keys()),
        excluded={
            reason: [task for task in both if reasons[task] == reason]
            for reason in sorted({reason for reason in reasons.values() if reason})
        },
        unverified=sum(None in first[task].setting for task in comparable),
        superseded=len(baseline) + len(other) - len(first) - len(second),
    )


def select_latest(trials: Sequence[TaskTrial]) -> dict[str, int]:
    """Return the position of the trial of each task that counts: from its latest batch, or the last by run and name."""
    order = sorted(range(len(trials)), key=lambda place: trials[place].order)
    return {trials[place].task: place for place in order}


def _find_difference(one: TaskTrial, other: TaskTrial) -> str:
    """Return why two trials of a task cannot be compared; "" if they can."""
    if math.isnan(one.figures[REWARD]) or math.isnan(other.figures[REWARD]):
        return "no_valid_reward"
    names = ("models", "harnesses", "harnesses")
    for name, mine, theirs in zip(names, one.setting, other.setting, strict=True):
        if mine != theirs:  # a value that only one side records may or may not be the same
            return f"{'unknown' if None in (mine, theirs) else 'different'}_{name}"
    return ""
