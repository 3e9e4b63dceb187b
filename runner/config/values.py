"""Turns a composed config into plain values: resolved, without secrets, flattened to parameters, hashed.

Groups that the chosen retriever does not use, such as an encoder with BM25, are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from retrievers.spellings import HIDDEN
from retrievers.store import fingerprint
from runner.config import SHARED_GROUPS
from runner.config.environment import (
    RESOLVER,
    hide_environment,
    hide_values,
    note_references,
    note_secrets,
    show_references,
)
from runner.config.objects import ConfigError, build

REQUIRED = ("dataset", "retriever", "metrics", "tracking")
"""The keys that every evaluation needs."""

VOLATILE = ("tracking", "store", "sweep", "report", "junit", "plugins", "trust", "public_environment")
"""Keys that cannot change a result, such as where and how work is done."""

_SECRET_KEY = re.compile(
    r"^key$|(api|access|secret|private|account)key$"
    r"|(token|secret|password|passphrase|passwd|pwd|credentials?|authorization|cookie)$"
)
_ASSIGNED = re.compile(  # in the query of a URL, or in a message about a setting
    r"([\w.-]+)=(?:([\"'])(?:\\.|(?!\2)[^\\\n])+(\2|$)|[^\s&;#,\"']+)", re.MULTILINE
)
_IN_ADDRESS = re.compile(r"\s*[A-Za-z][\w+.-]*://[^/@:\s]*:(?!\d+(?:[/?#]|$))([^/]*|.*)@", re.DOTALL)
_IN_QUERY = re.compile(r"[?&;]([\w.-]+)=([^&;#]*)")
_IN_WORDS = re.compile(r"([\w.-]+)\s*=\s*(?:'((?:\\.|[^'\\])*)'?|((?:\\.|[^\s\\])*))", re.DOTALL)  # libpq's keywords
_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):(?!\d+/)(?:[^/\s]*|[^@\s]*)(?=@)")
_TOKEN = re.compile(r"(https?://)[^/@:\s]+(?=@)")

NAME_OF_DATASET = re.compile(r"\$\{\s*dataset\.name\s*\}")
"""A reference to the name of the dataset, which may follow from other settings."""

_UNUSABLE = re.compile(r"[\0\ud800-\udfff]")
"""NUL, which ends names of files, and halves of a character, which no encoding has."""


@dataclass(frozen=True)
class Settled:
    """A composed and resolved config.

    `config` has plain values, without unused groups, and the choice of each group under `choices`. `public` is the same
    without secrets, and with references (`${oc.env:NAME}`) instead of the values of environment variables that
    `public_environment` does not list. `parameters` is the flattened public config: choices first, each value once.
    """

    config: Mapping[str, Any]
    public: Mapping[str, Any]
    parameters: Mapping[str, str]


_UNUSED = "nothing here uses the {group}; remove it, or choose a retriever or grading that does"


def settle(cfg: DictConfig, choices: Mapping[Any, Any]) -> Settled:
    """Resolve a composed config with Hydra's choices; raises `ConfigError` for a missing or unresolvable value."""
    raw = OmegaConf.to_container(cfg, resolve=False)
    if "experiment" in cfg:
        raise ConfigError(
            f"experiment={choices.get('experiment')}: the first line of the file must be # @package _global_"
        )
    assert isinstance(raw, dict)  # noqa: S101 (the root of a config is a mapping)
    for key in REQUIRED:
        if raw.get(key) in (None, ""):
            raise ConfigError(f"{key}: is required; set {key}=NAME")
    if NAME_OF_DATASET.search(json.dumps(raw, default=str)) and raw["dataset"].get("name", "") is None:
        cfg = _name_dataset(cfg, raw)
    kept = raw.keys() - {"hydra"} - (set(SHARED_GROUPS) - _find_used_groups(raw))
    recorded = (kept | {"experiment"}) - set(VOLATILE)
    chosen = {str(group): choice for group, choice in choices.items() if choice is not None}
    chosen = {g: choice for g, choice in chosen.items() if _roots(g) & recorded}
    config = {**resolve_config(cfg, kept, raw), "choices": chosen}
    _check_plugins(config.get("plugins", []))
    shown = public({**without_environment(cfg, config, raw, kept), "choices": chosen})
    return Settled(config, shown, _parameters(shown, raw))


def _name_dataset(cfg: DictConfig, raw: Mapping[Any, Any]) -> DictConfig:
    """Return a config with the name that its dataset will have, for settings that refer to it.

    Raises `ConfigError` if a variable of the environment, which must not be recorded, would give the name.
    """
    if RESOLVER in json.dumps(raw["dataset"], default=str):
        raise ConfigError(
            "dataset.name: has no value, but a setting refers to it; set dataset.name=NAME, as the dataset reads "
            "environment variables"
        )
    config = resolve_config(cfg, ("dataset", "plugins"), raw)
    own = {key: value for key, value in config["dataset"].items() if key != "chunking"}
    source = build(own, "dataset", config.get("plugins") or ())
    return OmegaConf.merge(cfg, {"dataset": {"name": getattr(source, "title", None)}})  # type: ignore[return-value]  # a mapping


