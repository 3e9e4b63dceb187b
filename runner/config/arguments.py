"""Settings as overrides, quoted so that Hydra, and for arguments also the shell, read them unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_PLAIN = re.compile(r"[A-Za-z_./-][\w./:@-]*", re.ASCII)
_NO_TEXT = re.compile(r"null|true|false|nan|-?inf|[-.\d_]+(?:e[-+\d]+)?", re.IGNORECASE)


def arguments(settings: Mapping[str, object]) -> str:
    """Return settings by key as arguments of a command."""
    return shlex.join(format_override(key, value) for key, value in settings.items())


def format_override(key: str, value: object) -> str:
    """Return a setting as an override, quoted unless Hydra reads the plain text as the same value."""
    return f"{key}={_format_value(value)}"


def _format_value(value: object) -> str:
    from hydra.core.override_parser.types import Quote, QuotedString

    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_format_value(element)}' for key, element in value.items())}}}"
    text = str(value)
    if _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text):
        return text
    return QuotedString(text.replace("${", r"\${"), Quote.double).with_quotes()
