"""Fill templates of requests, and find values in replies, for services that take and return JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

MISSING = object()
"""What `get_path` returns for an optional value that a reply lacks."""


def fill_template(template: object, values: Mapping[str, object]) -> Any:  # noqa: ANN401 (any JSON)
    """Return a template with `{name}` replaced, in keys too, and null values left out.

    A text that is a single placeholder becomes the value itself; a longer text with a null value becomes null. A name
    without a value stays unchanged. An object whose values are all null is left out of the object that contains it.
    """
    if isinstance(template, Mapping):
        filled = {_fill_text(str(name), values): _fill_value(value, values) for name, value in template.items()}
        return {name: value for name, value in filled.items() if value is not None and name is not None}
    if isinstance(template, list):
        return [fill_template(value, values) for value in template]
    return _fill_text(template, values) if isinstance(template, str) else template


def _fill_value(template: object, values: Mapping[str, object]) -> object:
    filled = fill_template(template, values)
    return None if template and filled == {} else filled


def _fill_text(template: str, values: Mapping[str, object]) -> Any:  # noqa: ANN401 (any JSON)
    match = _PLACEHOLDER.fullmatch(template)
    if match and match[1] in values:
        return values[match[1]]
    names = [name for name in _PLACEHOLDER.findall(template) if name in values]
    if any(values[name] is None for name in names):
        return None
    return _PLACEHOLDER.sub(lambda match: format_text(values.get(match[1], match[0])), template)


def format_text(value: object) -> str:
    """Return a value as text: objects and lists are JSON."""
    return json.dumps(value) if isinstance(value, (Mapping, list)) else str(value)


def fill_address(path: str, values: Mapping[str, object]) -> str:
    """Return a path of an address with `{name}` replaced and percent-encoded."""
    return _PLACEHOLDER.sub(
        lambda match: quote(str(values[match[1]]), safe="") if match[1] in values else match[0], path
    )


def has_placeholder(template: object, *names: str) -> bool:
    """Return whether a template has the placeholder of one of these names."""
    if isinstance(template, Mapping):
        return any(has_placeholder(part, *names) for item in template.items() for part in item)
    if isinstance(template, list):
        return any(has_placeholder(value, *names) for value in template)
    return isinstance(template, str) and not set(names).isdisjoint(_PLACEHOLDER.findall(template))


def iter_text_names(template: object, name: str = "") -> Iterator[str]:
    """Yield the names, joined by dots, of texts in a template that are not placeholders."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from iter_text_names(value, f"{name}.{key}" if name else str(key))
    elif isinstance(template, list):
        for value in template:
            yield from iter_text_names(value, name)
    elif isinstance(template, str) and not _PLACEHOLDER.fullmatch(template):
        yield name


def get_path(reply: object, path: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the value at a path of keys and positions, joined by dots; the reply itself for "".

    A name that ends with "?" may be missing: the value is then `MISSING`. Raises `LookupError` if any other is missing.
    """
    for name in path.split(".") if path else ():
        key = name.removesuffix("?")
        if isinstance(reply, Mapping) and key in reply:
            reply = reply[key]
        elif isinstance(reply, list) and key.isdecimal() and int(key) < len(reply):
            reply = reply[int(key)]
        elif key != name:
            return MISSING
        else:
            raise LookupError(f"the reply has no {path.replace('?', '')}")
    return reply
