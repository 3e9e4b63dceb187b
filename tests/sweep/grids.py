"""The combinations of a grid, as values."""

from __future__ import annotations

from typing import Any

from runner.sweep.grid import combinations
from runner.sweep.products import Combination
from runner.sweep.settings import Space


def points(*arguments: str, params: dict[str, Any] | None = None, **space: Any) -> list[Combination]:
    return combinations(arguments, params or {}, Space(**space))


def overrides(*arguments: str, params: dict[str, Any] | None = None, **space: Any) -> list[str]:
    return [" ".join(c.overrides) for c in points(*arguments, params=params, **space)]
