"""Find names of classes, functions and modules in prose."""

from __future__ import annotations

import re

_SPELT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\b[A-Z]+[a-z0-9]+[A-Z]\w*|\b[A-Za-z]\w*_\w+")
_QUOTED = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def find_names(text: str) -> list[str]:
    """Return the words spelt like names, each once: dotted, in CamelCase or with an underscore."""
    return list(dict.fromkeys(_SPELT.findall(text)))


def find_quoted_names(text: str) -> list[str]:
    """Return the distinct names in backticks that may be classes, each with the names of its enclosing objects.

    `LoopAgent.run` also names `LoopAgent`; a single word in lower case does not name a class.
    """
    names = [name for quoted in _QUOTED.findall(text) for name in _NAME.findall(quoted)]
    return [name for name in add_parents(names) if name[:1].isupper() or "." in name]


def add_parents(names: list[str]) -> list[str]:
    """Return names, each followed by the names of its enclosing objects, the innermost first: `a.b.C`, `a.b`, `a`."""
    split = (name.split(".") for name in names)
    return list(dict.fromkeys(".".join(parts[:end]) for parts in split for end in range(len(parts), 0, -1)))