def check_read(overrides: Iterable[str], configs: Iterable[Mapping[str, Any]], reason: str = _UNUSED) -> None:
    """Raise `ConfigError` for an override of a shared group that all settled configs lack, as nothing uses it."""
    unread: dict[str, str] = {}
    for word in overrides:
        group = word.lstrip("+~").partition("=")[0].partition(".")[0]
        if group in SHARED_GROUPS:
            unread.setdefault(group, word)
    for config in configs if unread else ():
        unread = {group: word for group, word in unread.items() if group not in config}
        if not unread:
            return
    for group, word in unread.items():
        raise ConfigError(f"{word}: has no effect, as {reason.format(group=group)}")


def without_environment(
    cfg: DictConfig,
    config: Mapping[str, Any],
    raw: Any = None,  # noqa: ANN401 (an unresolved config)
    kept: Collection[Any] | None = None,
) -> Mapping[str, Any]:
    """Return a resolved config in which the values of variables that are not public are replaced by references.

    The config is resolved a second time, so that settings that refer to such a value do not show it either. Raises
    `ConfigError` if `public_environment` is not a list of names.
    """
    raw = OmegaConf.to_container(cfg, resolve=False) if raw is None else raw
    if RESOLVER not in json.dumps(raw, default=str):
        return config
    hidden, references = hide_environment(raw, _public_variables(raw.get("public_environment", [])))
    return show_references(resolve_config(OmegaConf.create(hidden), kept, hidden), references)  # type: ignore[no-any-return]  # a mapping


def _public_variables(names: Any) -> list[str]:  # noqa: ANN401 (any value)
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        example = names if isinstance(names, str) and names else "NAME"
        given = f"public_environment={json.dumps(names)}"
        raise ConfigError(f"{given}: should be a list of variables; write public_environment=[{example}]")
    return names


def _roots(group: str) -> set[str]:
    """Return the top-level keys that a group can set: encoder and retriever for `encoder@retriever.encoder`."""
    name, _, package = group.partition("@")
    return {name.partition("/")[0], package.partition(".")[0]}


def with_value(settled: Settled, path: str, value: Any) -> Settled:  # noqa: ANN401 (any plain value)
    """Return the result of `settle` for another value at `path`, sharing all other values.

    `path` must be a setting in a group to which nothing refers. Neither value may be a mapping or an interpolation.
    """
    keys = path.split(".")
    shown = _hide_secrets(value, keys[-1])
    parameters = {**settled.parameters, path: _parameter(shown)} if path in settled.parameters else settled.parameters
    return Settled(replace_value(settled.config, keys, value), replace_value(settled.public, keys, shown), parameters)


def replace_value(node: Mapping[str, Any], keys: Sequence[str], value: Any) -> Mapping[str, Any]:  # noqa: ANN401 (any value)
    """Return a config with another value for one of its keys; unchanged if the key is missing or hidden."""
    key, *rest = keys
    if not isinstance(node, Mapping) or key not in node:
        return node
    return {**node, key: replace_value(node[key], rest, value) if rest else value}


def resolve_config(
    cfg: DictConfig,
    kept: Collection[Any] | None = None,
    raw: Any = None,  # noqa: ANN401 (an unresolved config)
) -> dict[str, Any]:
    """Return a config, or only the `kept` keys, as plain values; raises `ConfigError` for a missing value."""
    unresolved = OmegaConf.to_container(cfg, resolve=False) if raw is None else raw
    note_references(unresolved)
    note_secrets(list_secrets(unresolved))
    try:
        config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = error.full_key or str(error)
        raise ConfigError(f"{key}: is required; set {key}=VALUE") from None
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {str(error).partition(chr(10))[0]}") from None
    assert isinstance(config, dict)  # noqa: S101 (the root of a config is a mapping)
    plain = {str(key): value for key, value in config.items() if kept is None or key in kept}
    check_values(plain)
    return plain


def check_values(value: Any, path: str = "") -> None:  # noqa: ANN401 (any plain value)
    """Raise `ConfigError` for a value that no setting can have: NUL, half a character, a number beyond 64 bits."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            check_values(str(key), path)
            check_values(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for position, part in enumerate(value):
            check_values(part, f"{path}.{position}")
    elif isinstance(value, str) and (unusable := _UNUSABLE.search(value)):
        raise ConfigError(f"{path}: contains the character U+{ord(unusable[0]):04X}, which no text can have; remove it")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ConfigError(f"{path}: the number has more than 64 bits; set a smaller one")


def _check_plugins(plugins: Any) -> None:  # noqa: ANN401 (any value)
    if not isinstance(plugins, list) or not all(isinstance(module, str) and module for module in plugins):
        example = plugins if isinstance(plugins, str) and plugins else "my_module"
        raise ConfigError(f"plugins={json.dumps(plugins)}: should be a list of modules; write plugins=[{example}]")


def _parameters(config: Mapping[str, Any], raw: Mapping[Any, Any]) -> dict[str, str]:
    """Return a flattened config without references to shared groups, such as `${analyzer}` in a retriever."""
    references = {f"${{{group}}}" for group in SHARED_GROUPS}
    parameters = {group: str(choice) for group, choice in config["choices"].items()}

    def walk(node: Any, unresolved: Any, path: str) -> None:  # noqa: ANN401 (any value)
        if isinstance(unresolved, str) and unresolved in references:
            return
        if isinstance(node, Mapping):
            within = unresolved if isinstance(unresolved, Mapping) else {}
            for key, value in node.items():
                if key != "_target_":
                    walk(value, within.get(key), f"{path}.{key}")
        elif path not in parameters:
            parameters[path] = _parameter(node)

    for key, value in config.items():
        if key not in (*VOLATILE, "choices"):
            walk(value, raw.get(key), key)
    return parameters


def _parameter(value: Any) -> str:  # noqa: ANN401 (any value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def public(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with secrets hidden: the values of secret keys, and passwords in addresses."""
    return {key: _hide_secrets(value, key) for key, value in config.items()}


