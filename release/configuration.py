"""Write the reference of the configuration from the files in conf/: `python -m release.configuration FILE`.

Keys, defaults and comments come from the YAML, types and limits from the signature of the class that `_target_` names.
A file that extends one of another group shows its keys as its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic.fields import FieldInfo

from retrievers.choices import list_choices
from runner.commands import list_commands
from runner.commands.help import SETTINGS
from runner.config.addresses import LocalPath, RequiredPath
from runner.config.hydra_internals import load_yaml

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"

ALIGNED = re.compile(r"^(.+?):  (\S.*)$")
"""A line, or a part of one, that explains an override: `BM25 alone:  retriever=bm25`."""

COMMAND = re.compile(r"(?<!`)(python -m runner)")
LISTED = ("analyzer", "experiment")
"""Groups whose choices differ only in values, and are listed in one table."""
TARGETS = {(f"_{key}", ""): target for key, target in SETTINGS.items()} | {
    (name, key): target for name, command in list_commands().items() for key, target in command.settings.items()
}
"""Classes of settings that no `_target_` names, by file and key; a dataclass field has the settings of its class."""
SHARED = {
    "_api": "Keys of every API",
    "_limits": "Limits of every API",
    "_opensearch": "Keys of OpenSearch and Elasticsearch",
    "_given": "Datasets made in Python",
    "_shared": "Every command",
    "_source": "Keys of every dataset",
    "_statistics": "Keys of every test of differences",
    "_tabular": "Keys of every table",
}
"""Titles of files that others extend."""
PATHS = (LocalPath, RequiredPath)
"""Types of strings that are paths of files or folders."""
UNITS = {"_s": "seconds", "_mb": "MiB", "_bytes": "bytes"}
"""Units by the ending of a key."""
GUESSED = {"bool": "true, false", "int": "integer", "float": "number"}
"""Types of keys without a class, by the YAML tag of their default."""

INTRODUCTION = """\
# Configuration

<!-- Generated from conf/ and the signatures of its classes: `make docs` -->

Every command reads one file in `conf/` and one choice from each group:
`python -m runner COMMAND GROUP=CHOICE KEY=VALUE`. This page lists all commands, groups, keys and defaults. A key is
written as it is on the command line; `???` marks a required key, and `${analyzer}` a value that is taken from another
key. A choice also has the keys of the choices that it extends.

`python -m runner COMMAND --help` shows the commands and the most important keys, and
`python -m runner COMMAND --cfg job` the complete configuration of a command."""


@dataclass(frozen=True)
class Setting:
    """A key of a file: its default as written, the comments beside and above it, its class, its YAML tag."""

    key: str
    default: str
    comment: str
    above: str
    target: str
    tag: str


def render_page() -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION, "## Commands"]
    for file in sorted(CONF.glob("*.yaml"), key=lambda file: (not file.stem.startswith("_"), file.stem)):
        prefix = "statistics." if file.stem == "_statistics" else ""
        parts += [f"### {SHARED.get(file.stem, file.stem)}", *_render_file(file, prefix)]
    for folder in sorted(folder for folder in CONF.iterdir() if folder.is_dir() and folder.name != "hydra"):
        parts += [f"## The group `{folder.name}`"]
        files = sorted(folder.rglob("*.yaml"), key=lambda file: (not file.stem.startswith("_"), file.as_posix()))
        if folder.name in LISTED:
            rows = [[f"`{_name_choice(file, folder)}`", _escape(read_header(file)[0])] for file in files]
            parts += [render_table(["choice", "meaning"], rows)]
            files = [file for file in files if file.stem == "plain"]
        prefix = folder.name + "."
        for file in files:
            name = _name_choice(file, folder)
            title = SHARED.get(file.stem, f"`{folder.name}={name}`")
            parts += [f"### {title}", *_render_file(file, prefix)]
    return "\n\n".join(parts) + "\n"


def read_header(file: Path) -> tuple[str, list[str]]:
    """Return the description at the top of a file, and the commands in it."""
    words: list[str] = []
    commands: list[str] = []
    for line in _header_lines(file):
        text, *command = COMMAND.split(line, maxsplit=1)
        if command:
            commands.append("".join(command).rstrip())
            text = f"{text.strip().rstrip(':')}."
            if commands[1:] and text != ".":
                commands.insert(-1, f"# {text.rstrip('.')}")
            if words and text == "." and words[-1].endswith(":"):  # introduces the command, which the page moves
                words[-1] = f"{words[-1][:-1]}."
            if commands[1:] or text == ".":
                text = ""
        elif commands and line.startswith("  "):
            commands[-1] += " \\\n    " + line.strip()
            continue
        elif ALIGNED.search(line):
            text = " ".join(ALIGNED.sub(r"\1: `\2`.", part) for part in re.split(r" {3,}", line.strip()))
        words.append(text.strip())
    text = " ".join(filter(None, words))
    return f"{text[:-1]}." if text.endswith(":") else text, commands


def iter_settings(file: Path, target: str = "") -> Iterator[Setting]:
    """Yield the keys of a file, in its order; `target` is the class that they are settings of, "" for its own."""
    text = file.read_text(encoding="utf-8")
    node = _compose_yaml(text)
    assert isinstance(node, yaml.MappingNode)
    yield from _iter_mapping(
        node,
        text.splitlines(),
        len(_header_lines(file)),
        file.stem,
        "",
        target or _find_target(file) or TARGETS.get((file.stem, ""), ""),
    )


def describe_type(kind: object, limits: tuple[object, ...] = ()) -> str:
    """Return a type and its limits in words: `float, 0 to 1`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PATHS:
        return "path"
    if origin is Annotated:
        if choices := list_choices(kind):
            return ", ".join(f"`{name}`" for name in choices)
        own = [
            part for limit in arguments[1:] for part in (limit.metadata if isinstance(limit, FieldInfo) else [limit])
        ]
        return describe_type(arguments[0], (*limits, *own))
    if origin in (Union, UnionType):
        return ", ".join(dict.fromkeys(describe_type(part, limits) for part in arguments if part is not NoneType))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    plain = {str: "text", bool: "true, false", int: "integer", float: "number", Path: "path"}
    if not isinstance(origin or kind, type):
        return ""
    name = plain.get(origin or kind, _name_class(origin or kind))  # type: ignore[call-overload,arg-type]  # a type
    return f"{name}{_describe_limits(limits)}"


