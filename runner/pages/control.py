"""Texts without what a terminal obeys: run names, ids, documents and messages of servers come from other people.

Escape sequences, also links (OSC 8), the control characters C0 and C1, and the controls of writing direction, which
make a line read otherwise than it is, are removed; line breaks and tabs stay.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
import warnings
from types import TracebackType
from typing import TextIO

from runner.config.environment import hide_values

_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"

_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # strings, such as OSC 8
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI, such as colours and movements
    r"|\x1b[ -/]*[0-~]?"
    rf"|[{_CONTROL}]"
)

_IN_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What JSON does not escape of its own accord."""


def clean_text(text: str) -> str:
    """Return a text without escape sequences and control characters."""
    return _SEQUENCE.sub("", text)


def escape_json(text: str) -> str:
    """Return an equal JSON document in which control characters are escaped."""
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class CleanLines(logging.Formatter):
    """Formats a record without control characters and secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        return clean_text(hide_values(super().format(record)))


def clean_messages() -> None:
    """Let Python print log messages, warnings and uncaught errors without control characters and secrets."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(CleanLines())
    warnings.showwarning = _show_warning
    sys.excepthook = _show_error


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    (file or sys.stderr).write(
        clean_text(hide_values(warnings.formatwarning(message, category, filename, lineno, line)))
    )


def _show_error(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    sys.stderr.write(clean_text(hide_values("".join(traceback.format_exception(kind, error, at)))))
