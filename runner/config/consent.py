"""What the person at the keyboard lets records of results do: the settings `trust` and `plugins`.

Both are read only from the command line (`runner.config.launch.order_overrides`). Records are data: without consent,
objects of this program are built from them that neither run code, open connections nor read files elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf

from retrievers.access import Access, find_access
from retrievers.spellings import HIDDEN
from runner.config.addresses import SPLIT, is_address
from runner.config.environment import RESOLVER, note_references
from runner.config.inside import is_inside
from runner.config.objects import (
    ConfigError,
    check_factory,
    describe_choices,
    is_allowed,
    is_installed,
    is_own,
    locate_class,
)
from runner.config.values import resolve_config

TRUSTED = {
    "plugins": "run code of a plug-in",
    "services": "open a connection",
    "models": "load a model",
    "files": "read a file outside the working folder",
    "secrets": "send a secret or the value of an environment variable",
}
"""What each word of `trust` allows."""

BUNDLED = re.compile(r"bundled:[\w-]+(\.[\w-]+)*")
"""A file that comes with the program."""

_REFERENCE = re.compile(
    rf"\$\{{\s*{re.escape(RESOLVER)}\s*:[^${{}}]*\}}|\$\{{\s*oc\.decode\s*:\s*\$\{{\s*{re.escape(RESOLVER)}\s*:[^${{}}]*\}}\s*\}}"
)
"""A reference to an environment variable as it is recorded; no other interpolation in a record is resolved."""

_LONGEST = 100
"""The most characters of a value in a message."""


class NotAllowedError(ConfigError):
    """A record wants to do something that the command line does not allow."""


@dataclass(frozen=True)
class Consent:
    """What is allowed: the words of `trust`, and the modules of plug-ins."""

    trust: Sequence[str] = ()
    plugins: Sequence[str] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Consent:
        """Return the consent in a config; raises `ConfigError` for a word that is not in `TRUSTED`."""
        trust = config.get("trust") or []
        if not isinstance(trust, (list, tuple)):
            raise ConfigError(f"trust={json.dumps(trust)}: should be a list; write 'trust=[{trust}]'")
        for word in trust:
            if word not in TRUSTED:
                raise ConfigError(f"trust=[{word}]: no such kind of trust; {describe_choices(TRUSTED)}")
        return cls(tuple(trust), tuple(config.get("plugins") or ()))


class _Action(NamedTuple):
    """What a part of a record wants to do: the word of `trust` or the module that allows it, and on what."""

    path: str
    trust: str
    shown: str
    module: str = ""


def restore_values(recorded: Mapping[str, Any], consent: Consent) -> dict[str, Any]:
    """Return a recorded config to build objects from, with the values of environment variables.

    Pass all parts that will work together: a variable in one of them may be sent to an address in another. Raises
    `NotAllowedError` for what needs more consent, and `ConfigError` for a variable that is not set, or for a secret,
    because secrets are not recorded.
    """
    note_references(recorded)
    restored = {str(key): _restore(value, str(key)) for key, value in recorded.items()}
    actions = [action for key, value in restored.items() for action in _iter_actions(value, key, consent.plugins)]
    if any(action.trust == "services" for action in actions):
        actions += [_Action(path, "secrets", shown) for path, shown in _iter_references(recorded, "")]
    refused = [action for action in actions if action.module or action.trust not in consent.trust]
    if refused:
        raise NotAllowedError(_describe_refusal(refused))
    return restored


def _describe_refusal(refused: Sequence[_Action]) -> str:
    """Return what a record wants to do, and the settings that allow it all."""
    first = {action.trust: action for action in reversed(refused)}
    wishes = [f"{TRUSTED[action.trust]} ({shorten(action.shown)})" for action in reversed(first.values())]
    modules = dict.fromkeys(action.module for action in refused if action.module)
    words = dict.fromkeys(action.trust for action in refused if not action.module)
    settings = [f"'{key}=[{','.join(names)}]'" for key, names in (("trust", words), ("plugins", modules)) if names]
    return (
        f"{refused[0].path}: the record wants to {' and to '.join(wishes)}; if you trust it, add {' '.join(settings)}"
    )


def shorten(value: object) -> str:
    """Return a value in a record as one line of at most about 100 characters."""
    text = json.dumps(value, default=str)[1:-1] if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _restore(node: Any, path: str) -> Any:  # noqa: ANN401 (any value)
    if isinstance(node, Mapping):
        return {key: _restore(value, f"{path}.{key}") for key, value in node.items()}
    if isinstance(node, list):
        return [_restore(value, f"{path}.{position}") for position, value in enumerate(node)]
    if isinstance(node, str) and HIDDEN in node:
        raise ConfigError(
            f"{path}: the value is a secret, so it was not recorded; use an environment variable, as in "
            "${oc.env:NAME}"
        )
    if not isinstance(node, str) or RESOLVER not in node:
        return node
    if "${" in _REFERENCE.sub("", node):
        raise ConfigError(f"{path}={shorten(node)}: a record may refer only to environment variables")
    value = resolve_config(OmegaConf.create({path: node}))[path]
    if isinstance(value, Mapping):
        raise ConfigError(f"{path}={shorten(node)}: should be a value, not a group of settings")
    return value


def _iter_references(node: Any, path: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (any value)
    """Yield each reference to an environment variable with its place."""
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _iter_references(value, f"{path}.{key}".lstrip("."))
    if isinstance(node, str) and RESOLVER in node:
        yield path, node


def _iter_actions(node: Any, path: str, plugins: Sequence[str]) -> Iterator[_Action]:  # noqa: ANN401 (any value)
    """Yield what the objects of a node want to do besides computing."""
    if isinstance(node, Mapping) and "_target_" in node:
        yield from _iter_own_actions(node, str(node["_target_"]), path, plugins)
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _iter_actions(value, f"{path}.{key}", plugins)


def _iter_own_actions(node: Mapping[str, Any], target: str, path: str, plugins: Sequence[str]) -> Iterator[_Action]:
    module = target.rpartition(".")[0]
    if not is_own(module):
        yield from _iter_code(module, f"{path}._target_", target, plugins)
        return
    access = find_access(locate_class(target, path)) or Access()
    for name in (name for name in access.code if node.get(name)):
        check_factory(str(node[name]), f"{path}.{name}")
        yield from _iter_code(str(node[name]).partition(":")[0], f"{path}.{name}", str(node[name]), plugins)
    if access.needs and not (access.is_bundled and access.is_bundled(node)):
        named = next((str(node[name]) for name in access.names if node.get(name)), "its own address")
        yield _Action(path, access.needs, f"{target.rpartition('.')[2]}, {named}")
    for name in (name for name in access.secrets if node.get(name)):
        yield _Action(f"{path}.{name}", "secrets", str(node[name]))
    files = [(name, file) for name in access.paths for file in _list_texts(node.get(name))]
    bases = [Path.cwd(), *(Path.cwd() / file for _, file in files if not is_address(file))]
    for name, file in files:
        if is_address(file):
            yield _Action(f"{path}.{name}", "services", file)
        elif not _is_own_file(file.replace(SPLIT, str(node.get("split"))), bases):
            yield _Action(f"{path}.{name}", "files", file)


def _is_own_file(file: str, bases: Sequence[Path]) -> bool:
    """Return whether a file comes with the program, or is in the working folder in each reading of its path.

    A path may be relative to a folder that another setting names.
    """
    if file.startswith("bundled:"):
        return bool(BUNDLED.fullmatch(file))
    return all(is_inside(file, base) for base in bases)


def _iter_code(module: str, path: str, shown: str, plugins: Sequence[str]) -> Iterator[_Action]:
    if is_installed(module):
        if not is_allowed(module, plugins):
            yield _Action(path, "plugins", shown)
    elif not is_allowed(module, plugins):
        yield _Action(path, "plugins", shown, module.partition(".")[0] or "MODULE")


def _list_texts(value: Any) -> list[str]:  # noqa: ANN401 (any value)
    """Return a text, or the texts in a list or a mapping."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for element in values for text in _list_texts(element)]
