"""Every documented command that no chapter of `tests/test_docs.py` runs is composed: its names and values exist."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner.__main__ import _take_verb
from runner.commands import list_commands
from runner.config import CONF
from runner.config.completion import complete_word
from runner.config.composing import compose_config, open_loader
from runner.config.hydra_internals import iter_children
from runner.config.objects import ConfigError, build_settings, locate_class
from runner.config.values import resolve_config, settle
from runner.datasets.settings import CHUNKING
from runner.evaluation.experiment import build_experiment
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.products import products
from runner.sweep.settings import SweepSettings
from runner.sweep.space import SearchSpace
from tests.documentation import FENCE, PAGES, page
from tests.test_docs import PAGES_OF_THEIR_OWN, run_commands

COMMAND = re.compile(r"(?:python -m runner|runner)(?= |$)")
INLINE = re.compile(r"`([^`]+)`")
REMARK = re.compile(r" +\(.*|\|\|.*|\| .*| {3,}(?! |[\w.@+~'\"/]*=).*")
"""What is behind a command in the same line: an explanation, or what a shell does next."""

LEFT_OUT = re.compile(r"\.\.\.|\w+=\.\.\.|--json|--cfg|job")
"""Flags, and words for settings or a choice that a page leaves to the reader."""

OF_THE_READER = (
    r"\b(COMMAND|experiment=(NAME|first|\S+\.yaml)|retriever=a,b|retriever=shortest)\b|\[KEY=VALUE\]|--config-dir|-sc\b"
    r"|--help"
)
"""Usage, and commands that need a file or a choice of the reader.

