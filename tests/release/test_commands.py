"""The page of the commands is that of their declarations."""

from __future__ import annotations

from pathlib import Path

from release.commands import render_page

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_is_current() -> None:
    assert render_page() == PAGE.read_text(encoding="utf-8"), "run `make docs`"


def test_the_page_explains_the_exit_codes_and_the_documents() -> None:
    text = render_page()
    assert "| 1 | a rule of the gate is violated |\n" in text
    assert "| `files`, `settings`, `notes` | the files, and the settings for reading them |" in text
    assert "python -m runner reproduce FOLDER@CELL [KEY=VALUE] ... [--json]\n" in text
