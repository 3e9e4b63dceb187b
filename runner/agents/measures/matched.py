"""Two configurations on the tasks that both did: the same task, model and harness, with a valid reward in both.

It says which tasks are left out, and why. Differences are a comparison, not a proof of what caused them. Knows nothing
of configurations beyond their artifacts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.agents.measures.figures import OUTCOMES, columns, figures
from runner.agents.measures.stages import Artifact
from runner.analysis.comparison import Comparison, compare
from runner.analysis.significance import Floats, paired

FEWEST = 3
"""Below so many pairs, nothing is said of a difference."""

COMPARED = (
    *OUTCOMES,
    *("file_recall", "mrr", "map_score", "context_efficiency", "ndcg@10", "ttfr_seconds", "ttfr_tokens"),
    *("util_read_overlap_with_relevant_files", "util_write_overlap_with_expected_edit_files"),
)
"""The figures whose differences are tested, as one family."""

CAVEAT = "A comparison of matched tasks: it does not say what caused a difference."


@dataclass(frozen=True)
class Matched:
    """The artifacts of two configurations on the same tasks, by task name, and what had to be left out.

    `excluded` has the tasks that both did and that may not be compared, by reason. `unverified` is how many pairs
    there are of which neither side says its model, its harness, or the version of that; `superseded` how many earlier
    trials of a task were left out.
    """

    baseline: Sequence[Artifact]
    other: Sequence[Artifact]
    baseline_only: Sequence[str]
    other_only: Sequence[str]
    excluded: Mapping[str, Sequence[str]]
    unverified: int
    superseded: int


def match(baseline: Sequence[Artifact], other: Sequence[Artifact]) -> Matched:
    """Pair the tasks of two configurations; of a task that one did several times, its latest counts."""
    first, second = latest(baseline), latest(other)
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
        unverified=sum(None in _setting(first[task]) for task in kept),
        superseded=len(baseline) + len(other) - len(first) - len(second),
    )


def latest(artifacts: Sequence[Artifact]) -> dict[str, Artifact]:
    """Return one artifact of each task: that of its latest batch, or of its last trial and run by name."""
    ordered = sorted(artifacts, key=_when)
    return {each["provenance"]["task_name"]: each for each in ordered}


def compared(
    baseline: Sequence[Artifact], other: Sequence[Artifact], alpha: float = 0.05, seed: int = 0
) -> dict[str, Any]:
    """Compare two configurations on their matched tasks; see `stages.rounded`.

    Each figure has the mean difference (other less baseline) with its bootstrap interval, its spread, and the p-value
    of a permutation test, corrected for the number of figures (Holm). Below three pairs it is not computable.
    """
    matched = match(baseline, other)
    n = len(matched.baseline)
    head = {
        "baseline_config": _config(baseline),
        "other_config": _config(other),
        "n_matched_tasks": n,
        "n_baseline_only": len(matched.baseline_only),
        "n_other_only": len(matched.other_only),
        "n_unverified": matched.unverified,
        "n_superseded": matched.superseded,
        "excluded": {reason: list(tasks) for reason, tasks in matched.excluded.items()},
        "interpretation": CAVEAT,
    }
    if n < FEWEST:
        return {"computable": False, "reason": _too_few(n), **head}
    before, after = columns(matched.baseline, COMPARED), columns(matched.other, COMPARED)
    differences = {name: paired(after[name], before[name]) for name in COMPARED}
    counts = {name: int(np.count_nonzero(~np.isnan(row))) for name, row in differences.items()}
    told = [name for name in COMPARED if counts[name] >= FEWEST]
    deltas = _deltas(np.array([differences[name] for name in told]), alpha, seed)
    return {
        "computable": True,
        "reason": None,
        **head,
        "deltas": {
            **{name: {"computable": False, "reason": _too_few(counts[name])} for name in COMPARED},
            **dict(zip(told, deltas, strict=True)),
        },
        "per_task": [_pair(*pair) for pair in zip(matched.baseline, matched.other, strict=True)],
    }


def _deltas(differences: Floats, alpha: float, seed: int) -> list[dict[str, Any]]:
    found = compare(differences, alpha, seed=seed)
    return [_delta(row, found, place) for place, row in enumerate(differences)]


def _delta(row: Floats, found: Comparison, place: int) -> dict[str, Any]:
    quarter, median, three_quarters = np.nanquantile(row, [0.25, 0.5, 0.75]).tolist()
    n = int(found.queries[place])
    return {
        "computable": True,
        "n": n,
        "mean_delta": float(found.differences[place]),
        "median_delta": median,
        "std_delta": float(found.deviations[place]),
        "iqr": three_quarters - quarter,
        "interval": found.intervals[place].tolist(),
        "p_value": float(found.uncorrected[place]),
        "p_value_corrected": float(found.p_values[place]),
        "significant": bool(found.significant[place]),
        "higher": int(found.wins[place]),
        "same": int(found.ties[place]),
        "lower": int(found.losses[place]),
    }


def _pair(baseline: Artifact, other: Artifact) -> dict[str, Any]:
    before, after = figures(baseline), figures(other)
    row: dict[str, Any] = {"task_name": baseline["provenance"]["task_name"]}
    for name in COMPARED:
        first, second = before.get(name), after.get(name)
        delta = None if first is None or second is None else second - first
        row |= {f"{name}_baseline": first, f"{name}_other": second, f"{name}_delta": delta}
    return row


def _unlike(one: Artifact, other: Artifact) -> str:
    """Return why two artifacts of one task may not be compared; "" where they may."""
    if "reward" not in figures(one) or "reward" not in figures(other):
        return "no_valid_reward"
    (model, *harness), (other_model, *other_harness) = _setting(one), _setting(other)
    if model != other_model:
        return "different_models"
    return "" if harness == other_harness else "different_harnesses"


def _setting(artifact: Artifact) -> tuple[str | None, ...]:
    """Return the model, the harness (the agent) and its version, as the outcome says, or else the provenance."""
    said = {**artifact["provenance"], **{k: v for k, v in (artifact.get("outcome") or {}).items() if v is not None}}
    return tuple(said.get(name) for name in ("model", "agent", "agent_version"))


def _when(artifact: Artifact) -> tuple[str, ...]:
    said, content = artifact["provenance"], json.dumps(artifact, sort_keys=True)  # so that there is always an order
    return said.get("batch_timestamp") or "", said["run_id"], said.get("trial_name") or "", content


def _config(artifacts: Sequence[Artifact]) -> str:
    return ", ".join(sorted({each["provenance"]["config_name"] for each in artifacts}))


def _too_few(n: int) -> str:
    return f"insufficient_matched_tasks (n={n}, need >= {FEWEST})"
