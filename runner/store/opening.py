"""Which kind of store a place is. Only this module knows that it is a folder."""

from __future__ import annotations

from pathlib import Path

from runner.store.base import WorkStore
from runner.store.disk import DiskStore


def open_store(place: Path) -> WorkStore:
    """Return the store at a place; it is created with its first entry."""
    return DiskStore(place)
