"""Select the few measures that summarise a result, and name those that are not computed from a ranking."""

from __future__ import annotations

from collections.abc import Collection, Iterable

TN_RATE = "tn_rate"
"""The share of the queries without gold that retrieved nothing."""

GRADE = "grade"
"""The mean grade by a language model, if results were graded."""

UNRANKED_MEASURES = (TN_RATE, GRADE)
"""Measures that are not computed from a ranking."""

_AT_BUDGET = "TokenR@tokens="


def select_headline(primary: str, measures: Collection[str]) -> list[str]:
    """Select the primary measure, P and R at its cutoff, the deepest recall, RR, tokens, and the unranked measures.

    Measures that are not in `measures` are left out.
    """
    _, _, cutoff = primary.rpartition("@")
    wanted = [primary, f"P@{cutoff}", f"R@{cutoff}", find_deepest_recall(measures) or "", "RR"]
    wanted += [*list_token_measures(primary, measures), *UNRANKED_MEASURES]
    return [measure for measure in dict.fromkeys(wanted) if measure in measures]


def find_deepest_recall(measures: Iterable[str]) -> str | None:
    """Return the recall with the largest cutoff, None if there is no recall."""
    recalls = [measure for measure in measures if measure.startswith("R@")]
    return max(recalls, key=lambda measure: int(measure[2:]), default=None)


def list_token_measures(primary: str, measures: Collection[str]) -> list[str]:
    """Return token recall at the cutoff of the primary measure, and recall and IoU at the largest number of tokens."""
    _, _, cutoff = primary.rpartition("@")
    at_budget = [measure for measure in measures if measure.startswith(_AT_BUDGET)]
    budget = max((int(measure.removeprefix(_AT_BUDGET)) for measure in at_budget), default=0)
    wanted = (f"TokenR@{cutoff}", f"{_AT_BUDGET}{budget}", f"TokenIoU@tokens={budget}")
    return [measure for measure in dict.fromkeys(wanted) if measure in measures]
