"""What the pages of reports say about their runs: where MLflow shows them, and the settings that repeat them."""

from __future__ import annotations

from collections.abc import Sequence

from runner.config.repeating import list_overrides
from runner.config.values import without_secrets
from runner.reports.explorer.place import LiveState, PagePlace
from runner.tracking.settings import Tracking

UI_ADDRESS = "http://127.0.0.1:5000"
"""Where `python -m runner ui` serves MLflow by default."""


def create_place(tracking: Tracking, runs: Sequence[str] = (), live: LiveState | None = None) -> PagePlace:
    """Return the place of a page; `runs` are the ids of its systems, "" where unknown."""
    if tracking.is_off:
        return PagePlace(live, tuple(runs), list_overrides)
    uri = without_secrets(tracking.uri)
    if uri.startswith("http"):
        return PagePlace(live, tuple(runs), list_overrides, uri.rstrip("/"))
    command = "" if tracking.is_server() else " ".join(["python -m runner ui", *tracking.overrides()])
    return PagePlace(live, tuple(runs), list_overrides, UI_ADDRESS if command else "", command)
