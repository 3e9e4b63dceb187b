"""The templates of reports in HTML, which escape all data. The same input gives the same bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from runner.pages import numbers

SHARED = Path(__file__).with_name("templates")
"""The templates that those of reports extend."""


@cache
def create_environment(folder: Path) -> Environment:
    """Return the settings of the templates of a folder, which may use the shared ones."""
    environment = Environment(
        loader=FileSystemLoader([folder, SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["numbers"] = numbers
    return environment


def render(template: Path, **values: Any) -> str:  # noqa: ANN401 (whatever the template shows)
    """Return a page made from a template and what it shows."""
    return create_environment(template.parent).get_template(template.name).render(**values)
