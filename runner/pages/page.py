"""The templates of reports in HTML, which escape all data. The same input gives the same bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from runner.pages import numbers


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
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
