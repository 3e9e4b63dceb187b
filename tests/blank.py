"""Blank plots, since drawing takes half the time of a small sweep."""

from __future__ import annotations

from runner.reports.inspection import plots as inspection_plots
from runner.reports.rendering import charts

VARIABLE = "BLANK_PLOTS"
"""The environment variable that makes processes of `tests/warm.py` leave plots blank."""

DRAWING = (charts, inspection_plots)
"""The modules that draw, each with its `render_svg`."""


def render_blank(*_arguments: object) -> str:
    """Return an empty plot."""
    return '<svg viewBox="0 0 360 216" role="img"></svg>'