`tests/test_docs.py` runs those whose files a page shows, and `tests/test_new.py` the experiment of a new project.
"""

MODULES_OF_THE_READER = ("my_rag", "my_search", "your_format")

CHOICE = re.compile(r"(?<![\w./@])(\w+)=([a-z_/0-9]+)(?=$|[ '`])")
"""A choice of a group in a text."""

CHOICES_OF_THE_READER = {"dataset=data", "dataset=live", "experiment=first", "gate=release", "retriever=shortest"}
"""Choices in texts that are files of the reader, and an argument in Python."""


@cache
def list_composed() -> dict[str, list[str]]:
    """Return the commands that `tests/test_docs.py` does not run, by the first page that has them."""
    pages: dict[str, list[str]] = {}
    seen = run_commands()
    for name in (name for name in PAGES if name not in PAGES_OF_THEIR_OWN):
        fenced = "\n".join(block for _, _, block in FENCE.findall(page(name))).replace("\\\n", " ")
        for command in (line.strip() for line in (*fenced.splitlines(), *list_inline(name))):
            if COMMAND.match(command) and command not in seen and not re.search(OF_THE_READER, command):
                pages.setdefault(name, []).append(command)
                seen = seen | {command}
    return pages


def list_inline(name: str) -> list[str]:
    """Return the texts of a page that are set as code in its sentences and tables."""
    return [" ".join(text.split()) for text in INLINE.findall(FENCE.sub("", page(name)))]


def words_of(command: str) -> list[str]:
    """Return the words of a command, with optional ones, but without remarks and placeholders."""
    line = REMARK.sub("", COMMAND.sub("", command, count=1))
    words = shlex.split(line, comments=True)
    words = [word[1:-1] if word[0] + word[-1] == "[]" else word for word in words]
    return [word for word in words if not LEFT_OUT.fullmatch(word)]


def compose(verb: str, words: list[str], sweeping: bool) -> Iterator[tuple[DictConfig, Mapping[str, Any]]]:
    """Yield configs of a command and their choices of groups: of combinations that have each value of each axis."""
    if not sweeping:
        yield compose_config(verb, words)
        return
    with open_loader(verb, words) as (loader, ordered):
        config = loader.load_configuration(verb, ordered, run_mode=RunMode.MULTIRUN)
        composer = Composer(loader, verb, list(config.hydra.overrides.hydra))
        space = build_settings(SweepSettings, OmegaConf.to_container(config.sweep, resolve=True), "sweep")
        axes = list(config.hydra.overrides.task), config.hydra.sweeper.params or {}
        if config.hydra.runtime.choices["hydra/sweeper"] == "optuna":
            points = SearchSpace(products(*axes, space, loader, composer.value)).probes(0)
        else:
            points = combinations(*axes, space, loader, composer.value)
        seen: set[str] = set()
        for point in points:
            if not seen.issuperset(point.overrides):
                seen.update(point.overrides)
                config = composer.compose(point.overrides)
                yield config, config.hydra.runtime.choices


def unknown_parameters(node: DictConfig, place: str = "") -> Iterator[str]:
    """Yield the settings of a config that the class of their node does not have."""
    children = dict(iter_children(node))
    if "_target_" in children:
        target = str(node._target_)
        known = inspect.signature(locate_class(target, "", [target.partition(".")[0]])).parameters
        yield from (f"{place}{name}" for name in children if name not in ("_target_", CHUNKING, *known))
    for name, child in children.items():
        if name != "hydra" and isinstance(child, DictConfig):
            yield from unknown_parameters(child, f"{place}{name}.")


def check_values(verb: str, config: DictConfig, choices: Mapping[str, Any]) -> None:
    """Build the settings of a command; raises `ConfigError` for a value that one of them does not accept."""
    is_evaluation = verb in ("evaluate", "plan")
    values = settle(config, choices).config if is_evaluation else resolve_config(config)
    if is_evaluation:
        build_experiment(settle(config, choices))
    for key, target in list_commands()["evaluate" if is_evaluation else verb].settings.items():
        node = values.get(key) if key else values
        if isinstance(node, Mapping):
            module, _, name = target.rpartition(".")
            build_settings(getattr(import_module(module), name), node, key)


def is_left_out(command: str, message: str) -> bool:
    """Return whether a message is about what a page leaves to its reader, or about an extra that is not installed.

    A page leaves out settings where it writes `...` or only the name of a command, and values in capitals.
    """
    is_partial = "..." in command or len(words_of(command)) == 1
    is_placeholder = re.match(r"[\w.]+=[A-Z]+: should be ", message) is not None
    return (is_partial and ": is required" in message) or is_placeholder or "is not installed; run " in message


def iter_problems(command: str) -> Iterator[str]:
    """Yield what is wrong with a command: names and values that do not exist."""
    words = words_of(command)
    verb = _take_verb(words)
    sweeping = verb == "plan" or any(word == "-m" or word.startswith("experiment=") for word in words)
    settings = [complete_word(list_commands()[verb], word) for word in words if word != "-m"]
    try:
        for config, choices in compose(verb, settings, sweeping):
            yield from unknown_parameters(config)
            check_values(verb, config, choices)
    except ConfigError as error:
        if not is_left_out(command, str(error)):
            yield str(error)


@pytest.fixture
def modules_of_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the working directory a folder with these modules, which are forgotten at the end."""
    for module in MODULES_OF_THE_READER:
        (tmp_path / f"{module}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield
    for module in MODULES_OF_THE_READER:
        sys.modules.pop(module, None)


@pytest.mark.usefixtures("modules_of_the_reader")
@pytest.mark.parametrize("name", list_composed())
def test_the_names_and_values_in_documented_commands_exist(name: str) -> None:
    problems = {command: list(iter_problems(command)) for command in list_composed()[name]}
    assert {command: found for command, found in problems.items() if found} == {}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("retriever=bm52", "retriever=bm52: no such choice; did you mean retriever=bm25?"),
        ("retriever=bm25 +retriever.k2=1", "retriever.k2"),
        ("-m retriever=hybrid retriever.method=weighted,borada", "retriever.method=borada: should be "),
        ("-m retriever.k1=1,2 sweep.workers=none", "sweep.workers=none: should be "),
        ("compare baseline=a candidate=b statistics.test=tt", "statistics.test=tt: should be "),
    ],
)
def test_a_command_with_a_wrong_name_or_value_is_a_problem(
    words: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert next(iter_problems(f"python -m runner {words}")).startswith(problem)


def test_a_choice_in_a_text_exists() -> None:
    groups = {group.name for group in CONF.iterdir() if any(group.glob("*.yaml"))}
    chosen = {choice for name in PAGES for text in list_inline(name) for choice in CHOICE.findall(text)}
    missing = {f"{g}={c}" for g, c in chosen if g in groups and not (CONF / g / f"{c}.yaml").is_file()}
    assert missing == CHOICES_OF_THE_READER
