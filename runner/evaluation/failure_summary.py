"""Count the failures of each class, and say what the rankings at hand already show about its remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.evaluation.failure_classes import ADVICE, FailureAdvice, FailureLabel
from runner.evaluation.failures import QueryFailure


@dataclass(frozen=True)
class ClassSummary:
    """The number of failures of a class, its advice, and `proof`: what rankings show about the remedy, or "".

    `first_step` is what to try first, as in `choose_first_step`.
    """

    name: FailureLabel
    failures: int
    advice: FailureAdvice
    proof: str
    first_step: str


def summarize_failures(failures: Sequence[QueryFailure], cutoff: int, depth: int) -> list[ClassSummary]:
    """Return a summary of each class that has failures, in the order of the classes.

    A query is missed if it has no gold among its first `cutoff` hits; `depth` hits were searched. Nothing is searched
    again.
    """
    summaries = []
    for name, advice in ADVICE.items():
        own = [failure for failure in failures if name in failure.labels]
        if own:
            proofs = filter(None, [_prove(name, own, cutoff, depth), _prove_depth(own)])
            first_step = choose_first_step(name, own, cutoff)
            summaries.append(ClassSummary(name, len(own), advice, "; ".join(proofs), first_step))
    return summaries


def choose_first_step(name: FailureLabel, failures: Sequence[QueryFailure], cutoff: int) -> str:
    """Return what to try first for missed queries of a class.

    It is what has gold of the most of them within the cutoff: another combination of the sweep or else LSA. The advice
    on the class is for the others.
    """
    near, advice, n = [_list_near(failure, cutoff) for failure in failures], ADVICE[name].first_step, len(failures)
    counts = Counter(label for ranks in near for label in ranks)
    if not counts:
        return advice
    label, count = counts.most_common(1)[0]
    gold = f"gold of {count} of {n} in its first {cutoff}" if n > 1 else f"gold at rank {near[0][label]}"
    known = f"{label} has {gold}: try to fuse both (retriever=hybrid)."
    return known if count == n else f"{known} For the others: {advice}"


def _list_near(failure: QueryFailure, cutoff: int) -> Mapping[str, int]:
    """Return the ranks within the cutoff at which others have gold of a query, best first."""
    if failure.reached or failure.semantic_rank is None or failure.semantic_rank > cutoff:
        return failure.reached
    return {"LSA of whole documents": failure.semantic_rank}


def _prove_depth(failures: Sequence[QueryFailure]) -> str:
    """Return for how many of the queries a greater depth of the retriever adds gold to the candidates, "" for none."""
    depths = [of.needed_depth for of in failures if of.needed_depth is not None and of.gold_rank is None]
    if not depths:
        return ""
    return f"retriever.depth={max(depths)} brings gold of {len(depths)} of {len(failures)} among the candidates"


def _prove(name: FailureLabel, failures: Sequence[QueryFailure], cutoff: int, depth: int) -> str:
    n = len(failures)
    if name == "absent from the corpus":
        return f"{_count({i for failure in failures for i in failure.absent})} missing"
    if name == "unjudged above gold":
        return f"{_count({failure.lookalike for failure in failures})} to judge"
    if name == "vocabulary mismatch":
        if all(failure.semantic_rank is None for failure in failures):
            return ""
        by_meaning = sum((failure.semantic_rank or cutoff + 1) <= cutoff for failure in failures)
        return f"LSA of whole documents finds gold in its first {cutoff} for {by_meaning} of {n}"
    if depth <= cutoff:
        return ""
    below = sum(failure.gold_rank is not None for failure in failures)
    return f"gold of {below} of {n} is at ranks {cutoff + 1} to {depth}, within reach of a reranker"


def _count(documents: set[str | None] | set[str]) -> str:
    return f"{len(documents):,} document" + ("" if len(documents) == 1 else "s")
