"""Label results by the settings in which they differ, and identify systems on any dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from runner.config.values import replace_value
from runner.evaluation.result import Result

LABEL = "retriever.label"
"""The setting that names the system whose rankings are in files."""

RUN_FILE = ("path", "format")
"""The settings that a label stands for: those of a file with rankings for one dataset."""

MOST_SETTINGS = 3
"""The largest number of settings in a label; the others are in the configuration."""


def label_results(results: Sequence[Result], swept: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Return a label for each result: its settings that differ, each under the shortest unambiguous key.

    `swept` are the settings of each result, by default its swept ones; those of the dataset do not label a single
    result. If these labels are not unique, names are used instead.
    """
    if swept is None and len(results) == 1:
        return label_systems(results)
    settings = [*map(_put_label, [result.swept for result in results] if swept is None else swept)]
    keys, _ = split_swept(settings)
    texts: list[list[str]] = [[] for _ in results]
    for key in keys:
        having = [i for i, own in enumerate(settings) if key in own]
        short = _short(key, keys)
        for i, value in zip(having, _format_settings([settings[i][key] for i in having]), strict=True):
            texts[i].append(value if short == "retriever" else f"{short}={value}")
    labels = [" ".join(text) or result.retriever for text, result in zip(texts, results, strict=True)]
    if len(set(labels)) == len(labels):
        return labels
    differing = _find_differing_settings(results)
    names = [
        " ".join(
            [result.name, *(part for part in parts if part.partition("=")[2].rpartition("/")[2] != result.name)]
        )  # path=NAME
        for result, parts in zip(results, differing, strict=True)
    ]
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]


def label_systems(results: Sequence[Result]) -> list[str]:
    """Return a label for each result, as `label_results` does, without settings of the dataset."""
    own = [{k: v for k, v in result.swept.items() if k.partition(".")[0] != "dataset"} for result in results]
    return label_results(results, own)


def identify_system(result: Result) -> bytes:
    """Return what identifies a system on any dataset: its retriever and chunking, or else its name.

    A name from Python stands for all settings, the label of a run from elsewhere for its file. Without one, a path that
    names the dataset by an interpolation is taken as it was written in the sweep.
    """
    retriever = None if _is_named(result) else result.config.get("retriever")
    for key, value in result.swept.items():
        first, *rest = key.split(".")
        if first == "retriever" and rest and retriever and "${" in str(value):
            retriever = replace_value(retriever, rest, value)
    chunking = (result.config.get("dataset") or {}).get("chunking")
    settings = (_drop_labelled_files(retriever), chunking) if retriever else result.name
    identity = (result.retriever, result.search_type, settings)
    return orjson.dumps(identity, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)


def _is_named(result: Result) -> bool:
    """Return whether a system has a name of its own, other than its choice of a retriever and its label."""
    choice = (result.config.get("choices") or {}).get("retriever")
    label = (result.config.get("retriever") or {}).get("label")
    return choice is not None and result.retriever not in (choice, label)


def _drop_labelled_files(node: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return a config without the files of runs that have a label."""
    if isinstance(node, list):
        return [_drop_labelled_files(value) for value in node]
    if not isinstance(node, Mapping):
        return node
    dropped = RUN_FILE if node.get("label") else ()
    return {key: _drop_labelled_files(value) for key, value in node.items() if key not in dropped}


def _put_label(swept: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return swept settings in which the label of a run stands for its retriever and its file."""
    if not swept.get(LABEL):
        return swept
    replaced = ("retriever", LABEL, *(f"retriever.{name}" for name in RUN_FILE))
    return {"retriever": swept[LABEL]} | {key: value for key, value in swept.items() if key not in replaced}


def abbreviate_labels(labels: Sequence[str], swept: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return labels for a narrow table, from the swept settings of each result; `labels`, if these are not unique.

    A setting with one value is left out if the value of another setting implies it, and so is the key of a word that is
    a value of this setting only: `hybrid rrf` stands for `retriever=hybrid encoder=lsa method=rrf rrf_k=10`.
    """
    swept = [*map(_put_label, swept)]
    keys, _ = split_swept(swept)
    values = {key: [format_setting(own[key]) for own in swept if key in own] for key in keys}
    varying = [key for key in keys if len(set(values[key])) > 1 or key == "retriever"]
    varying = [key for key in keys if key in varying or not _is_implied(key, varying, swept)]
    seen = Counter(value for key in varying for value in set(values[key]))
    texts: list[list[str]] = [[] for _ in swept]
    for key in varying:
        having = [i for i, own in enumerate(swept) if key in own]
        for i, value in zip(having, _format_settings([swept[i][key] for i in having]), strict=True):
            is_word = value.isidentifier() and value not in ("None", "True", "False") and seen[value] == 1
            texts[i].append(value if is_word or key == "retriever" else f"{_short(key, varying)}={value}")
    brief = [" ".join(words) for words in texts]
    return brief if all(brief) and len(set(brief)) == len(brief) else list(labels)


def _is_implied(key: str, others: Sequence[str], swept: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether exactly the results with some values of another setting have a setting.

    Nothing implies what is searched: a result without that setting searches other chunks or documents.
    """
    if key.partition(".")[0] in ("chunking", "dataset"):
        return False
    having = [own for own in swept if key in own]
    rest = [own for own in swept if key not in own]
    return any(
        all(other in own for own in having)
        and not any(other in own and own[other] in [its[other] for its in having] for own in rest)
        for other in others
    )


def _find_differing_settings(results: Sequence[Result]) -> list[list[str]]:
    """Return, for each result, the first few choices and settings of retriever and chunking that differ."""
    choices = [dict(result.config.get("choices") or {}) for result in results]
    differing = [group for group in {g: None for c in choices for g in c} if len({c.get(group) for c in choices}) > 1]
    nodes = [(r.config.get("retriever"), (r.config.get("dataset") or {}).get("chunking")) for r in results]
    settings = [{**dict(_leaves(own, "")), **dict(_leaves(chunking, "chunking"))} for own, chunking in nodes]
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


def split_swept(swept: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Return the keys that differ between the swept settings of results, and the shared ones with their value."""
    keys = dict.fromkeys(key for settings in swept for key in settings)
    shared = {
        key: swept[0][key]
        for key in keys
        if len(swept) > 1 and all(key in settings and settings[key] == swept[0][key] for settings in swept)
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
