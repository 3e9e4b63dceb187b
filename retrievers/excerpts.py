"""The start of a long text, for a message. Knows nothing of what the text is about."""

from __future__ import annotations

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten_text(text: str, longest: int) -> str:
    """Return a text on one line, of at most `longest` characters, with an ellipsis in place of what is cut off.

    The ellipsis matters: it shows who hides secret values in messages that a part of one may stand before it.
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}{ELLIPSIS}"
