"""Where a page is shown, as a file or by a server, and how a reader gets from it to its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Where a page is shown, and where its runs are; `live` is None for a file.

    `runs` are the ids of its systems, "" where unknown. `list_overrides` returns a recorded config as overrides by key.
    `mlflow` is the address of MLflow's pages, "" if it has none, and `start_mlflow` the command that serves them, "" if
    a server does. `overrides` lead other commands to the runs. `datasets` are those of a sweep with several, each of
    which has a page.
    """

    live: LiveState | None = None
    runs: tuple[str, ...] = ()
    list_overrides: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    mlflow: str = ""
    start_mlflow: str = ""
    overrides: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    def describe_runs(self, configs: Sequence[Mapping[str, Any]], runs: Sequence[str] = ()) -> dict[str, Any]:
        """Return, as data of a page, the runs of its systems, their settings, and where MLflow shows them."""
        ids = list(runs or self.runs) or [""] * len(configs)
        described: dict[str, Any] = {"runs": ids, "mlflow": {"address": self.mlflow, "command": self.start_mlflow}}
        if self.list_overrides is not None:
            described["settings"] = encode_settings([self.list_overrides(config) for config in configs])
        return described


def encode_settings(systems: Sequence[Mapping[str, str]]) -> dict[str, str | list[str | None]]:
    """Return the overrides of systems by key: one that all have is text, any other a list by system (None: absent)."""
    encoded: dict[str, str | list[str | None]] = {}
    for key in dict.fromkeys(key for system in systems for key in system):
        values = [system.get(key) for system in systems]
        first = values[0]
        encoded[key] = first if first is not None and values.count(first) == len(values) else values
    return encoded


FILE = PagePlace()