@cache  # a file that others extend is read for each of them
def _compose_yaml(text: str) -> yaml.Node | None:
    return yaml.compose(text)


def _iter_mapping(
    node: yaml.MappingNode, lines: list[str], header: int, command: str, prefix: str, target: str
) -> Iterator[Setting]:
    inner = {key.value: value for key, value in node.value}
    target = inner["_target_"].value if "_target_" in inner else target
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        if key.value in ("_target_", "defaults") or (name == "hydra"):
            continue
        own = TARGETS.get((command, name)) or _nested_target(target, str(key.value))
        if isinstance(value, yaml.MappingNode) and value.value and (own or _has_settings(name, value)):
            yield from _iter_mapping(value, lines, header, command, f"{name}.", own)
            continue
        above = _comment_above(lines, key.start_mark.line, key.start_mark.column, header)
        yield Setting(
            name,
            _slice(lines, value),
            _comment_after(lines, key, value),
            above,
            TARGETS.get((command, name), target),
            value.tag.rpartition(":")[2],
        )


def _nested_target(target: str, key: str) -> str:
    """Return the class of a field, "" if it is not a dataclass."""
    kind = get_type_hints(_import(target)).get(key) if target else None
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) and is_dataclass(kind) else ""


def _has_settings(name: str, node: yaml.MappingNode) -> bool:
    """Return whether the keys of a mapping are settings, as opposed to a single value."""
    return not node.flow_style or name == "store" or any(key.value == "_target_" for key, _ in node.value)


def _slice(lines: list[str], node: yaml.Node) -> str:
    """Return the text of a value on one line."""
    start, end = node.start_mark, node.end_mark
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        text = yaml.serialize(_flow(node), width=10**6).strip()
    elif start.line == end.line:
        text = lines[start.line][start.column : end.column]
    else:
        middle = [lines[start.line][start.column :], *lines[start.line + 1 : end.line], lines[end.line][: end.column]]
        text = " ".join(line.strip() for line in middle)
    return text or "null"


def _flow(node: yaml.Node) -> yaml.Node:
    """Return a node in flow style, which fits on one line."""
    if isinstance(node, yaml.MappingNode):
        return yaml.MappingNode(node.tag, [(_flow(key), _flow(value)) for key, value in node.value], flow_style=True)
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(node.tag, [_flow(value) for value in node.value], flow_style=True)
    return node


def _comment_after(lines: list[str], key: yaml.Node, value: yaml.Node) -> str:
    """Return the comment beside a key or its value, with its continuation lines in the same column."""
    is_block = isinstance(value, yaml.ScalarNode) and value.style in ("|", ">")  # ends where the next key begins
    for mark in (key.end_mark,) if is_block else (key.end_mark, value.end_mark):
        line, column = mark.line, mark.column
        after = value.end_mark.column if line == value.end_mark.line else column
        match = re.search(r"(?:^|[\s:])#\s?(.*)$", lines[line][after:]) if line < len(lines) else None
        if match is None:
            continue
        hash_at, parts = after + match.start() + match[0].index("#"), [match[1]]
        for following in lines[line + 1 :]:
            if not (following.strip().startswith("#") and following.index("#") == hash_at):
                break
            parts.append(following.strip().lstrip("# "))
        return " ".join(parts)
    return ""


def _comment_above(lines: list[str], line: int, column: int, header: int) -> str:
    """Return the comment on the lines above a key, in the key's column."""
    parts: list[str] = []
    for before in reversed(lines[header:line]):
        if not (before.strip().startswith("#") and before.index("#") == column):
            break
        parts.insert(0, before.strip().lstrip("# "))
    return " ".join(parts)


