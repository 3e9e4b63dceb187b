"""The tables of what is recognised, in the page about datasets, are those in code."""

from __future__ import annotations

from pathlib import Path

from release.shapes import write_page

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_the_tables_are_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert write_page(page) == page, "run `make docs`"
