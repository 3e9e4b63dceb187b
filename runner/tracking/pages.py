"""What the pages of reports say about their runs: where MLflow shows them, and the settings that repeat them."""

from __future__ import annotations

from collections.abc import Sequence

from runner.config.repeating import list_overrides
from runner.pages.explorer.place import LiveState, PagePlace
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store

UI_ADDRESS = "http://127.0.0.1:5000"
"""Where `python -m runner ui` serves MLflow by default."""


def create_place(tracking: Tracking, runs: Sequence[str] = (), live: LiveState | None = None) -> PagePlace:
    """Return the place of a page; `runs` are the ids of its systems, "" where unknown."""
    store = choose_store(tracking)
    if not store.keeps_runs:
        return PagePlace(live, tuple(runs), list_overrides)
    if store.page is not None:
        return PagePlace(live, tuple(runs), list_overrides, store.page)
    command = " ".join(["python -m runner ui", *tracking.overrides()])
    return PagePlace(live, tuple(runs), list_overrides, UI_ADDRESS, command)
