"""By how much configurations differ from one of them on their matched tasks, and how surely.

One figure decides, declared before any data is seen; the others are secondary. Differences are a comparison, not a
proof of what caused them. Knows nothing of how tasks are matched, or of how a figure is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.agents.long_json import Lazy
from runner.agents.measures.figures import OUTCOMES, FigureNames, columns
from runner.agents.measures.matched import LOW, Trial, match, trial
from runner.agents.measures.stages import Artifact
from runner.agents.measures.summary import described
from runner.analysis.comparison import compare
from runner.analysis.corrections import correct
from runner.analysis.effects import queries_needed
from runner.analysis.paired_tests import PAIRED_TESTS
from runner.analysis.significance import Floats, paired
from runner.metrics.settings import MetricSettings

_COUNTABLE = 2**53  # of pairs: beyond it, JSON has no integers
FEWEST = 3
"""Below so many pairs, nothing is said of a difference."""

PRIMARY = "file_recall"
"""The figure that decides which of two configurations retrieves better: the share of the gold that was found at all."""

STATISTICS = ("test", "correction", "confidence", "alpha", "resamples", "permutations", "seed")
"""The settings that say how sure a difference is."""

CAVEAT = "A comparison of matched tasks: it does not say what caused a difference."


def secondary(names: FigureNames) -> tuple[str, ...]:
    """Return the figures whose differences are reported beside the primary one, tested as one family."""
    return (
        *("mrr", "map_score", *names.headline, "context_efficiency", "ttfr_seconds", "ttfr_tokens"),
        *("util_read_overlap_with_relevant_files", "util_write_overlap_with_expected_edit_files"),
        *OUTCOMES,
    )


def comparisons(
    baseline: Iterable[Artifact], others: Sequence[Iterable[Artifact]], settings: MetricSettings
) -> list[dict[str, Any]]:
    """Compare each of other configurations with a baseline on their matched tasks; see `stages.rounded`.

    Each figure has the mean difference (other less baseline) with its interval, its spread, the p-value of a
    paired test, and how many pairs it takes to see such a difference four times out of five. `PRIMARY` is one question
    that is asked of each configuration: its p-value is corrected for their number, and for one alone it is that of the
    test. Those of a comparison's secondary figures are corrected for one another. Below three pairs nothing is
    computable. Raises `ValueError` for Tukey's correction, which is for all pairs of systems by one measure.
    """
    if settings.correction == "maxt":  # which is for systems on the same queries
        settings = replace(settings, correction="holm")
    enough = max(settings.permutations, math.ceil(2 * len(others) / settings.alpha))  # even if corrected for all others
    settings = replace(settings, permutations=enough)
    names = FigureNames(settings.k_values)
    trials = [trial(each, names) for each in baseline]
    made = [_compared(trials, [trial(each, names) for each in other], settings) for other in others]
    told = [place for place, each in enumerate(made) if each.get("deltas", {}).get(PRIMARY, {}).get("computable")]
    p_values = np.array([made[place]["deltas"][PRIMARY]["p_value"] for place in told])
    for place, p in zip(told, correct(p_values, settings.correction).tolist(), strict=True):
        made[place]["deltas"][PRIMARY] |= _sure(p, len(told), settings)
    return made


def _compared(baseline: Sequence[Trial], other: Sequence[Trial], settings: MetricSettings) -> dict[str, Any]:
    matched = match(baseline, other)
    n = len(matched.baseline)
    names = FigureNames(settings.k_values)
    before, after = (columns((each.figures for each in side), names) for side in (matched.baseline, matched.other))
    is_low = np.array(
        [LOW in (a.confidence, b.confidence) for a, b in zip(matched.baseline, matched.other, strict=True)]
    )
    head = {
        "baseline_config": _config(baseline),
        "other_config": _config(other),
        "primary": PRIMARY,
        "n_matched_tasks": n,
        "n_measured_tasks": int(np.count_nonzero(np.isfinite(after[PRIMARY] - before[PRIMARY]))),
        "n_baseline_only": len(matched.baseline_only),
        "n_other_only": len(matched.other_only),
        "n_unverified": matched.unverified,
        "n_superseded": matched.superseded,
        "without_low_confidence": _without(is_low, before[PRIMARY], after[PRIMARY]) if is_low.any() else None,
        "excluded": {reason: list(tasks) for reason, tasks in matched.excluded.items()},
        "statistics": {name: getattr(settings, name) for name in STATISTICS},
        "interpretation": CAVEAT,
    }
    if n < FEWEST:
        return {"computable": False, "reason": _too_few(n), **head}
    families = (_deltas(names, before, after, settings) for names in ((PRIMARY,), secondary(names)))
    return {
        "computable": True,
        "reason": None,
        **head,
        "deltas": {name: of for family in families for name, of in family.items()},
        "per_task": _pairs(matched.baseline, matched.other, names),
    }


def _without(left_out: NDArray[np.bool_], before: Floats, after: Floats) -> dict[str, Any]:
    """Return the means of the primary figure over the pairs that are not left out."""
    both = ~left_out & ~np.isnan(before) & ~np.isnan(after)
    return {
        "n": int(np.count_nonzero(both)),
        "mean_baseline": described(before[both])["mean"],
        "mean_other": described(after[both])["mean"],
        "mean_delta": described((after - before)[both])["mean"],
    }


def _deltas(
    names: Sequence[str], before: Mapping[str, Floats], after: Mapping[str, Floats], settings: MetricSettings
) -> dict[str, dict[str, Any]]:
    """Return the differences of figures (their values by task) that are tested as one family."""
    differences = paired(*(np.stack([side[name] for name in names]) for side in (after, before)))
    counts = np.count_nonzero(~np.isnan(differences), axis=1)
    found = compare(
        differences[counts >= FEWEST],
        settings.alpha,
        settings.permutations,
        settings.seed,
        test=settings.test,
        correction=settings.correction,
        confidence=settings.confidence,
    )
    needed = queries_needed(found.differences, found.deviations, settings.alpha)
    needed = np.maximum(needed, PAIRED_TESTS[settings.test].count_required_queries(settings.alpha))
    deltas: dict[str, dict[str, Any]] = {
        name: {"computable": False, "reason": _too_few(n)} for name, n in zip(names, counts.tolist(), strict=True)
    }
    for place, row in enumerate(np.flatnonzero(counts >= FEWEST).tolist()):
        name, both = names[row], ~np.isnan(differences[row])
        low, middle, high = np.quantile(differences[row][both], [0.25, 0.5, 0.75]).tolist()
        deltas[name] = {
            "computable": True,
            "n": int(found.queries[place]),
            "mean_baseline": described(before[name][both])["mean"],
            "mean_other": described(after[name][both])["mean"],
            "mean_delta": float(found.differences[place]),
            "median_delta": middle,
            "std_delta": float(found.deviations[place]),
            "iqr": high - low,
            "interval": None if np.isnan(found.intervals[place]).any() else found.intervals[place].tolist(),
            "higher": int(found.wins[place]),
            "same": int(found.ties[place]),
            "lower": int(found.losses[place]),
            "pairs_needed": int(needed[place]) if needed[place] < _COUNTABLE else None,
            "p_value": float(found.uncorrected[place]),
            **_sure(float(found.p_values[place]), len(found.p_values), settings),
        }
    return deltas


def _sure(p_value: float, tests: int, settings: MetricSettings) -> dict[str, Any]:
    return {
        "p_value_corrected": p_value,
        "corrected_for": tests if settings.correction != "none" else 1,
        "significant": p_value < settings.alpha,
    }


def _pairs(baseline: Sequence[Trial], other: Sequence[Trial], names: FigureNames) -> Lazy:
    """Return what each task came to on both sides, kept as a row of numbers: there may be ten thousand."""
    compared = (PRIMARY, *secondary(names))
    places = [names.all.index(name) for name in compared]
    keys = [f"{name}_{which}" for name in compared for which in ("baseline", "other", "delta")]
    first, second = (np.stack([each.figures[places] for each in side]) for side in (baseline, other))
    rows = np.stack([first, second, second - first], axis=2).reshape(len(baseline), -1)
    tasks = [each.task for each in baseline]

    def made() -> Iterator[dict[str, Any]]:
        for task, row in zip(tasks, rows, strict=True):
            values = (None if math.isnan(value) else value for value in row.tolist())
            yield {"task_name": task, **dict(zip(keys, values, strict=True))}

    return Lazy(made)


def _config(trials: Iterable[Trial]) -> str:
    return ", ".join(sorted({each.config for each in trials}))


def _too_few(n: int) -> str:
    return f"insufficient_matched_tasks (n={n}, need >= {FEWEST})"
