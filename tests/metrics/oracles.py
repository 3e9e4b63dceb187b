"""The measures that ir_measures lacks, computed for one query in a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Oracle = Callable[[Sequence[int], Sequence[int], int], float]
"""Takes the grades of the hits of a query, best first, 0 for unjudged ones, the grades of its judgments, the cutoff."""


def compute_f1(hits: Sequence[int], judged: Sequence[int], k: int) -> float:
    """Return the harmonic mean of precision and recall."""
    found = sum(grade > 0 for grade in hits[:k])
    precision, recall = found / k, found / sum(grade > 0 for grade in judged)
    return 2 * precision * recall / (precision + recall) if found else 0.0


ORACLES: Mapping[str, Oracle] = {"F1": compute_f1}
