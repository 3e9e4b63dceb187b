"""The command line: `python -m runner [VERB] [Hydra overrides]`. No verb means evaluate."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path and not __file__.startswith(f"{sys.path[0]}/"):
    sys.path.append(sys.path.pop(0))  # python -m puts the working folder first, where a file would hide any library

import importlib
import io
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from runner.commands import list_commands
from runner.commands.help import render_help, render_topic
from runner.config.completion import FLAGS, complete_verb, complete_word
from runner.config.features import Command, FeatureError

CRASHED, USER_MISTAKE, GATE_CRASHED, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141

AGAIN_S = 0.05
"""Seconds until an interrupt that Python dropped is raised again."""

JSON = "--json"
"""The flag that makes a command print one JSON document, and nothing else, on standard output."""

TAKES_A_VALUE = re.compile(r"--(cfg|package|config-(path|name|dir)|info|experimental-rerun)|-(c|p|cp|cn|cd|i)")
"""Hydra's flags whose value is the next word."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return 0, 1 if a combination failed or a gate is violated, or 2 for a user's mistake.

    A crash raises its error, except in the commands with a gate, which return 3.
    """
    _write_any_character()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        _import_from_working_directory()
    try:
        commands = list_commands()
    except FeatureError as error:
        _say(str(error))
        return USER_MISTAKE
    verb = _take_verb(words)
    if not FLAGS.isdisjoint(words):
        verb, *choices = complete_verb(words, sorted(commands), _take_verb)
        sys.stdout.write("".join(f"{choice}\n" for choice in choices))
    asks_help = not {"--help", "-h"}.isdisjoint(words)
    topic = verb if verb not in commands else words[-1] if words else ""  # --help GROUP, or GROUP=CHOICE
    if asks_help and (text := render_topic(topic, commands)) is not None:
        sys.stdout.write(text)
        return 0
    if verb in commands:
        words = [complete_word(commands[verb], word) for word in words]
        if asks_help:
            sys.stdout.write(render_help(verb, commands))  # before anything is loaded
            return 0
    if "--version" in words:
        sys.stdout.write(_versions())
        return 0
    if arguments is None:
        from runner.pages.control import clean_messages  # takes a fifth of the time of --help

        clean_messages()
    _handle_signals()
    try:
        with _choose_output(words):
            return _run_reporting_errors(verb, commands, words)
    except BrokenPipeError:  # the reader closed the pipe
        sys.stdout = None  # otherwise Python reports an error when it flushes standard output at exit
        return PIPE_CLOSED


def _choose_output(words: Sequence[str]) -> AbstractContextManager[None]:
    """Return the context to run a command in; with --json, it prints one JSON document on standard output."""
    if JSON not in words:
        return nullcontext()
    from runner.pages import console

    return console.document_only()


def _run_reporting_errors(verb: str, commands: Mapping[str, Command], words: Sequence[str]) -> int:
    try:
        return _run(verb, commands, [word for word in words if word != JSON], JSON in words)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except Exception as error:
        import traceback

        if isinstance(error, _mistakes()):
            _say(str(error))
            return USER_MISTAKE
        if verb in commands and GATE_CRASHED in commands[verb].exit_codes:
            from runner.config.values import without_secrets
            from runner.pages.control import clean_text

            sys.stderr.write(clean_text(without_secrets(traceback.format_exc())))
            return GATE_CRASHED
        if not _is_private(traceback.format_exc()):
            raise
        _say(traceback.format_exc())
        return CRASHED


def _run(verb: str, commands: Mapping[str, Command], words: Sequence[str], json: bool) -> int:
    from runner.config.launch import find_outputs, launch  # loads Hydra, which takes long enough to be interrupted
    from runner.config.mistakes import check_flags
    from runner.config.objects import ConfigError, suggestion
    from runner.system.processes import main_module_not_imported_again

    check_flags(words)
    if verb not in commands:
        way_out = "write --help" if verb == "help" else suggestion(verb, commands)
        raise ConfigError(f"{verb}: no such command; {way_out}")
    if commands[verb].serves and json:
        raise ConfigError(f"{JSON}: not supported by {verb}, which runs until it is stopped; remove {JSON}")
    with main_module_not_imported_again():
        code = launch(verb, importlib.import_module(commands[verb].module).main, words)
    if (folder := find_outputs(words)) is not None:
        from runner.pages import console

        console.note(
            f"each job printed its result to a file *_log.out in {folder}; compare them with python -m runner look"
        )
    return code


def _import_from_working_directory() -> None:
    """Find plug-ins in the working directory, after everything that is installed."""
    here = str(Path.cwd())
    if not sys.flags.safe_path and here not in sys.path:
        sys.path.append(here)


def _handle_signals() -> None:
    """Treat SIGTERM as Ctrl-C, and SIGHUP too unless nohup started the process.

    Python drops an exception in a finalizer or a callback of a weak reference; an interrupt there is raised again.
    """
    with suppress(ValueError):  # only the main thread can handle signals
        if hasattr(signal, "setitimer") and not isinstance(sys.unraisablehook, _RepeatInterrupt):
            signal.signal(signal.SIGALRM, _interrupt)
            sys.unraisablehook = _RepeatInterrupt(sys.unraisablehook)
        signal.signal(signal.SIGTERM, _interrupt)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, _interrupt)


def _write_any_character() -> None:
    """Escape characters that the encoding of standard output lacks, so that printing a result never fails."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


class _RepeatInterrupt:
    """A hook for dropped exceptions that raises an interrupt again a moment later; others go to the hook before it."""

    def __init__(self, before: Callable[[Any], object]) -> None:
        self._before = before

    def __call__(self, dropped: Any) -> None:  # noqa: ANN401 (sys.UnraisableHookArgs, which only typeshed has)
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            self._before(dropped)


def _interrupt(*_: object) -> NoReturn:
    """Stop as after Ctrl-C, keeping finished work."""
    raise KeyboardInterrupt


def _versions() -> str:
    """Return the versions of this program, Hydra and MLflow."""
    from importlib import metadata  # takes a quarter of the time of --help

    own, hydra, mlflow = map(metadata.version, ("retrieval-runner", "hydra-core", "mlflow-skinny"))
    return f"retrieval-runner {own} (Hydra {hydra}, MLflow {mlflow})\n"


def _take_verb(words: list[str]) -> str:
    """Remove and return the verb: the first word that is neither a flag, nor the value of one, nor an override."""
    for position, word in enumerate(words):
        is_value = position > 0 and TAKES_A_VALUE.fullmatch(words[position - 1])
        if not (is_value or word.startswith(("-", "~")) or "=" in word):
            return words.pop(position)
    return "evaluate"


def _mistakes() -> tuple[type[ValueError], ...]:
    """Return the types of errors that are a user's mistake and not a bug."""
    from retrievers.base import RetrieverError
    from runner.config.objects import ConfigError
    from runner.datasets.base import DatasetError
    from runner.evaluation.result import ResultError
    from runner.metrics.errors import MeasureError

    return ConfigError, DatasetError, MeasureError, ResultError, RetrieverError


def _is_private(text: str) -> bool:
    """Return whether a text contains the value of an environment variable that is not public."""
    from runner.config.environment import hide_values

    return hide_values(text) != text


def _say(text: str) -> None:
    from runner.config.values import without_secrets
    from runner.pages import console

    console.error(without_secrets(text))


if __name__ == "__main__":
    sys.exit(main())
