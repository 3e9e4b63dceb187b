"""How much reports contain: the node `report` of a config. It does not affect a result."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass as settings

Texts = Literal["full", "snippets", "none"]
"""How much of each document a report contains: all of its text, the beginning, or only its id."""


@settings(frozen=True, config={"extra": "forbid"})
class ReportSettings:
    """What reports contain: see `conf/evaluate.yaml`."""

    texts: Texts = "snippets"
