"""The help of a command: its declaration, its text, and for evaluate the commands and the choices of each group."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from runner.config.features import Command, list_conf_folders
from runner.config.projects import find_project_config, list_plugins

WIDTH, SCREEN = 120, 80
"""Columns of the help of a command, and of the first help."""

SETTINGS = {"statistics": "runner.statistics.settings.Statistics"}
"""Classes of settings that several commands have under one key."""


def render_help(name: str, commands: Mapping[str, Command]) -> str:
    """Return the help of a command."""
    command = commands[name]
    text = command.help.read_text(encoding="utf-8")
    text = text.replace("$commands", "\n".join(_align({n: c.summary for n, c in commands.items()})))
    text = text.replace("$groups", "\n".join(_list_choices()))
    sentence = f"{command.summary[0].upper()}{command.summary[1:]}."
    usage = "" if name == "evaluate" else f"{render_usage(name, command)}\n\n{sentence}\n\n"
    ends = "Ctrl-C stops the server. " if command.serves else ""
    codes = textwrap.fill(f"{ends}Exit codes: {describe_exit_codes(command)}.", SCREEN if name == "evaluate" else WIDTH)
    return f"{usage}{text.strip()}\n\n{codes}\n"


def render_topic(topic: str, commands: Mapping[str, Command]) -> str | None:
    """Return the choices of a config group, of the settings of `GROUP=CHOICE` or `statistics`, or of `COMMAND.KEY`.

    Return None for anything else.
    """
    group, _, choice = topic.partition("=")
    command, _, only = topic.partition(".")
    files = {file.stem: file for folder in _list_folders() for file in sorted((folder / group).glob("[!_]*.yaml"))}
    if files and not choice:
        texts = _join_languages({name: _describe(file) for name, file in files.items()})
        return "\n".join(_align({f"{group}={name}": text for name, text in texts.items()})) + "\n"
    if choice in files:
        named = re.search(r"^_target_: (\S+)$", files[choice].read_text(encoding="utf-8"), re.MULTILINE)
        lines, target = [_describe(files[choice])], named[1] if named else ""
    elif topic in SETTINGS:
        lines, target = [], SETTINGS[topic]
    elif command in commands and only:
        lines, target, group = [], commands[command].settings.get("", ""), command
    else:
        return None
    for key, choices in _list_tables(target).items():
        if only in ("", key):
            lines += [f"{group}.{key}", *_align(choices)]
    return "\n".join(lines) + "\n" if lines else None


def _describe(file: Path) -> str:
    """Return the first sentence at the top of a config file, without commands."""
    top = takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines())
    lines = (line.lstrip("# ") for line in top if "@package" not in line)
    text = " ".join(re.split("(?<!`)python -m runner", line, maxsplit=1)[0].strip() for line in lines).strip()
    return re.split(r"[.:](?:\s|$)", text, maxsplit=1)[0]


def _join_languages(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the choices of a group with their texts, those for text in the language of their name as one, the last."""
    own = {name: re.fullmatch(rf"{name.capitalize()} text(?:, (.*))?", text) for name, text in texts.items()}
    languages = [f"{name} ({match[1]})" if match[1] else name for name, match in own.items() if match]
    joined = {"LANGUAGE": f"Text in {', '.join(languages)}"} if languages else {}
    return {name: text for name, text in texts.items() if not own[name]} | joined


def _list_tables(target: str) -> dict[str, dict[str, str]]:
    """Return the choices of each setting of a class that has some, by its key."""
    from importlib import import_module
    from typing import get_type_hints

    from retrievers.choices import list_choices  # loads pydantic

    module, _, name = target.rpartition(".")
    hints = get_type_hints(getattr(import_module(module), name), include_extras=True) if module else {}
    return {key: choices for key, kind in hints.items() if (choices := list_choices(kind))}


def render_usage(name: str, command: Command) -> str:
    """Return how a command is typed."""
    words = ("python -m runner", name, command.usage, "[KEY=VALUE] ...", "" if command.serves else "[--json]")
    return " ".join(filter(None, words))


def describe_exit_codes(command: Command) -> str:
    """Return the exit codes of a command with their meaning."""
    return "; ".join(f"{code} {meaning}" for code, meaning in {0: command.success, **command.exit_codes}.items())


def _list_choices() -> Iterator[str]:
    """Yield a line for each config group with its choices, also those of features and of the project, and plug-ins."""
    folders = _list_folders()
    own = (group for folder in folders for group in folder.iterdir() if any(group.glob("*.yaml")))
    groups = sorted({group.name for group in own} - {"hydra"})
    files = {group: [file for folder in folders for file in (folder / group).glob("[!_]*.yaml")] for group in groups}
    width = max(map(len, groups))
    for group in groups:
        names = sorted(file.stem for file in files[group])
        yield f"  {group:{width}}  {_abbreviate(names, SCREEN - width - 4)}"
    if plugins := list_plugins():
        yield from ("", "Plug-ins", *_align(plugins))


def _list_folders() -> list[Path]:
    """Return the folders of config files: those of the program, of features and of the project."""
    folders = list_conf_folders()
    with suppress(ValueError):  # reported when a command is run
        if project := find_project_config(Path.cwd()):
            folders.append(project)
    return folders


def _abbreviate(names: Sequence[str], width: int) -> str:
    """Return as many names as fit into a line, and the number of the others."""
    for count in range(len(names), 0, -1):
        line = ", ".join(names[:count]) + (f" and {rest} more" if (rest := len(names) - count) else "")
        if len(line) <= width:
            return line
    return f"{len(names)} choices"


def _align(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield each name with its text in the second column, in lines of at most `WIDTH` characters."""
    width = max(map(len, texts))
    for name, text in texts.items():
        start, more = f"  {name:{width}}  ", " " * (width + 4)
        yield textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=more) or start.rstrip()
