"""Compare configurations with a baseline on matched tasks: how much each figure differs, and how significantly.

One figure, chosen before any data is seen, decides; the others are secondary. Differences do not prove what caused
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NotRequired, Required

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from runner.features.traces.long_json import Lazy
from runner.features.traces.measures.figures import OUTCOMES, FigureNames, Floats, group_columns
from runner.features.traces.measures.matching import LOW, TaskTrial, build_trial, match_trials
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.summary import summarise_values
from runner.statistics.comparison import compare
from runner.statistics.corrections import CORRECTIONS, correct
from runner.statistics.effects import queries_needed
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import Statistics
from runner.statistics.significance import compute_differences

_MAX_PAIRS = 2**53  # JSON has no integers beyond it
FEWEST = 3
"""The fewest pairs from which a difference is computed."""

PRIMARY = "file_recall"
"""The figure that decides which of two configurations retrieves better: the share of the gold that was found."""

CAVEAT = "A comparison of matched tasks; it does not show what caused a difference."


class Delta(TypedDict, total=False):
    """The difference of one figure, other less baseline; without values if `computable` is false."""

    computable: Required[bool]
    reason: str
    n: int
    mean_baseline: float
    mean_other: float
    mean_delta: float
    median_delta: float
    std_delta: float
    iqr: float
    interval: list[float] | None
    higher: int
    same: int
    lower: int
    pairs_needed: int | None
    p_value: float
    p_value_corrected: float
    corrected_for: int
    significant: bool


class ConfidentMeans(TypedDict):
    """The means of the primary figure over the pairs whose gold does not have low confidence."""

    n: int
    mean_baseline: float | None
    mean_other: float | None
    mean_delta: float | None


class TraceComparison(TypedDict):
    """A configuration compared with the baseline; without deltas if `computable` is false."""

    computable: bool
    reason: str | None
    baseline_config: str
    other_config: str
    primary: str
    n_matched_tasks: int
    n_measured_tasks: int
    n_baseline_only: int
    n_other_only: int
    n_unverified: int
    n_superseded: int
    without_low_confidence: ConfidentMeans | None
    excluded: dict[str, list[str]]
    statistics: Statistics
    interpretation: str
    deltas: NotRequired[dict[str, Delta]]
    per_task: NotRequired[Lazy[dict[str, str | float | None]]]


def list_secondary(names: FigureNames) -> tuple[str, ...]:
    """Return the figures whose differences are reported besides the primary one, tested as one family."""
    return (
        *("mrr", "map_score", *names.headline, "context_efficiency", "ttfr_seconds", "ttfr_tokens"),
        *("util_read_overlap_with_relevant_files", "util_write_overlap_with_expected_edit_files"),
        *OUTCOMES,
    )


def compare_configurations(
    baseline: Iterable[Artifact], others: Sequence[Iterable[Artifact]], names: FigureNames, statistics: Statistics
) -> list[TraceComparison]:
    """Compare other configurations with a baseline on their matched tasks; see `stages.round_numbers`.

    Each figure has the mean difference (other less baseline) with its interval and spread, the p-value of a paired
    test, and the number of pairs needed to detect such a difference with a power of 0.8. `PRIMARY` is one question per
    configuration: its p-value is corrected for the number of configurations. The p-values of the secondary figures of a
    comparison are corrected together. Below three pairs, nothing is computable. Raises `ValueError` for Tukey's
    correction, which applies to all pairs of systems by one measure.
    """
    correction = CORRECTIONS[statistics.correction]
    correction.check_p_values()
    enough = math.ceil(2 * len(others) / statistics.alpha)  # enough even if corrected for all
    enough = max(statistics.permutations, enough)
    statistics = replace(statistics, permutations=enough, correction=correction.for_family().name)
    trials = [build_trial(artifact, names) for artifact in baseline]
    comparisons = [
        _compare_two(trials, [build_trial(artifact, names) for artifact in other], names, statistics)
        for other in others
    ]
    primary = [delta for c in comparisons if (delta := c.get("deltas", {}).get(PRIMARY)) and delta["computable"]]
    corrected = correct(np.array([delta["p_value"] for delta in primary]), statistics.correction).tolist()
    for delta, p_value in zip(primary, corrected, strict=True):
        delta.update(_correct_delta(p_value, len(primary), statistics))
    return comparisons


def _compare_two(
    baseline: Sequence[TaskTrial], other: Sequence[TaskTrial], names: FigureNames, statistics: Statistics
) -> TraceComparison:
    matched = match_trials(baseline, other)
    n = len(matched.baseline)
    before = group_columns((trial.figures for trial in matched.baseline), names)
    after = group_columns((trial.figures for trial in matched.other), names)
    pairs = zip(matched.baseline, matched.other, strict=True)
    is_low = np.array([LOW in (mine.confidence, theirs.confidence) for mine, theirs in pairs])
    comparison: TraceComparison = {
        "computable": n >= FEWEST,
        "reason": _too_few(n) if n < FEWEST else None,
        "baseline_config": _join_configs(baseline),
        "other_config": _join_configs(other),
        "primary": PRIMARY,
        "n_matched_tasks": n,
        "n_measured_tasks": int(np.count_nonzero(np.isfinite(after[PRIMARY] - before[PRIMARY]))),
        "n_baseline_only": len(matched.baseline_only),
        "n_other_only": len(matched.other_only),
        "n_unverified": matched.unverified,
        "n_superseded": matched.superseded,
        "without_low_confidence": _leave_out(is_low, before[PRIMARY], after[PRIMARY]) if is_low.any() else None,
        "excluded": {reason: list(tasks) for reason, tasks in matched.excluded.items()},
        "statistics": statistics,
        "interpretation": CAVEAT,
    }
    if n >= FEWEST:
        families = [
            _compute_deltas(family, before, after, statistics) for family in ((PRIMARY,), list_secondary(names))
        ]
        comparison["deltas"] = {name: delta for family in families for name, delta in family.items()}
        comparison["per_task"] = _list_pairs(matched.baseline, matched.other, names)
    return comparison


def _leave_out(left_out: NDArray[np.bool_], before: Floats, after: Floats) -> ConfidentMeans:
    """Return the means of the primary figure over the remaining pairs."""
    both = ~left_out & ~np.isnan(before) & ~np.isnan(after)
    return {
        "n": int(np.count_nonzero(both)),
        "mean_baseline": summarise_values(before[both])["mean"],
        "mean_other": summarise_values(after[both])["mean"],
        "mean_delta": summarise_values((after - before)[both])["mean"],
    }


def _compute_deltas(
    names: Sequence[str], before: Mapping[str, Floats], after: Mapping[str, Floats], statistics: Statistics
) -> dict[str, Delta]:
    """Return the differences of figures that are tested as one family, given their values by task."""
    differences = compute_differences(*(np.stack([side[name] for name in names]) for side in (after, before)))
    counts = np.count_nonzero(~np.isnan(differences), axis=1)
    result = compare(differences[counts >= FEWEST], statistics)
    needed = queries_needed(result.differences, result.deviations, statistics.alpha)
    needed = np.maximum(needed, PAIRED_TESTS[statistics.test].count_required_queries(statistics.alpha))
    deltas: dict[str, Delta] = {
        name: {"computable": False, "reason": _too_few(n)} for name, n in zip(names, counts.tolist(), strict=True)
    }
    for place, row in enumerate(np.flatnonzero(counts >= FEWEST).tolist()):
        name, both = names[row], ~np.isnan(differences[row])
        low, middle, high = np.quantile(differences[row][both], [0.25, 0.5, 0.75]).tolist()
        deltas[name] = {
            "computable": True,
            "n": int(result.queries[place]),
            "mean_baseline": _mean(before[name][both]),
            "mean_other": _mean(after[name][both]),
            "mean_delta": float(result.differences[place]),
            "median_delta": middle,
            "std_delta": float(result.deviations[place]),
            "iqr": high - low,
            "interval": None if np.isnan(result.intervals[place]).any() else result.intervals[place].tolist(),
            "higher": int(result.wins[place]),
            "same": int(result.ties[place]),
            "lower": int(result.losses[place]),
            "pairs_needed": int(needed[place]) if needed[place] < _MAX_PAIRS else None,
            "p_value": float(result.uncorrected[place]),
        }
        deltas[name].update(_correct_delta(float(result.p_values[place]), len(result.p_values), statistics))
    return deltas


def _correct_delta(p_value: float, tests: int, statistics: Statistics) -> Delta:
    return {
        "computable": True,
        "p_value_corrected": p_value,
        "corrected_for": tests if CORRECTIONS[statistics.correction].depends_on_family else 1,
        "significant": p_value < statistics.alpha,
    }


def _list_pairs(
    baseline: Sequence[TaskTrial], other: Sequence[TaskTrial], names: FigureNames
) -> Lazy[dict[str, str | float | None]]:
    """Return the figures of each task on both sides, stored as rows of numbers: there may be ten thousand tasks."""
    figures = (PRIMARY, *list_secondary(names))
    places = [names.all.index(name) for name in figures]
    keys = [f"{name}_{side}" for name in figures for side in ("baseline", "other", "delta")]
    first, second = (np.stack([trial.figures[places] for trial in side]) for side in (baseline, other))
    rows = np.stack([first, second, second - first], axis=2).reshape(len(baseline), -1)
    tasks = [trial.task for trial in baseline]

    def create() -> Iterator[dict[str, str | float | None]]:
        for task, row in zip(tasks, rows, strict=True):
            values: list[float] = row.tolist()
            known = (None if math.isnan(value) else value for value in values)
            yield {"task_name": task, **dict(zip(keys, known, strict=True))}

    return Lazy(create)


def _join_configs(trials: Iterable[TaskTrial]) -> str:
    return ", ".join(sorted({trial.config for trial in trials}))


def _mean(values: Floats) -> float:
    return summarise_values(values)["mean"] or 0.0


def _too_few(n: int) -> str:
    return f"insufficient_matched_tasks (n={n}, need >= {FEWEST})"