def _header_lines(file: Path) -> list[str]:
    """Return the comment at the top of a file, without `#`."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append("" if line.startswith("# @") else line.removeprefix("#").removeprefix(" ").rstrip())
    return lines


def _render_file(file: Path, prefix: str) -> Iterator[str]:
    """Yield the blocks of a file: its description, its commands, its keys."""
    description, commands = read_header(file)
    if description:
        yield _escape(description)
    if commands:
        yield "```text\n" + "\n".join(commands) + "\n```"
    if extended := _list_extended(file):
        yield f"It also has {' and '.join(extended)}."
    rows: list[list[str]] = []
    for setting in (*iter_settings(file), *_iter_included(file)):
        if setting.above and rows:
            yield render_table(["key", "default", "values", "meaning"], rows)
            rows = []
        if setting.above:
            yield _escape(setting.above)
        kind = _describe_setting(setting)
        rows.append([f"`{prefix}{setting.key}`", f"`{_escape(setting.default)}`", kind, _escape(setting.comment)])
    if rows:
        yield render_table(["key", "default", "values", "meaning"], rows)


def _find_target(file: Path) -> str:
    """Return the class that a file names, or the one of the choice that it extends."""
    values = load_yaml(file.read_text(encoding="utf-8")) or {}
    found = [str(values.get("_target_", "")), *(_find_target(base) for base in _list_bases(file).values())]
    return next(filter(None, found), "")


def _list_bases(file: Path) -> Mapping[str, Path]:
    """Return the files that a file extends, by their names in its defaults."""
    defaults = (load_yaml(file.read_text(encoding="utf-8")) or {}).get("defaults", [])
    names = [name.partition("@")[0] for name in defaults if isinstance(name, str)]
    files = {
        name.strip("/"): (CONF if name.startswith("/") else file.parent) / f"{name.strip('/')}.yaml" for name in names
    }
    return {name: base for name, base in files.items() if base.is_file()}


def _is_of_group(base: Path, file: Path) -> bool:
    """Return whether two files are in the folder of one group."""
    first, second = (path.relative_to(CONF).parts[:-1][:1] for path in (base, file))
    return first == second


def _iter_included(file: Path) -> Iterator[Setting]:
    """Yield the keys of files of other groups that a file extends; the description of each is above its first key."""
    for base in (base for base in _list_bases(file).values() if not _is_of_group(base, file)):
        first, *others = iter_settings(base, _find_target(file))
        yield from (replace(first, above=read_header(base)[0]), *others)


def _list_extended(file: Path) -> list[str]:
    """Return the keys of the choices of its own group that a file extends."""
    names = [name for name, base in _list_bases(file).items() if _is_of_group(base, file)]
    shown = {stem: f"the {title[0].lower()}{title[1:]}" for stem, title in SHARED.items()}
    return [
        shown.get(name.rpartition("/")[2], f"the keys of `{name.replace('retriever/', 'retriever=')}`")
        for name in names
        if name != "_shared"
    ]


def _describe_setting(setting: Setting) -> str:
    """Return the values that a key accepts, with their unit."""
    kind = _type_of(setting.target).get(setting.key.rpartition(".")[2], "") if setting.target else ""
    unit = next((unit for ending, unit in UNITS.items() if setting.key.endswith(ending)), "")
    return _escape(", ".join(filter(None, [kind or GUESSED.get(setting.tag), unit])))


@cache
def _type_of(target: str) -> dict[str, str]:
    """Return the values of each parameter of a class in words."""
    kind = _import(target)
    if not is_dataclass(kind):
        return {}
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = getattr(kind, "__pydantic_fields__", {})
    plain = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    infos = {name: info for name, info in {**plain, **found}.items() if isinstance(info, FieldInfo)}
    return {key: describe_type(hint, tuple(infos[key].metadata) if key in infos else ()) for key, hint in hints.items()}


def _import(target: str) -> Any:  # noqa: ANN401 (a class, or a function that makes one)
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


def _describe_limits(limits: tuple[object, ...]) -> str:
    found = {
        name: getattr(limit, name) for limit in limits for name in ("ge", "gt", "le", "lt") if hasattr(limit, name)
    }
    low, high = found.get("ge"), found.get("le")
    if low is not None and high is not None:
        return f", {low:g} to {high:g}"
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    return "".join(f", {words[name]} {value:g}" for name, value in found.items())


def _name_class(kind: type) -> str:
    """Return a built-in collection in words, and "" for the program's own classes, which a group chooses."""
    return {list: "list", tuple: "list", dict: "mapping"}.get(kind, "mapping" if issubclass(kind, Mapping) else "")


def _name_choice(file: Path, folder: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;") if "`" not in text else text.replace("|", "\\|")


def render_table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown, whose cells are Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_page(), encoding="utf-8")
