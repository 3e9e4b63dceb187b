"""Prompts: templates in text files, those that come with this package and the user's own.

A template's gaps are words after a dollar sign. What fills a gap is never taken for a gap itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template

from retrievers.store import fingerprint

BUNDLED = "bundled:"
"""How a path begins that names a file which comes with this package."""


@dataclass(frozen=True)
class Prompt:
    """The text of a template."""

    text: str

    @cached_property
    def hash(self) -> str:
        """Return a hash of the text, as 32 hexadecimal digits."""
        return fingerprint("prompt", self.text)

    def fill(self, **gaps: str) -> str:
        """Return the text with its gaps filled."""
        return Template(self.text).substitute(gaps)


def prompt_in(path: str, gaps: Collection[str]) -> Prompt:
    """Read a template, which has just these gaps; raises `ValueError`."""
    bundled = path.startswith(BUNDLED)
    file = Path(__file__).parent / path.removeprefix(BUNDLED) if bundled else Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as a prompt ({error})") from None
    template = Template(text)
    if not template.is_valid() or set(template.get_identifiers()) != set(gaps):
        wanted = ", ".join(f"${gap}" for gap in gaps)
        raise ValueError(f"{path}: a prompt has the gaps {wanted}, all of them and no other; a dollar sign is $$")
    return Prompt(text)
