"""Values from the environment: recorded as the reference that the config holds, unless the variable is public."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

RESOLVER = "oc.env"
"""The resolver that reads a variable, which is in the text of every value from the environment."""

_VARIABLE = re.compile(r"oc\.env\s*:\s*([^,}\s]*)")
_PLACEHOLDER = "__environment_{}__"
"""What stands for a reference while a config is resolved. A plain word, so that resolvers take it as an argument."""


def hide_environment(raw: Any, public: Collection[str]) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 (any value)
    """Return an unresolved config with placeholders for its references to variables that are not public.

    The second value is each placeholder's reference, for `show_references` once the config is resolved. A reference
    is hidden whole: `${oc.decode:${oc.env:K1}}` is one.
    """
    references: dict[str, str] = {}

    def hide(node: Any) -> Any:  # noqa: ANN401 (any value)
        if isinstance(node, Mapping):
            return {key: hide(value) for key, value in node.items()}
        if isinstance(node, list):
            return [hide(value) for value in node]
        if not isinstance(node, str) or RESOLVER not in node:
            return node
        for reference in [part for part in _interpolations(node) if RESOLVER in part]:
            if not all(name in public for name in _VARIABLE.findall(reference)):
                placeholder = _PLACEHOLDER.format(len(references))
                references[placeholder] = reference
                node = node.replace(reference, placeholder, 1)
        return node

    return hide(raw), references


def show_references(value: Any, references: Mapping[str, str]) -> Any:  # noqa: ANN401 (any value)
    """Return a resolved value with each reference where its placeholder is."""
    if isinstance(value, Mapping):
        return {key: show_references(v, references) for key, v in value.items()}
    if isinstance(value, list):
        return [show_references(v, references) for v in value]
    if isinstance(value, str):
        for placeholder, reference in references.items():
            value = value.replace(placeholder, reference)
    return value


def _interpolations(text: str) -> Iterator[str]:
    """Yield the outermost `${...}` of a text, to its end where one is not closed."""
    start = text.find("${")
    while start >= 0:
        depth, end = 0, start
        while end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
            if depth == 0 and text[end - 1] == "}":
                break
        yield text[start:end]
        start = text.find("${", end)
