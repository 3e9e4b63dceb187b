"""Names of classes, functions and modules as prose writes them. What a name stands for is not known here."""

from __future__ import annotations

import re

_SPELT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\b[A-Z]+[a-z0-9]+[A-Z]\w*|\b[A-Za-z]\w*_\w+")
_QUOTED = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def names_in(text: str) -> list[str]:
    """Return what is spelt as names are and words are not, each once: dotted, in CamelCase or with an underscore."""
    return list(dict.fromkeys(_SPELT.findall(text)))


def quoted_names(text: str) -> list[str]:
    """Return the names between backticks that may be classes, each once, with those of which they are a part.

    `LoopAgent.run` also names `LoopAgent`; a bare word in lower case names no class.
    """
    names = [name for quoted in _QUOTED.findall(text) for name in _NAME.findall(quoted)]
    return [name for name in with_parts(names) if name[:1].isupper() or "." in name]


def with_parts(names: list[str]) -> list[str]:
    """Return names, each followed by the longer to the shorter of those that it is within: `a.b.C`, `a.b`, `a`."""
    split = (name.split(".") for name in names)
    return list(dict.fromkeys(".".join(parts[:end]) for parts in split for end in range(len(parts), 0, -1)))
