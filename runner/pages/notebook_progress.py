"""A progress bar in a notebook: HTML that the front end replaces, for which it needs no widgets."""

from __future__ import annotations

import sys
from html import escape
from typing import Any

EVERY_S = 0.2
"""How often a bar is drawn, in seconds."""


class ProgressBar:
    """A bar below the cell that runs. `handle` is what IPython returns for a display that can be updated.

    All work of a cell shares it. At the end it is the last line on work with a count, or else that on any work.
    """

    def __init__(self, handle: Any, cell: object = None) -> None:  # noqa: ANN401 (IPython has no types)
        self._handle, self.cell, self._last = handle, cell, ""

    def draw(self, text: str, done: int, total: int) -> None:
        """Replace the bar."""
        self._handle.update({"text/html": render_bar(text, done, total), "text/plain": text}, raw=True)

    def close(self, text: str, counted: bool) -> None:
        """Replace the bar by a line on how the work ended."""
        self._last = text if counted or not self._last else self._last
        self.draw(self._last, 0, 0)


_latest: ProgressBar | None = None
"""The bar of the cell that last had one."""


def open_bar(text: str, done: int, total: int) -> ProgressBar | None:
    """Return a bar below the cell that runs, None outside a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):  # a terminal has no kernel
        return None
    from IPython.display import display

    global _latest
    cell = getattr(shell, "execution_count", None)
    if _latest is not None and cell is not None and _latest.cell == cell:
        return _latest
    content = {"text/html": render_bar(text, done, total), "text/plain": text}
    handle = display(content, raw=True, display_id=True)
    _latest = None if handle is None else ProgressBar(handle, cell)
    return _latest


def render_bar(text: str, done: int, total: int) -> str:
    """Return a bar as HTML; without a total, only its text."""
    bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
    return f"<div>{bar}{escape(text)}</div>"
