"""The pages of the desk as HTML; all texts are escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment

from runner.pages.highlighting import iter_segments
from runner.pages.page import create_environment

TEMPLATES = Path(__file__).with_name("templates")

GRADE_WORDS = {
    1: ("not relevant", "relevant"),
    2: ("not relevant", "partly relevant", "relevant"),
    3: ("not relevant", "related", "partly answers", "fully answers"),
    4: ("bad", "fair", "good", "excellent", "perfect"),
}
"""What grades mean, by the highest grade.

From 0 to 3, they paraphrase the TREC Deep Learning track (https://trec.nist.gov/data/deep2019.html).
"""


def render_page(template: str, **values: object) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = create_environment(TEMPLATES)
    environment.globals |= {"segments": iter_segments, "name_grade": name_grade}
    environment.filters["duration"] = format_duration
    return environment


def name_grade(grade: int, greatest: int) -> str:
    """Return what a grade means, "" if the scale has no words."""
    words = GRADE_WORDS.get(greatest, ())
    if words:
        return words[grade]
    return {0: "not relevant", greatest: "most relevant"}.get(grade, "")


def format_duration(seconds: float) -> str:
    """Return a rough duration: 40 s, 12 min, 3 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
