"""The pages of `look` that are not those of reports: the list of runs, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from runner.features.look.shown import MOST_COMPARED
from runner.tracking.logged import Run

MOST_LISTED = 200
"""Most runs in the list."""


def render_list(runs: Sequence[Run], first: str) -> str:
    """Return the list of runs, newest first; `first` is the id of those that the command shows."""
    return (
        _environment()
        .get_template("list.jinja")
        .render(runs=runs[:MOST_LISTED], total=len(runs), first=first, most=MOST_COMPARED)
    )


def render_message(title: str, text: str) -> str:
    """Return a page with a message and a link to the list of runs."""
    return _environment().get_template("message.jinja").render(title=title, text=text)


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
