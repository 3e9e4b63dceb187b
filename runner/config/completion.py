"""Completes what was typed: verbs in the shell, where Hydra completes groups and settings, and words for Hydra."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from runner.config.features import Command

FLAGS = frozenset({"-sc", "--shell-completion"})

_PROGRAM = re.compile(r"\s*(?:\S*python[\d.]*\s+-m\s+)?\S+\s*")
"""The beginning of a command line: `runner`, a path that ends in it, or `python -m runner`."""


def complete_verb(words: Sequence[str], verbs: Sequence[str], take_verb: Callable[[list[str]], str]) -> list[str]:
    """Return the verb of the line to complete, then the verbs that complete its last word.

    The shell passes the line in COMP_LINE. The verb is removed from it, because Hydra has no verbs.
    """
    line = os.environ.get("COMP_LINE")
    if line is None or not any(word.startswith("query=") for word in words):
        return ["evaluate"]
    program = _PROGRAM.match(line)
    typed = line[program.end() :] if program else ""
    complete, _, last = typed.rpartition(" ")
    before = complete.split()
    rest = list(before)
    verb = take_verb(rest)
    os.environ["COMP_LINE"] = " ".join(["runner", *rest, last])
    begins = len(rest) == len(before)  # no verb has been typed yet
    return [verb, *(name for name in verbs if begins and name.startswith(last) and "=" not in last)]


def complete_word(command: Command, word: str) -> str:
    """Return a word as Hydra reads it: an argument as a setting, texts quoted, several values as a list."""
    key, equals, value = word.partition("=")
    if not equals:
        return f"{command.argument}={_quote(word)}" if command.argument and word[:1] not in ("-", "~") else word
    if value[:1] in ("'", '"', "[") or value == "null":
        return word
    if key in command.texts:
        return f"{key}={_quote(value)}"
    return f"{key}=[{value}]" if key in command.lists and "," in value else word


def _quote(value: str) -> str:
    escaped = value.replace("'", "\\'")
    return f"'{escaped}'"