def list_secrets(value: Any, key: str = "") -> list[str]:  # noqa: ANN401 (any value)
    """Return the secrets in a setting: the values of secret keys, and the passwords in addresses, as written there."""
    if isinstance(value, Mapping):
        return [secret for k, v in value.items() for secret in list_secrets(v, str(k))]
    if isinstance(value, list):
        return [secret for v in value for secret in list_secrets(v, key)]
    if not isinstance(value, str) or not value:
        return []
    if _is_secret(key):
        return [value]
    if "@" not in value and "=" not in value:
        return []
    secrets = [match[1] for match in [_IN_ADDRESS.match(value)] if match]
    if "://" in value:
        secrets += [secret for name, secret in _IN_QUERY.findall(value) if _is_secret(name)]
    else:
        secrets += [quoted or plain for name, quoted, plain in _IN_WORDS.findall(value) if _is_secret(name)]
    return [secret for secret in secrets if secret]


def note_overrides(overrides: Sequence[str]) -> None:
    """Remember the references and the secrets in overrides, so that messages do not show them."""
    note_references(overrides)
    for word in overrides:
        key, _, value = word.partition("=")
        for text in {value, value.strip("'\""), value.strip("'\"").replace("\\'", "'").replace('\\"', '"')}:
            note_secrets(list_secrets(text, key.rpartition(".")[2]))


def _hide_secrets(value: Any, key: str) -> Any:  # noqa: ANN401 (any value)
    if value not in (None, "") and _is_secret(key):
        return HIDDEN
    if isinstance(value, Mapping):
        return {k: _hide_secrets(v, str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_hide_secrets(v, "") for v in value]
    if not isinstance(value, str):
        return value
    for secret in sorted(list_secrets(value), key=len, reverse=True):
        value = value.replace(secret, HIDDEN)
    return _without_passwords(value)


def hide_config(config: Any) -> Any:  # noqa: ANN401 (any unresolved config)
    """Return an unresolved config with secrets hidden, and remember them; references keep their form."""
    note_secrets(list_secrets(config))

    def hide(value: Any, key: str) -> Any:  # noqa: ANN401 (any value)
        if isinstance(value, Mapping):
            return {k: hide(v, str(k)) for k, v in value.items()}
        if isinstance(value, list):
            return [hide(v, key) for v in value]
        if not isinstance(value, str) or value == "???" or value.startswith("${"):
            return value
        return without_secrets(_hide_secrets(value, key))

    return hide(config, "")


def without_secrets(text: str) -> str:
    """Return a text without passwords, tokens and the values of environment variables that are not public."""
    return _without_passwords(hide_values(text))


def _without_passwords(text: str) -> str:
    """Return a text without the passwords and tokens in its addresses and settings."""
    text = _PASSWORD.sub(rf"\1:{HIDDEN}", text)
    text = _TOKEN.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(_hide_assigned, text)


def _hide_assigned(match: re.Match[str]) -> str:
    key, opening, closing = match.groups(default="")
    return f"{key}={opening}{HIDDEN}{closing}" if _is_secret(key) else match[0]


def _is_secret(key: str) -> bool:
    """Return whether a key names a secret, in any spelling: api_key, X-Api-Key, openaiApiKey."""
    return bool(_SECRET_KEY.search(re.sub(r"[^a-z0-9]", "", key.lower())))


def config_hash(config: Mapping[str, Any]) -> str:
    """Return a hash of the settings that can change a result, without the name of the preset."""
    deciding = {key: value for key, value in public(config).items() if key not in VOLATILE}
    deciding["choices"] = {g: choice for g, choice in deciding.get("choices", {}).items() if g != "experiment"}
    return fingerprint(json.dumps(deciding, sort_keys=True, default=str))


def _find_used_groups(raw: Mapping[Any, Any]) -> set[str]:
    """Return the shared groups that the rest of a config refers to, directly or through other groups."""
    used: set[str] = set()
    todo = [value for key, value in raw.items() if key not in (*SHARED_GROUPS, "hydra")]
    while todo:
        text = json.dumps(todo.pop(), default=str)
        for group in SHARED_GROUPS:
            if f"${{{group}" in text and group not in used:
                used.add(group)
                todo.append(raw.get(group))
    return used
