"""The scores of systems on several datasets, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SystemScores:
    """A system with its score on each dataset (None: not evaluated), and its mean rank if it has all scores."""

    label: str
    mean_rank: float | None
    scores: Sequence[float | None]


@dataclass(frozen=True)
class SystemsByDataset:
    """The primary measure of each system on each dataset, best mean rank first; empty for a single dataset."""

    datasets: Sequence[str] = ()
    systems: Sequence[SystemScores] = ()
