"""Which tool does what: a table from the names of agents' tools to the categories of events, which a user may extend.

It knows nothing of what a tool was called with, nor of what came back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from runner.config.objects import ConfigError, suggestion
from runner.config.yaml_files import YamlError, parse_yaml

Category = Literal[
    "file_read",
    "file_search",
    "symbol_navigation",
    "code_search",
    "commit_search",
    "deep_search",
    "file_write",
    "other",
]
"""What an event is, as the schema has it."""

Role = Category | Literal["shell", "editor"]
"""What a tool is: always of one category, or of the one that its arguments say."""

_SHIPPED = Path(__file__).with_name("tools.yaml")
_SECTIONS = ("local", "mcp")
_ROLES = {name for part in get_args(Role) for name in get_args(part)}
_SERVER = re.compile(r"mcp__.+__")  # a server's name may hold the separator, a tool's does not
_NAMESPACE = re.compile(r"\w+(?:\.|__)")  # as in `functions.read_file`, `developer__shell`
_NAME = re.compile(r"[\w.:-]*")


class Kind(NamedTuple):
    """What a tool is, and whether a server runs it."""

    role: Role
    is_mcp: bool


@dataclass(frozen=True)
class Tools:
    """The table: names in lower case, and what servers put before them."""

    kinds: Mapping[str, Kind]
    prefixes: tuple[str, ...] = ()

    def kind(self, name: str) -> Kind:
        """Return what a tool is: `other` where the table does not know it."""
        whole = _NAME.match(name.lower())  # a damaged trace has names such as `Edit(path="...`
        bare = whole[0] if whole else ""
        server = _SERVER.match(bare)
        bare = bare[server.end() :] if server else bare
        own = _NAMESPACE.sub("", bare)
        for candidate in (bare, own, *(own.removeprefix(prefix) for prefix in self.prefixes)):
            if candidate in self.kinds:
                kind = self.kinds[candidate]
                return Kind(kind.role, True) if server else kind
        return Kind("other", server is not None)


def tools(file: str | None = None) -> Tools:
    """Return the table, with what a user's YAML file adds to it. Raises `ConfigError`, which names file and place."""
    shipped = _shipped()
    if file is None:
        return shipped
    own = _table(Path(file))
    return Tools({**shipped.kinds, **own.kinds}, (*shipped.prefixes, *own.prefixes))


@cache
def _shipped() -> Tools:
    return _table(_SHIPPED)


def _table(file: Path) -> Tools:
    try:
        content = parse_yaml(file.read_bytes(), str(file)) or {}
    except (OSError, YamlError) as error:
        raise ConfigError(f"tools={file}: cannot be read ({' '.join(str(error).split())})") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"tools={file}: holds {type(content).__name__}, not the sections {', '.join(_SECTIONS)}")
    kinds: dict[str, Kind] = {}
    prefixes: tuple[str, ...] = ()
    for section, roles in content.items():
        if section == "prefixes":
            prefixes = tuple(name.lower() for name in _names(roles, f"tools={file}: prefixes"))
            continue
        if section not in _SECTIONS:
            raise ConfigError(f"tools={file}: {section}: no such section; {_near(section, (*_SECTIONS, 'prefixes'))}")
        if not isinstance(roles, Mapping):
            raise ConfigError(f"tools={file}: {section} is {roles!r}, not categories with names of tools")
        for role, names in roles.items():
            if role not in _ROLES:
                raise ConfigError(f"tools={file}: {section}.{role}: no such category; {_near(role, _ROLES)}")
            named = _names(names, f"tools={file}: {section}.{role}")
            kinds |= {name.lower(): Kind(role, section == "mcp") for name in named}
    return Tools(kinds, prefixes)


def _names(value: Any, place: str) -> list[str]:  # noqa: ANN401 (what YAML holds)
    if not (isinstance(value, list) and all(isinstance(name, str) and name for name in value)):
        raise ConfigError(f"{place} is {value!r}, not a list of names of tools")
    return value


def _near(word: object, possible: Any) -> str:  # noqa: ANN401 (any names)
    return suggestion(str(word), possible)
