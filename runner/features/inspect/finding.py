"""A problem of a dataset that an inspection found, and how problems are ordered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WRONG, DOUBTFUL, OF_NOTE = "error", "warning", "info"
GRAVITIES = (WRONG, DOUBTFUL, OF_NOTE)
"""The severities of a finding: it invalidates measures, it may do so, or it is worth knowing."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem of a dataset: its severity, how many of how many items are affected, and what to do about it."""

    name: str
    gravity: str
    count: int
    of: int
    text: str
    remedy: str
    examples: Sequence[Mapping[str, Any]] = ()

    @property
    def share(self) -> float:
        """Return the share of items that is affected."""
        return self.count / self.of if self.of else 0.0


def order_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, most serious first; of equally serious ones, the one with the larger share first."""
    return sorted(findings, key=lambda finding: (GRAVITIES.index(finding.gravity), -finding.share, finding.name))
