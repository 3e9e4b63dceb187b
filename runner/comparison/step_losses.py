"""Compare two results by the step that lost each gold document: what a step gains or loses more, with a paired test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.evaluation.losses import NOT_COUNTED
from runner.evaluation.result import Result
from runner.statistics.corrections import correct
from runner.statistics.signs import sign_test


@dataclass(frozen=True)
class StepChange:
    """The gold documents that a step loses `before` and `after`, over the queries that both results answered.

    It loses fewer gold documents of `better` queries (or clusters of variants), and more of `worse` ones. `p` is that
    of a sign test on these, corrected for all steps: no step was chosen beforehand, so the tests are exploratory.
    """

    step: str
    before: int
    after: int
    better: int
    worse: int
    p: float


def compare_steps(before: Result, after: Result, clusters: NDArray[np.int64] | None = None) -> list[StepChange]:
    """Return the change of each step, in the order of the steps of both; empty if gold, cutoff or queries differ.

    `clusters` (queries,) are numbers of clusters of variants.
    """
    queries, first, second = after.queries, before.losses, after.losses
    if first is None or second is None or first.cutoff != second.cutoff:
        return []
    if before.has_foreign_ids or after.has_foreign_ids:
        return []
    if list(before.queries.ids) != list(queries.ids) or list(map(list, before.queries.expected)) != list(
        map(list, queries.expected)
    ):
        return []
    query_of = np.repeat(np.arange(len(queries.ids)), [len(gold) for gold in queries.expected])
    units = query_of if clusters is None else clusters[query_of]
    counted = (first.codes != NOT_COUNTED) & (second.codes != NOT_COUNTED)
    steps = list(dict.fromkeys([*first.steps, *second.steps]))
    lost = [[counted & _mark_step(losses.steps, losses.codes, step) for losses in (first, second)] for step in steps]
    per_unit = [[np.bincount(units[mask], minlength=int(units.max(initial=0)) + 1) for mask in pair] for pair in lost]
    counts = [(int((b > a).sum()), int((a > b).sum())) for b, a in per_unit]
    p_values = correct(np.array([sign_test(better, worse) for better, worse in counts]), "holm")
    return [
        StepChange(step, int(pair[0].sum()), int(pair[1].sum()), better, worse, float(p))
        for step, pair, (better, worse), p in zip(steps, lost, counts, p_values, strict=True)
        if pair[0].any() or pair[1].any()
    ]


def _mark_step(steps: Sequence[str], codes: NDArray[np.int8], step: str) -> NDArray[np.bool_]:
    return codes == steps.index(step) if step in steps else np.zeros(len(codes), dtype=np.bool_)
