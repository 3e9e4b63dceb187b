"""Values that messages must not show: passwords, and environment variables, which are recorded as references."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from retrievers.excerpts import ELLIPSIS
from retrievers.spellings import HIDDEN, spell_secret, spell_value

RESOLVER = "oc.env"
"""The resolver of environment variables; every reference to one contains this name."""

_VARIABLE = re.compile(r"oc\.env\s*:\s*([^,}\s]*)")
_PLACEHOLDER = "__environment_{}__"
"""Stands for a reference while a config is resolved; a plain word, so that it can be an argument of a resolver."""

_SHORT = 4
"""Values with fewer characters are hidden only as whole words, as they are likely to occur inside other words.

If a value was cut off, remaining parts with fewer characters are not hidden."""

_CUT = re.compile(rf"({ELLIPSIS}|\.\.\.)")
"""The mark of shortened text in messages."""

_referenced: set[str] = set()
_public: set[str] = set()
"""The variables that settings of the current command refer to, and the public ones."""

_secrets: set[str] = set()
"""The passwords, tokens and keys in settings of the current command."""


def forget_references() -> None:
    """Forget the references and the secrets of an earlier command."""
    _referenced.clear()
    _public.clear()
    _secrets.clear()


def note_secrets(secrets: Iterable[str]) -> None:
    """Remember secrets as they are written in settings, for `hide_values`."""
    _secrets.update(secret for secret in secrets if "${" not in secret)


def note_references(raw: Any) -> None:  # noqa: ANN401 (any unresolved config, or overrides)
    """Remember the variables that unresolved settings refer to, for `hide_values`."""
    text = json.dumps(raw, default=str)
    if RESOLVER in text:
        _referenced.update(_VARIABLE.findall(text))
        names = raw.get("public_environment") if isinstance(raw, Mapping) else None
        _public.update(name for name in names or () if isinstance(name, str))


def hide_values(text: str) -> str:
    """Return a text without secrets, and with references in place of the values of variables that are not public.

    Errors of this program and of libraries quote settings, and must not show these values.
    """
    values = {name: value for name in _referenced - _public if (value := os.environ.get(name))}
    spellings = {spelling: HIDDEN for secret in _secrets for spelling in spell_secret(secret)}
    spellings |= {
        spelling: f"${{{RESOLVER}:{name}}}" for name, value in values.items() for spelling in spell_value(value)
    }
    for spelling in sorted(spellings, key=len, reverse=True):
        if spelling in text:
            alone = rf"(?<![\w.]){re.escape(spelling)}(?![\w.])" if len(spelling) < _SHORT else re.escape(spelling)
            text = re.sub(alone, lambda _, shown=spellings[spelling]: shown, text)  # type: ignore[misc]  # of a default argument
    return _hide_cut_values(text, spellings)


def _hide_cut_values(text: str, spellings: Mapping[str, str]) -> str:
    """Return a text in which the start of a value before an ellipsis, or its end after one, is replaced."""
    parts = _CUT.split(text) if spellings else [text]
    for spelling in sorted(spellings, key=len, reverse=True):
        reference = spellings[spelling]
        lengths = range(len(spelling) - 1, _SHORT - 1, -1)
        for i in range(0, len(parts) - 1, 2):
            if shown := next((n for n in lengths if parts[i].endswith(spelling[:n])), 0):
                parts[i] = parts[i][:-shown] + reference
            if shown := next((n for n in lengths if parts[i + 2].startswith(spelling[-n:])), 0):
                parts[i + 2] = reference + parts[i + 2][shown:]
    return "".join(parts)


def hide_environment(raw: Any, public: Collection[str]) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 (any value)
    """Return an unresolved config with placeholders for its references to variables that are not public.

    The second value maps placeholders to references; pass it to `show_references` after the config is resolved. Nested
    references such as `${oc.decode:${oc.env:K1}}` get one placeholder.
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
    """Return a resolved value in which placeholders are replaced by their references."""
    if isinstance(value, Mapping):
        return {key: show_references(v, references) for key, v in value.items()}
    if isinstance(value, list):
        return [show_references(v, references) for v in value]
    if isinstance(value, str):
        for placeholder, reference in references.items():
            value = value.replace(placeholder, reference)
    return value


def _interpolations(text: str) -> Iterator[str]:
    """Yield the outermost `${...}` of a text; an unclosed one extends to the end."""
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
