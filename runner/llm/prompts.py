"""Prompts: text files with gaps, which are words after a dollar sign. They are bundled or user files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template

from retrievers.store import fingerprint

BUNDLED = "bundled:"
"""The prefix of a path to a prompt that comes with this package."""


@dataclass(frozen=True)
class Prompt:
    """The text of a prompt."""

    text: str

    @cached_property
    def hash(self) -> str:
        """Return a hash of the text, as 32 hexadecimal digits."""
        return fingerprint("prompt", self.text)

    def fill(self, **gaps: str) -> str:
        """Return the text with its gaps filled; dollar signs in the values stay as they are."""
        return Template(self.text).substitute(gaps)


def load_prompt(
    path: str | Path, gaps: Collection[str], optional: Collection[str] = (), bundled: Path = Path()
) -> Prompt:
    """Load a prompt that has all of `gaps` and no others except `optional` ones; raises `ValueError`.

    A path that starts with "bundled:" names a file in the folder `bundled`.
    """
    name = str(path)
    file = bundled / name.removeprefix(BUNDLED) if name.startswith(BUNDLED) else Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: the prompt cannot be read ({error})") from None
    template = Template(text)
    present = set(template.get_identifiers()) if template.is_valid() else {""}
    if not set(gaps) <= present <= {*gaps, *optional}:
        needed, allowed = (", ".join(f"${gap}" for gap in names) for names in (gaps, optional))
        may = f" (optional: {allowed})" if optional else ""
        raise ValueError(
            f"{path}: a prompt must contain {needed}{may} and no other placeholders; write $$ for a dollar sign"
        )
    return Prompt(text)


def format_passages(texts: Collection[str]) -> str:
    """Return texts as numbered passages for a question."""
    return "\n\n".join(f"[Passage {number}]\n{text}" for number, text in enumerate(texts, start=1))
