"""The command line: `python -m runner [VERB] [Hydra overrides]`. No verb means evaluate."""

from __future__ import annotations

import importlib
import io
import pkgutil
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from runner import commands
from runner.config import help_of
from runner.config.completion import FLAGS, complete_verb
from runner.processes import main_module_not_imported_again

USER_MISTAKE, INTERRUPTED, PIPE_CLOSED = 2, 130, 141

TAKES_A_VALUE = re.compile(r"--(cfg|package|config-(path|name|dir)|info|experimental-rerun)|-(c|p|cp|cn|cd|i)")
"""Hydra's flags whose value is the next word."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return 0, 1 when a combination failed or a gate is violated, 2 for a user's mistake."""
    _write_any_character()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        _import_from_working_directory()
    verbs = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    verb = _take_verb(words)
    if not FLAGS.isdisjoint(words):
        verb, *choices = complete_verb(words, verbs, _take_verb)
        sys.stdout.write("".join(f"{choice}\n" for choice in choices))
    words = [f"{verb}.json=true" if word == "--json" else word for word in words]
    if verb in verbs and not {"--help", "-h"}.isdisjoint(words):
        sys.stdout.write(help_of(verb))  # before anything is loaded
        return 0
    if "--version" in words:
        sys.stdout.write(_versions())
        return 0
    _handle_signals()
    try:
        from runner.config.launch import launch  # which loads Hydra: long enough to be interrupted
        from runner.config.mistakes import check_flags
        from runner.config.objects import ConfigError, suggestion

        check_flags(words)
        if verb not in verbs:
            way_out = "it is written --help" if verb == "help" else suggestion(verb, verbs)
            raise ConfigError(f"{verb}: no such verb; {way_out}")
        with main_module_not_imported_again():
            return launch(verb, importlib.import_module(f"runner.commands.{verb}").main, words)
    except ValueError as error:
        if not isinstance(error, _mistakes()):
            raise
        _say(str(error))
        return USER_MISTAKE
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stdout = None  # or its closing would complain
        return PIPE_CLOSED
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED


def _import_from_working_directory() -> None:
    """Find plug-ins in the working directory, as `python -m` does; the installed command would look beside itself."""
    here = str(Path.cwd())
    if not sys.flags.safe_path and here not in sys.path:
        sys.path.insert(0, here)


def _handle_signals() -> None:
    """End as Ctrl-C does when the process is asked to end or its terminal goes away, unless it was begun by nohup."""
    with suppress(ValueError):  # of a thread that is not the main one: signals are then not for us
        signal.signal(signal.SIGTERM, _interrupt)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, _interrupt)


def _write_any_character() -> None:
    """Have standard output escape what its encoding lacks: no result is lost for a character."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _interrupt(*_: object) -> NoReturn:
    """End as Ctrl-C does, with what is done."""
    raise KeyboardInterrupt


def _versions() -> str:
    """Return the version of this program, and of those that a user of it meets."""
    own, hydra, mlflow = map(metadata.version, ("retrieval-runner", "hydra-core", "mlflow"))
    return f"retrieval-runner {own} (Hydra {hydra}, MLflow {mlflow})\n"


def _take_verb(words: list[str]) -> str:
    """Take the verb out of the words: the first that is neither a flag, nor the value of one, nor an override."""
    for position, word in enumerate(words):
        is_value = position > 0 and TAKES_A_VALUE.fullmatch(words[position - 1])
        if not (is_value or word.startswith(("-", "~")) or "=" in word):
            return words.pop(position)
    return "evaluate"


def _mistakes() -> tuple[type[ValueError], ...]:
    """Return the errors that are about what the user gave, not about this program."""
    from retrievers.base import RetrieverError
    from runner.config.objects import ConfigError
    from runner.datasets.base import DatasetError
    from runner.metrics.errors import MeasureError
    from runner.result import ResultError

    return ConfigError, DatasetError, MeasureError, ResultError, RetrieverError


def _say(text: str) -> None:
    from runner.config.values import without_secrets
    from runner.reports import console

    console.error(without_secrets(text))


if __name__ == "__main__":
    sys.exit(main())
