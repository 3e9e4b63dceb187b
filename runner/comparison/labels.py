"""Label results by the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.result import Result

MOST_SETTINGS = 3
"""The largest number of settings in a label; the others are in the configuration."""


def label_results(results: Sequence[Result]) -> list[str]:
    """Return a label for each result: its swept settings that differ, each under the shortest unambiguous key.

    If these labels are not unique, names are used instead.
    """
    keys, _ = split_swept(results)
    texts: list[list[str]] = [[] for _ in results]
    for key in keys:
        having = [i for i, result in enumerate(results) if key in result.swept]
        short = _short(key, keys)
        for i, value in zip(having, _format_settings([results[i].swept[key] for i in having]), strict=True):
            texts[i].append(value if short == "retriever" else f"{short}={value}")
    labels = [" ".join(text) or result.retriever for text, result in zip(texts, results, strict=True)]
    if len(set(labels)) == len(labels):
        return labels
    settings = _find_differing_settings(results)
    names = [
        " ".join([result.name, *(part for part in parts if part.partition("=")[2] != result.name)])  # such as path=NAME
        for result, parts in zip(results, settings, strict=True)
    ]
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]


def _find_differing_settings(results: Sequence[Result]) -> list[list[str]]:
    """Return, for each result, the first few choices and retriever settings that differ between the results."""
    choices = [dict(result.config.get("choices") or {}) for result in results]
    differing = [group for group in {g: None for c in choices for g in c} if len({c.get(group) for c in choices}) > 1]
    settings = [dict(_leaves(result.config.get("retriever"), "")) for result in results]
    keys = [
        key
        for key in {key: None for leaves in settings for key in leaves}
        if len({repr(leaves.get(key)) for leaves in settings}) > 1
        if not any(part in differing for part in key.split("."))  # the choice of a group implies its settings
    ]
    few = [*((choices, group) for group in differing if group != "retriever"), *((settings, key) for key in keys)]
    return [
        [
            f"{key.rpartition('.')[2]}={format_setting(values[i][key])}"
            for values, key in few[:MOST_SETTINGS]
            if key in values[i]
        ]
        for i in range(len(results))
    ]


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any YAML value)
    """Yield each setting below a node with its dotted key; `_target_` is left out."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key != "_target_":
                yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, node


def format_setting(value: object) -> str:
    """Return a setting's value as text; floats have six significant digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def split_swept(results: Sequence[Result]) -> tuple[list[str], dict[str, Any]]:
    """Return the swept keys that differ between results, and the shared ones with their value."""
    keys = dict.fromkeys(key for result in results for key in result.swept)
    shared = {
        key: results[0].swept[key]
        for key in keys
        if len(results) > 1 and all(key in r.swept and r.swept[key] == results[0].swept[key] for r in results)
    }
    return [key for key in keys if key not in shared], shared


def _short(key: str, keys: Sequence[str]) -> str:
    """Return the shortest suffix of a dotted key that no other key has."""
    parts = key.split(".")
    ends = [".".join(parts[i:]) for i in reversed(range(len(parts)))]
    others = [f".{other}" for other in keys if other != key]
    return next((end for end in ends if not any(other.endswith(f".{end}") for other in others)), key)


def _format_settings(values: Sequence[object]) -> list[str]:
    """Return values as text; paths are shortened to their last parts if these stay distinct."""
    whole = [format_setting(value) for value in values]
    last = [text.rpartition("/")[2] for text in whole]
    return last if len(set(last)) == len(set(whole)) and all(last) else whole
