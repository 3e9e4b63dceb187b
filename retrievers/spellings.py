"""How values and secrets are spelled in messages: quoted, escaped, percent-encoded."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import quote, unquote

HIDDEN = "***"
"""What is shown in place of a secret."""


def spell_value(value: str) -> set[str]:
    """Return the spellings of a value in messages: on one line, escaped, and as a normalised path."""
    line = " ".join(value.split())
    path = str(Path(value)) if "/" in value else value
    bare = value.strip("'\"")
    spellings = {value, line, path, bare, repr(value)[1:-1], json.dumps(value)[1:-1], html.escape(value), quote(value)}
    return spellings - {"", "."}


def spell_secret(secret: str) -> set[str]:
    """Return the spellings of a secret: as it is written, quoted, percent-encoded, and decoded."""
    quoted = re.sub(r"\\(.)", r"\1", secret)
    forms = {secret, quoted, unquote(secret), quote(secret, safe=""), quote(unquote(secret), safe="")}
    escaped = {form.replace("'", "''") for form in forms} | {re.sub(r"([\\'])", r"\\\1", form) for form in forms}
    return {spelling for form in forms | escaped for spelling in spell_value(form)} - {HIDDEN}
