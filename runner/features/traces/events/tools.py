"""Map the names of agents' tools to the categories of events, by a table that users may extend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

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
"""The category of an event in the schema."""

Role = Category | Literal["shell", "editor"]
"""The role of a tool: one category, or one that depends on its arguments."""

_SHIPPED = Path(__file__).with_name("tools.yaml")
_SECTIONS = ("local", "mcp")
_ROLES = {name for part in get_args(Role) for name in get_args(part)}
_SERVER = re.compile(r"mcp__.+__")  # a server's name may contain the separator, a tool's does not
_NAMESPACE = re.compile(r"\w+(?:\.|__)")  # as in `functions.read_file`, `developer__shell`
_NAME = re.compile(r"[\w.:-]*")


class ToolKind(NamedTuple):
    """The role of a tool, and whether a server runs it."""

    role: Role
    is_mcp: bool


@dataclass(frozen=True)
class Tools:
    """The table of tools: names in lower case, and the prefixes that servers put before them."""

    kinds: Mapping[str, ToolKind]
    prefixes: tuple[str, ...] = ()

    def classify(self, name: str) -> ToolKind:
        """Return the kind of a tool, with the role `other` if the table lacks it."""
        whole = _NAME.match(name.lower())  # a damaged trace has names such as `Edit(path="...`
        bare = whole[0] if whole else ""
        server = _SERVER.match(bare)
        bare = bare[server.end() :] if server else bare
        own = _NAMESPACE.sub("", bare)
        for candidate in (bare, own, *(own.removeprefix(prefix) for prefix in self.prefixes)):
            if candidate in self.kinds:
                kind = self.kinds[candidate]
                return ToolKind(kind.role, True) if server else kind
        return ToolKind("other", server is not None)


def load_tools(file: str | None = None) -> Tools:
    """Return the table, extended by a user's YAML file. Raises `ConfigError`, which names the file and place."""
    shipped = _load_shipped()
    if file is None:
        return shipped
    own = _load_table(Path(file))
    return Tools({**shipped.kinds, **own.kinds}, (*shipped.prefixes, *own.prefixes))


@cache
def _load_shipped() -> Tools:
    return _load_table(_SHIPPED)


def _load_table(file: Path) -> Tools:
    try:
        content: object = parse_yaml(file.read_bytes(), str(file)) or {}
    except (OSError, YamlError) as error:
        raise ConfigError(f"tools={file}: cannot be read ({' '.join(str(error).split())})") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"tools={file}: expected the sections {', '.join(_SECTIONS)}, found {type(content).__name__}")
    kinds: dict[str, ToolKind] = {}
    prefixes: tuple[str, ...] = ()
    for section, roles in content.items():
        if section == "prefixes":
            prefixes = tuple(name.lower() for name in _check_names(roles, f"tools={file}: prefixes"))
            continue
        if section not in _SECTIONS:
            raise ConfigError(
                f"tools={file}: {section}: no such section; {_suggest(section, (*_SECTIONS, 'prefixes'))}"
            )
        if not isinstance(roles, Mapping):
            raise ConfigError(f"tools={file}: {section} should map categories to lists of tool names; it is {roles!r}")
        for role, names in roles.items():
            if role not in _ROLES:
                raise ConfigError(f"tools={file}: {section}.{role}: no such category; {_suggest(role, _ROLES)}")
            listed = _check_names(names, f"tools={file}: {section}.{role}")
            kinds |= {name.lower(): ToolKind(role, section == "mcp") for name in listed}
    return Tools(kinds, prefixes)


def _check_names(value: object, place: str) -> list[str]:
    names = [name for name in value if isinstance(name, str) and name] if isinstance(value, list) else []
    if not isinstance(value, list) or len(names) < len(value):
        raise ConfigError(f"{place} should be a list of tool names; it is {value!r}")
    return names


def _suggest(word: object, possible: Iterable[str]) -> str:
    return suggestion(str(word), possible)
