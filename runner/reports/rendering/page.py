"""What a report in HTML is made of: a template, and plots that stand in it.

Each is one file: plots and style inside, nothing from elsewhere, readable on a phone and in the dark. Knows nothing of
what is told. The same input gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from runner.reports.rendering import numbers
from runner.reports.rendering.tables import Table


@dataclass(frozen=True)
class Figure:
    """A plot under its title, with a sentence on what it shows, and maybe its numbers."""

    title: str
    text: str
    svg: Markup
    table: Table | None = None


def figure(title: str, text: str, svg: str, table: Table | None = None) -> Figure:
    """Return a plot as the part of a page, given what matplotlib drew; who cannot see it is told its title."""
    named = svg.replace(' role="img"', f' role="img" aria-label="{escape(title)}"', 1)
    return Figure(title, text, Markup(named), table)  # noqa: S704 (matplotlib escapes what it writes)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["numbers"] = numbers
    return environment


def render(template: str, **values: Any) -> str:  # noqa: ANN401 (whatever the template shows)
    """Return a page made from a template and what it shows."""
    return _environment().get_template(template).render(**values)
