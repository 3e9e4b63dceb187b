"""The pages of `look` that are not those of reports: the list of runs, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.features.look.shown import MOST_COMPARED
from runner.pages.page import render
from runner.tracking.logged import Run

TEMPLATES = Path(__file__).with_name("templates")

MOST_LISTED = 200
"""Most runs in the list."""


def render_list(runs: Sequence[Run], first: str, pages: Sequence[str]) -> str:
    """Return the list of runs, newest first; `first` is the id of those that the command shows.

    `pages` are the titles of pages that features add.
    """
    listed = runs[:MOST_LISTED]
    return render(TEMPLATES / "list.jinja", runs=listed, total=len(runs), first=first, most=MOST_COMPARED, pages=pages)


def render_message(title: str, text: str) -> str:
    """Return a page with a message and a link to the list of runs."""
    return render(TEMPLATES / "message.jinja", title=title, text=text)
