"""The trials of a task, of which the latest counts in the result of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from retrievers.store import fingerprint
from runner.features.traces.measures.figures import FigureNames, Floats, build_row
from runner.features.traces.measures.records import Artifact

LOW = "low"
"""The confidence of gold that only prose mentions."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskTrial:
    """The part of an artifact that enters a result: the figures of a row, their origin, and the order of trials.

    `setting` is the model, the harness (the agent) and its version, each None if unknown. `confidence` is that of the
    gold.
    """

    task: str
    config: str
    order: tuple[str, ...]
    setting: tuple[str | None, ...]
    figures: Floats
    confidence: str | None = None


def build_trial(artifact: Artifact, names: FigureNames) -> TaskTrial:
    """Return the part of an artifact that enters a result."""
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


def select_latest(trials: Sequence[TaskTrial]) -> dict[str, int]:
    """Return the position of the trial of each task that counts: from its latest batch, or the last by run and name."""
    order = sorted(range(len(trials)), key=lambda place: trials[place].order)
    return {trials[place].task: place for place in order}
