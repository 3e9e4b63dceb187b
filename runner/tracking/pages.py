"""What the pages of reports say about their runs: where MLflow shows them, and the settings that repeat them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runner.config.repeating import list_overrides
from runner.pages.explorer.place import LiveState, PagePlace
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store

UI_ADDRESS = "http://127.0.0.1:5000"
"""Where `python -m runner ui` serves MLflow by default."""


def create_place(tracking: Tracking, runs: Sequence[str] = (), live: LiveState | None = None) -> PagePlace:
    """Return the place of a page; `runs` are the ids of its systems, "" where unknown."""
    store, overrides = choose_store(tracking), tuple(tracking.overrides())
    place = PagePlace(live, tuple(runs), list_overrides, overrides=overrides)
    if not store.keeps_runs:
        return place
    if store.page is not None:
        return replace(place, mlflow=store.page)
    return replace(place, mlflow=UI_ADDRESS, start_mlflow=" ".join(["python -m runner ui", *overrides]))
