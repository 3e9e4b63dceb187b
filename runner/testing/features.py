"""What a feature owes the program, to be checked by its own tests: its help, config file, settings, exit codes."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import is_dataclass
from importlib import import_module

import orjson
import yaml

from runner.__main__ import main
from runner.commands import list_commands
from runner.commands.help import WIDTH, render_help
from runner.config.features import list_conf_folders, list_features
from runner.testing.requirements import require


def check_feature(name: str) -> None:
    """Raise `AssertionError` with what the feature of a name lacks."""
    feature = list_features()[name]
    for place in (*feature.sections.values(), *feature.apps.values()):
        module, _, function = place.partition(":")
        require(callable(getattr(import_module(module), function, None)), f"{place} should name a function")
    if feature.command is not None:
        check_command(name)


def check_command(name: str) -> None:
    """Raise `AssertionError` with what the command of a name lacks."""
    commands = list_commands()
    command = commands[name]
    require(callable(getattr(import_module(command.module), "main", None)), f"{command.module} has no function main")
    files = [file for folder in list_conf_folders() if (file := folder / f"{name}.yaml").is_file()]
    require(files, f"conf/{name}.yaml is missing")
    keys = yaml.safe_load(files[0].read_text(encoding="utf-8"))
    require(
        f"  {command.summary}\n" in render_help("evaluate", commands), "the summary does not fit in a line of --help"
    )
    wide = [line for line in render_help(name, commands).splitlines() if len(line) > WIDTH]
    require(not wide, f"lines of the help are wider than {WIDTH}: {wide}")
    require(2 in command.exit_codes, "the exit code 2, for an invalid command, is not explained")
    require(command.serves != bool(command.documents), "declare a document of --json, or that the command serves")
    for key in (command.argument, *command.texts, *command.lists):
        require(not key or key in keys, f"conf/{name}.yaml lacks the key {key}")
    for key, target in command.settings.items():
        module, _, attribute = target.rpartition(".")
        kind = getattr(import_module(module), attribute)
        require(is_dataclass(kind), f"{target} should be a dataclass, whose fields are the settings")
        require(not key or key in keys, f"conf/{name}.yaml lacks the key {key}")


def check_document(name: str, *words: str, case: str = "") -> None:
    """Run a command with `--json`; raise `AssertionError` unless it prints one document with the keys it declares.

    `case` is that of the `Document`.
    """
    declared = {document.case: document.keys.split() for document in list_commands()[name].documents}
    with redirect_stdout(io.StringIO()) as out:
        code = main([name, *words, "--json"])
    require(code == 0, f"{name} --json: exit code {code}: {out.getvalue().strip()}")
    keys = list(orjson.loads(out.getvalue()))
    require(keys == declared[case], f"{name} --json: printed the keys {keys}, but declares {declared[case]}")
