"""What tells results apart: the settings in which they differ, as short as they can be said.

Knows nothing of how well they did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.result import Result

TOLD_APART = 3
"""How many settings tell two results apart at most; the rest can be read in their configs."""


def labels(results: Sequence[Result]) -> list[str]:
    """Return what tells results apart: the swept settings that differ, each by as much of its key as it needs.

    Where that does not tell them apart, their names do.
    """
    keys, _ = swept_apart(results)
    texts: list[list[str]] = [[] for _ in results]
    for key in keys:
        having = [i for i, result in enumerate(results) if key in result.swept]
        short = _short(key, keys)
        for i, value in zip(having, _told([results[i].swept[key] for i in having]), strict=True):
            texts[i].append(value if short == "retriever" else f"{short}={value}")
    found = [" ".join(text) or result.retriever for text, result in zip(texts, results, strict=True)]
    if len(set(found)) == len(found):
        return found
    names = [" ".join([result.name, *parts]) for result, parts in zip(results, _settings_apart(results), strict=True)]
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]


def _settings_apart(results: Sequence[Result]) -> list[list[str]]:
    """Return of each result the choices and the retriever's settings in which they differ, a few of them."""
    choices = [dict(result.config.get("choices") or {}) for result in results]
    differing = [group for group in {g: None for c in choices for g in c} if len({c.get(group) for c in choices}) > 1]
    settings = [dict(_leaves(result.config.get("retriever"), "")) for result in results]
    keys = [
        key
        for key in {key: None for each in settings for key in each}
        if len({repr(each.get(key)) for each in settings}) > 1
        if not any(part in differing for part in key.split("."))  # a choice says that already
    ]
    few = [*((choices, group) for group in differing if group != "retriever"), *((settings, key) for key in keys)]
    return [
        [f"{key.rpartition('.')[2]}={told(values[i][key])}" for values, key in few[:TOLD_APART] if key in values[i]]
        for i in range(len(results))
    ]


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any YAML value)
    """Yield each setting below a node with its dotted key, but for what it is made of."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key != "_target_":
                yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, node


def told(value: object) -> str:
    """Return a setting's value as text, without the noise of binary fractions."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def swept_apart(results: Sequence[Result]) -> tuple[list[str], dict[str, Any]]:
    """Return the swept keys that differ between results, and the others with their one value."""
    keys = dict.fromkeys(key for result in results for key in result.swept)
    shared = {
        key: results[0].swept[key]
        for key in keys
        if len(results) > 1 and all(key in r.swept and r.swept[key] == results[0].swept[key] for r in results)
    }
    return [key for key in keys if key not in shared], shared


def _short(key: str, keys: Sequence[str]) -> str:
    """Return the shortest end of a dotted key that no other key ends in."""
    parts = key.split(".")
    ends = [".".join(parts[i:]) for i in reversed(range(len(parts)))]
    others = [f".{other}" for other in keys if other != key]
    return next((end for end in ends if not any(other.endswith(f".{end}") for other in others)), key)


def _told(values: Sequence[object]) -> list[str]:
    """Return values as text; of paths, the last parts alone if those differ where the values do."""
    whole = [told(value) for value in values]
    last = [text.rpartition("/")[2] for text in whole]
    return last if len(set(last)) == len(set(whole)) and all(last) else whole
