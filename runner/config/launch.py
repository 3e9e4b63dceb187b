"""Start a verb: Hydra composes `conf/<verb>.yaml` with the overrides and calls the function of the verb."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.environment import forget_references
from runner.config.hydra_internals import accept_lazy_help, compose_once, convert_shown_config, reuse_compositions
from runner.config.mistakes import COMMAND, can_sweep, check_added, check_plugins, explain, restore_typed
from runner.config.objects import ConfigError
from runner.config.origins import check_origins
from runner.config.projects import find_project_config, ignore_hydra_plugins_here
from runner.config.source import check_files
from runner.config.values import hide_config, note_overrides, without_secrets

MULTIRUN = frozenset({"-m", "--multirun", "hydra.mode=MULTIRUN"})
"""The words that make Hydra run a verb more than once."""

SHOWING = frozenset({"--cfg", "-c", "--info", "-i"})
"""The flags that make Hydra print a config instead of running a verb."""

LONG_NUMBER = re.compile(r"\d{1000}")

NESTED = 20
"""Brackets in a setting that is likely to be the one that is nested too deeply."""

_TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:\$\{{[^}}]*\}}|[^][{{}}(),=\\'"{}])+)"""
TEXTS = re.compile(_TEXT.format("")), re.compile(_TEXT.format(":"))
"""The texts in a value, quoted or not: of any value, and of a mapping, in which a colon follows a key."""

TAKES_TEXT = ("sweep.exclude", "sweep.include", "grading.document_pattern")
"""Settings whose value is an expression, in which Hydra would read operators as its own syntax."""


def launch(verb: str, task: Callable[[DictConfig], int], words: Sequence[str]) -> int:
    """Run a verb under Hydra and return its exit code; raises `ConfigError` for a mistake in the overrides."""
    _check_once(verb, words)
    code, home = 0, os.getpid()
    errors: list[Exception] = []

    def job(cfg: DictConfig) -> None:
        nonlocal code
        try:
            _check_launcher()
            code = max(code, task(cfg))
        except Exception as error:
            if os.getpid() != home:  # a launcher runs the job in another process and returns its error
                raise
            errors.append(error)  # raised below, as Hydra would add to its message

    overrides = order_overrides([word for word in words if _is_override(word)])
    flags = [*_name_project_config(words), *(word for word in words if not _is_override(word))]
    sys.argv = [COMMAND, *flags, *overrides]  # Hydra requires flags first
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    ignore_hydra_plugins_here()
    forget_references()
    note_overrides(overrides)
    with (
        _refuse_unreadable(overrides),
        check_files(verb, overrides),
        compose_once(),
        reuse_compositions(),
        check_origins(overrides),
        accept_lazy_help(),
    ):
        check_added(verb, overrides)
        check_plugins(overrides[-1])
        try:
            with _show_config_without_secrets(words):
                hydra.main(version_base="1.3", config_path=str(CONF), config_name=verb)(job)()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(explain(error, verb, overrides)) from error
        except ValueError as error:
            if not _is_from_hydra(error):
                raise
            raise ConfigError(explain(error, verb, overrides)) from error
        except OSError as error:
            raise _explain_unwritable(error) from error
        except SystemExit as end:  # raised by --help, --cfg and sweeps
            code = end.code if isinstance(end.code, int) else 0
    for mistake in errors:
        raise _show_as_typed(mistake, overrides)
    return code


def find_outputs(words: Sequence[str]) -> Path | None:
    """Return the folder of what the jobs of Hydra's submitit launchers printed, None if there are none."""
    if not any(word.startswith("hydra/launcher=submitit") for word in words):
        return None
    given = [word.partition("=")[2] for word in words if word.startswith("hydra.sweep.dir=")]
    folder = Path(given[-1] if given else "mlruns/hydra") / ".submitit"
    return folder if folder.is_dir() else None


@contextmanager
def _refuse_unreadable(overrides: Sequence[str]) -> Iterator[None]:
    """Raise `ConfigError` for settings that are nested too deeply, or have numbers of thousands of digits."""
    try:
        yield
    except RecursionError as error:  # errors of the verb itself are collected in `launch`
        deepest = max(overrides, key=lambda word: word.count("[") + word.count("{"))
        place = deepest.partition("=")[0] if deepest.count("[") + deepest.count("{") > NESTED else "a config file"
        raise ConfigError(f"{place}: lists or mappings are nested too deeply; remove levels") from error
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        place = next((word.partition("=")[0] for word in overrides if LONG_NUMBER.search(word)), "a config file")
        raise ConfigError(f"{place}: the number has more than 64 bits; set a smaller one") from error


@contextmanager
def _show_config_without_secrets(words: Sequence[str]) -> Iterator[None]:
    """Let the flags that print a config print it without secrets, also with the variables that `--resolve` inserts."""
    if SHOWING.isdisjoint(word.partition("=")[0] for word in words):
        yield
        return
    printed = io.StringIO()
    try:
        with convert_shown_config(hide_config), redirect_stdout(printed):
            yield
    finally:
        sys.stdout.write(without_secrets(printed.getvalue()))


