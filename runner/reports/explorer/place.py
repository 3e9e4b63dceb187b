"""Where a page is shown: as a file, or by a server that has newer data, whole texts and the judging desk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LiveState:
    """The state of what a server shows: another `version` means other data; `finished` counts combinations."""

    version: str
    is_running: bool = False
    finished: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the state for JSON."""
        return {"version": self.version, "running": self.is_running, "finished": self.finished}


@dataclass(frozen=True)
class PagePlace:
    """Where a page is shown; `live` is None for a file."""

    live: LiveState | None = None


FILE = PagePlace()
