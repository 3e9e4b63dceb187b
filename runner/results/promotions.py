"""The promotions of a baseline: which result replaced which, by whom, when, and with which mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

PROMOTION = "promotion.json"
"""The file of a baseline with its newest promotion and the `earlier` ones."""


@checked(frozen=True)
class PromotionRecord:
    """A promotion of a run to the baseline `name`; `low` and `high` are the interval of the mean.

    `source` says where the result came from, as in `Named`. `earlier` are the promotions before it, oldest first.
    """

    name: str
    by: str
    at: datetime
    source: str
    run: str
    config_hash: str
    dataset_fingerprint: str
    git_commit: str
    primary: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    earlier: Sequence[PromotionRecord] = ()


_RECORD = TypeAdapter(PromotionRecord)


def load_promotions(folder: Path) -> list[PromotionRecord]:
    """Return the promotions of the baseline in a folder, oldest first; none if they are unknown or cannot be read."""
    try:
        newest = _RECORD.validate_json((folder / PROMOTION).read_bytes())
    except (OSError, ValidationError):
        return []
    return [*newest.earlier, replace(newest, earlier=())]


def load_histories(baselines: Path) -> dict[str, list[PromotionRecord]]:
    """Return the promotions of each baseline in a folder by its name, oldest first."""
    histories = {file.parent.name: load_promotions(file.parent) for file in sorted(baselines.glob(f"*/{PROMOTION}"))}
    return {name: history for name, history in histories.items() if history}
