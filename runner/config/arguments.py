"""Settings quoted for the command line, so that the shell and Hydra read them unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_PLAIN = re.compile(r"[A-Za-z_./-][\w./:@-]*", re.ASCII)
_NO_TEXT = re.compile(r"null|true|false|nan|-?inf|[-.\d_]+(?:e[-+\d]+)?", re.IGNORECASE)


def arguments(settings: Mapping[str, str]) -> str:
    """Return settings by key as arguments of a command."""
    return shlex.join(f"{key}={_value(value)}" for key, value in settings.items())


def _value(text: str) -> str:
    """Return a value for Hydra, quoted if Hydra would not read it as this text."""
    from hydra.core.override_parser.types import Quote, QuotedString

    if _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text):
        return text
    return QuotedString(text.replace("${", r"\${"), Quote.double).with_quotes()
