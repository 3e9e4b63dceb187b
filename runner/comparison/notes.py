"""Texts for notes and errors: the first of many names, a dataset, and hits that a dataset lacks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from runner.evaluation.result import DatasetSummary, Result

UNFAIR_GAP = 0.1
"""From this difference of two hole rates, a comparison may be unfair."""


MANY_HOLES, MOST_HOLES = 0.2, 0.8
"""From these hole rates, measures are far below what they might be, or say little."""


def list_some(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names and the number of the others, as text."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def describe_dataset(result: Result) -> str:
    """Return the name, split and fingerprint of a result's dataset."""
    d = result.dataset
    return f"{d.name} ({d.split}, {d.fingerprint[:8]})"


def describe_unknown_hits(result: Result) -> str:
    """Return how many hits the dataset lacks and what they count as; "" if it has all hits, or no documents."""
    holes = result.holes
    if holes is None or not holes.unknown_anywhere or not result.dataset.documents:
        return ""
    share = f"{holes.unknown:,} of {holes.hits:,} hits in the top {holes.cutoff}"
    share += f" ({holes.unknown / holes.hits:.1%})" if holes.hits else ""
    return (
        f"{share} are missing from the dataset ({holes.unknown_anywhere:,} at any rank); they keep their rank and "
        "count as unjudged unless the judgments grade them"
    )


def explain_foreign_ids(result: Result) -> str:
    """Return why a result whose hits have foreign ids is not compared, with examples of the ids if they are known."""
    if result.dataset.documents:
        return "no hit is in the dataset, so the scores say nothing; are the ids those of its documents?"
    return "; ".join(["no hit is gold of any query, so the scores say nothing", *result.warnings[:1]])


def warn_holes(result: Result, label: str = "") -> str:
    """Return how many of the first hits are unjudged; "" if these are few, or few by design."""
    holes = result.holes
    if holes is None or not holes.hits or not _is_telling(holes.rate, holes.cutoff, result.dataset, MANY_HOLES):
        return ""
    return (
        f"{holes.rate:.1%} of the first {holes.cutoff} hits{label and f' of {label}'} are unjudged and count as "
        "irrelevant, so its measures may be too low"
    )


def judge_command(runs: Sequence[str], overrides: Sequence[str] = ()) -> str:
    """Return the command with which people judge the first hits of runs on one dataset, given their ids."""
    which = f"run={runs[0]}" if len(runs) == 1 else shlex.quote(f"run=[{','.join(runs)}]")
    return " ".join(["python -m runner judge by=hand", which, *overrides])


def warn_most_holes(rate: float, cutoff: int, data: DatasetSummary) -> str:
    """Return a line to show before any figure if hardly any of the first hits is judged, otherwise ""."""
    if not _is_telling(rate, cutoff, data, MOST_HOLES):
        return ""
    return f"{rate:.1%} of the first {cutoff} hits are unjudged, so these figures say little"


def _is_telling(rate: float, cutoff: int, data: DatasetSummary, least: float) -> bool:
    """Return whether a hole rate is large, and not because queries have few judgments.

    With fewer judgments than half of the first hits, as where each query has one right document, most hits have none by
    design. Then only a rate of 1 says something: no judged document was retrieved.
    """
    has_few = _has_known_items(data) or data.judgments < data.queries * cutoff / 2
    return rate >= (1 if has_few else least)


def _has_known_items(data: DatasetSummary) -> bool:
    return is_known_item(data.judgments, data.queries)


def is_known_item(judgments: int, queries: int) -> bool:
    """Return whether queries have one right document each, in the mean fewer than two judgments."""
    return judgments < 2 * queries


def warn_unequal_holes(results: Sequence[Result], labels: Sequence[str]) -> str:
    """Return a warning that names the results with the fewest and the most unjudged hits; "" if these are alike.

    If each query has one right document, no warning is given: the rates only tell how often it was retrieved.
    """
    known = [(i, result) for i, result in enumerate(results) if not result.has_foreign_ids]
    rates = [(result.holes.rate, i) for i, result in known if result.holes and result.holes.hits]
    (least, fewest), (most, worst) = min(rates, default=(0.0, 0)), max(rates, default=(0.0, 0))
    if most - least < UNFAIR_GAP or _has_known_items(results[worst].dataset):
        return ""
    cutoffs = {result.holes.cutoff for result in (results[fewest], results[worst]) if result.holes}
    return (
        f"Warning: the hole rates at {' and '.join(map(str, sorted(cutoffs)))} differ: {most:.1%} of the hits of "
        f"{labels[worst]} are unjudged, but {least:.1%} of those of {labels[fewest]}. Unjudged hits count as "
        f"irrelevant, so {labels[worst]} may be better than its measures suggest; judge more of its hits before "
        "you trust the difference."
    )


def describe_index_changes(first: Result, other: Result) -> str:
    """Return which facts about the index at the same addresses differ between two results, "" if none do."""
    if not first.addresses or first.addresses != other.addresses:
        return ""
    names = [name for name, value in first.index.items() if other.index.get(name, value) != value]
    return ", ".join(f"{name} {first.index[name]} and {other.index[name]}" for name in names)
