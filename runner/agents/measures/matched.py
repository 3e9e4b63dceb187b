"""Two configurations on the tasks that both did: the same task, model and harness, with a valid reward in both.

It says which tasks are left out, and why. Knows nothing of how the configurations differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from retrievers.store import fingerprint
from runner.agents.measures.figures import REWARD, FigureNames, Floats, row
from runner.agents.measures.stages import Artifact

LOW = "low"
"""The confidence of gold that prose only mentions."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What of an artifact enters a comparison: its figures as a `row`, whose they are, and what tells the latest.

    `setting` is the model, the harness (the agent) and its version, each None where nothing says it. `confidence` is
    that of the gold.
    """

    task: str
    config: str
    when: tuple[str, ...]
    setting: tuple[str | None, ...]
    figures: Floats
    confidence: str | None = None


@dataclass(frozen=True, eq=False)
class Matched:
    """The trials of two configurations on the same tasks, by task name, and what had to be left out.

    `excluded` has the tasks that both did and that may not be compared, by reason. `unverified` is how many pairs
    there are of which neither side says its model, its harness, or the version of that; `superseded` how many earlier
    trials of a task were left out.
    """

    baseline: Sequence[Trial]
    other: Sequence[Trial]
    baseline_only: Sequence[str]
    other_only: Sequence[str]
    excluded: Mapping[str, Sequence[str]]
    unverified: int
    superseded: int


def trial(artifact: Artifact, names: FigureNames) -> Trial:
    """Return what of an artifact enters a comparison."""
    provenance = artifact["provenance"]
    said = {**provenance, **{k: v for k, v in (artifact.get("outcome") or {}).items() if v is not None}}
    content = fingerprint(orjson.dumps(artifact, option=orjson.OPT_SORT_KEYS).decode())  # so there is always an order
    return Trial(
        task=provenance["task_name"],
        config=provenance["config_name"],
        when=(
            provenance.get("batch_timestamp") or "",
            provenance["run_id"],
            provenance.get("trial_name") or "",
            content,
        ),
        setting=tuple(said.get(name) for name in ("model", "agent", "agent_version")),
        figures=row(artifact, names),
        confidence=artifact["coverage"].get("ground_truth_confidence"),
    )


def match(baseline: Sequence[Trial], other: Sequence[Trial]) -> Matched:
    """Pair the tasks of two configurations; of a task that one did several times, its latest counts."""
    first, second = ({task: side[place] for task, place in latest(side).items()} for side in (baseline, other))
    both = sorted(first.keys() & second.keys())
    reasons = {task: _unlike(first[task], second[task]) for task in both}
    kept = [task for task in both if not reasons[task]]
    named = sorted({reason for reason in reasons.values() if reason})
    return Matched(
        baseline=[first[task] for task in kept],
        other=[second[task] for task in kept],
        baseline_only=sorted(first.keys() - second.keys()),
        other_only=sorted(second.keys() - first.keys()),
        excluded={reason: [task for task in both if reasons[task] == reason] for reason in named},
        unverified=sum(None in first[task].setting for task in kept),
        superseded=len(baseline) + len(other) - len(first) - len(second),
    )


def latest(trials: Sequence[Trial]) -> dict[str, int]:
    """Return where the one trial of each task is that counts: of its latest batch, or its last by run and name."""
    order = sorted(range(len(trials)), key=lambda place: trials[place].when)
    return {trials[place].task: place for place in order}


def _unlike(one: Trial, other: Trial) -> str:
    """Return why two trials of one task may not be compared; "" where they may."""
    if math.isnan(one.figures[REWARD]) or math.isnan(other.figures[REWARD]):
        return "no_valid_reward"
    for name, *said in zip(("models", "harnesses", "harnesses"), one.setting, other.setting, strict=True):
        if said[0] != said[1]:  # what only one of them says may be the same, but nobody knows
            return f"{'unknown' if None in said else 'different'}_{name}"
    return ""
