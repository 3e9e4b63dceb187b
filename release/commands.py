"""Write the reference of the commands from what they declare: `python -m release.commands FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from release.configuration import render_table
from runner.commands import list_commands
from runner.commands.help import render_usage
from runner.config.features import Command

INTRODUCTION = """\
# Commands

<!-- Generated from runner/commands and runner/features: `make docs` -->

`python -m runner COMMAND [GROUP=CHOICE] [KEY=VALUE] ...` runs a command; no command means evaluate. All settings are
listed in [configuration.md](configuration.md).

With `--json`, a command prints a single JSON document, and nothing else, on standard output; progress, notes and errors
are printed on standard error. Unknown values are `null`. If a command fails before it has a result, the document is
`{"error": MESSAGE}`; exit codes are the same as without `--json`. Commands that run until they are stopped
reject it."""


def render_page() -> str:
    """Return the page in Markdown."""
    commands = {name: own for name, own in list_commands().items() if own.module.startswith("runner.")}
    rows = [[f"[`{name}`](#{name})", command.summary] for name, command in commands.items()]
    parts = [INTRODUCTION, render_table(["command", "use"], rows)]
    for name, command in commands.items():
        parts += _render_command(name, command)
    return "\n\n".join(parts) + "\n"


def _render_command(name: str, command: Command) -> Iterator[str]:
    yield f"## {name}"
    if name != "evaluate":  # its help is the overview
        text = command.help.read_text(encoding="utf-8").strip()
        yield f"{command.summary[0].upper()}{command.summary[1:]}."
        yield f"```text\n{render_usage(name, command)}\n\n{text}\n```"
    codes = {0: command.success, **command.exit_codes}
    yield render_table(["exit code", "meaning"], [[str(code), meaning] for code, meaning in codes.items()])
    if command.documents:
        cases = len(command.documents) > 1
        rows = [
            [*([document.case] * cases), ", ".join(f"`{key}`" for key in document.keys.split()), document.content]
            for document in command.documents
        ]
        yield render_table([*(["case"] * cases), "keys of the document", "content"], rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_page(), encoding="utf-8")
