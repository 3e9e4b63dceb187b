"""Shorten long texts for messages."""

from __future__ import annotations

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten_text(text: str, longest: int) -> str:
    """Return a text on one line, of at most `longest` characters, with an ellipsis in place of what is cut off.

    Code that masks secrets in messages relies on the ellipsis: a part of a secret may stand before it.
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}{ELLIPSIS}"