def _show_as_typed(error: Exception, overrides: Sequence[str]) -> Exception:
    """Return the error to raise for that of a verb: with the values of overrides as they were typed."""
    if type(error) is not ConfigError:
        return error
    return ConfigError(restore_typed(str(error), overrides))


def _check_launcher() -> None:
    """Raise `ConfigError` for a launcher of Hydra with a single run, which Hydra would not launch."""
    config = HydraConfig.get()
    launcher = config.runtime.choices.get("hydra/launcher", "basic")
    if config.mode == RunMode.RUN and launcher != "basic":
        raise ConfigError(
            f"hydra/launcher={launcher}: only used by a sweep; add -m hydra/sweeper=basic, or use sweep.backend=slurm"
        )


def order_overrides(words: Sequence[str]) -> list[str]:
    """Return overrides in the form for Hydra: expressions and letters beyond ASCII quoted, `trust`, and `plugins` last.

    Both are always set, so that no YAML file can name them.
    """
    return _with_plugins_last(_with_trust_last([_quote_letters(_quote_expression(word)) for word in words]))


def _check_once(verb: str, words: Sequence[str]) -> None:
    """Raise `ConfigError` for a sweep of a verb that cannot sweep."""
    if not can_sweep(verb) and not MULTIRUN.isdisjoint(words):
        raise ConfigError(
            f"-m: {verb} cannot run a sweep, because its runs would overwrite each other; run it once per value"
        )


def _quote_expression(word: str) -> str:
    """Return an override with its value quoted if it is an expression."""
    key, _, value = word.partition("=")
    if key.lstrip("+") not in TAKES_TEXT or value[:1] in ("'", '"', "[", "{", "") or value == "null":
        return word
    return f"{key}={QuotedString(value, Quote.single).with_quotes()}"


def _quote_letters(word: str) -> str:
    """Return an override with quotes around each text beyond ASCII, which Hydra reads only in quotes."""
    key, _, value = word.partition("=")
    if value.isascii():
        return word

    def quote(text: re.Match[str]) -> str:
        plain = text[0].strip(" \t")
        is_plain = plain.isascii() or plain[0] in "\"'"
        return text[0] if is_plain else QuotedString(plain, Quote.double).with_quotes()

    quoted = f"{key}={TEXTS[value.startswith('{')].sub(quote, value)}"
    try:
        OverridesParser.create().parse_overrides([quoted])
    except HydraException:
        return word  # explained when the whole config is composed
    return quoted


def _with_trust_last(overrides: Sequence[str]) -> list[str]:
    """Return the overrides with `trust` set last."""
    named, others = _partition("trust", overrides)
    return [*others, f"++trust={named[-1] if named else '[]'}"]


def _with_plugins_last(overrides: Sequence[str]) -> list[str]:
    """Return the overrides with `plugins` set last.

    A module that a setting of the command line names to be run is added to them: that of a factory
    (`retriever.factory=module:name`) or a package to read (`source.package`).
    """
    named, others = _partition("plugins", overrides)
    named_by = {key: value for key, _, value in (word.lstrip("+").partition("=") for word in others)}
    factories = (value for key, value in named_by.items() if key.endswith(".factory"))
    modules = [module for words in factories for module in re.findall(r"([\w.]+):", words)]
    if package := named_by.get("source.package", "").strip("'\""):
        modules.append(package)
    plugins = named[-1] if named else "[]"
    if modules and plugins.startswith("["):
        plugins = f"[{','.join(filter(None, (plugins.strip('[] '), *dict.fromkeys(modules))))}]"
    return [*others, f"++plugins={plugins}"]


def _partition(key: str, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the values that overrides give to a key, and the other overrides."""
    is_of_key = [word.lstrip("+").startswith(f"{key}=") for word in overrides]
    values = [word.partition("=")[2] for word, chosen in zip(overrides, is_of_key, strict=True) if chosen]
    return values, [word for word, chosen in zip(overrides, is_of_key, strict=True) if not chosen]


def _name_project_config(words: Sequence[str]) -> list[str]:
    """Return the flag that names the config folder of the project in the working directory, unless one is given."""
    if any(word.partition("=")[0] in ("--config-dir", "-cd") for word in words):
        return []
    try:
        folder = find_project_config(Path.cwd())
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return ["--config-dir", str(folder)] if folder else []


def _explain_unwritable(error: OSError) -> Exception:
    """Return the error to raise if Hydra cannot create a folder; other errors are returned unchanged."""
    if error.errno not in (errno.EROFS, errno.EACCES, errno.ENOTDIR, errno.EEXIST):
        return error
    return ConfigError(
        f"{error.filename}: cannot be written ({error.strerror}); run the command in a folder that you can write to"
    )


def _is_from_hydra(error: ValueError) -> bool:
    """Return whether Hydra, not this program, raised a ValueError."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "hydra"


def _is_override(word: str) -> bool:
    return word.startswith("~") or ("=" in word and not word.startswith("-"))
