"""Cells of files that people open in a spreadsheet program, which takes some texts for formulas."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORMULA = re.compile(r" *[=+\-@\t\r\n＝＋－＠]")


def escape_formula(text: str) -> str:
    """Return a text that a spreadsheet program does not interpret as a formula; `restore_text` takes this back."""
    return f" {text}" if _FORMULA.match(text) else text


def restore_text(cell: str) -> str:
    """Return the text of a cell that `escape_formula` wrote."""
    return cell[1:] if cell.startswith(" ") and _FORMULA.match(cell[1:]) else cell


def protect_row(cells: Iterable[object]) -> list[object]:
    """Return the cells of a row with texts escaped; numbers stay numbers."""
    return [escape_formula(cell) if isinstance(cell, str) else cell for cell in cells]
