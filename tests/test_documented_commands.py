"""Every documented command that no other test runs is composed: its groups, choices and settings exist."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner.__main__ import _take_verb, main
from runner.commands import list_commands
from runner.config import CONF
from runner.config.completion import complete_word
from runner.config.composing import compose_config, open_loader
from runner.config.hydra_internals import iter_children
from runner.config.objects import ConfigError, build_settings, locate_class
from runner.datasets.settings import CHUNKING
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.products import products
from runner.sweep.settings import Space
from runner.sweep.space import SearchSpace
from tests.test_docs import FENCE, PAGES, PAGES_OF_THEIR_OWN, ROOT, page, run_commands

COMMAND = re.compile(r"(?:python -m runner|runner)(?= |$)")
INLINE = re.compile(r"`([^`]+)`")
REMARK = re.compile(r" +\(.*|\|\|.*|\| .*| {3,}(?! |[\w.@+~'\"/]*=).*")
"""What is behind a command in the same line: an explanation, or what a shell does next."""

LEFT_OUT = re.compile(r"\.\.\.|\w+=\.\.\.|--json|--cfg|job")
"""Flags, and words for settings or a choice that a page leaves to the reader."""

OF_THE_READER = (
    r"\b(COMMAND|experiment=NAME|retriever=a,b|retriever=shortest)\b|\[KEY=VALUE\]|--config-dir|-sc\b|--help"
)
"""Usage, and commands that need a file or a choice of the reader; `tests/test_docs.py` runs those with files."""

MODULES_OF_THE_READER = ("my_rag", "my_search", "your_format")

CHOICE = re.compile(r"(?<![\w./@])(\w+)=([a-z_/0-9]+)(?=$|[ '`])")
"""A choice of a group in a text."""

CHOICES_OF_THE_READER = {"dataset=data", "dataset=live", "experiment=first", "gate=release", "retriever=shortest"}
"""Choices in texts that are files of the reader, and an argument in Python."""


@cache
def documented_commands() -> dict[str, str]:
    """Return the pages of the documented commands that `tests/test_docs.py` does not run, by the command."""
    found: dict[str, str] = {}
    run = run_commands()
    for name in (str(path.relative_to(ROOT)) for path in PAGES):
        if name in PAGES_OF_THEIR_OWN:
            continue
        fenced = "\n".join(block for _, _, block in FENCE.findall(page(name))).replace("\\\n", " ")
        inline = [" ".join(text.split()) for text in INLINE.findall(FENCE.sub("", page(name)))]
        for line in (*fenced.splitlines(), *inline):
            command = line.strip()
            if COMMAND.match(command) and command not in run and not re.search(OF_THE_READER, command):
                found.setdefault(command, name)
    return found


def words_of(command: str) -> list[str]:
    """Return the words of a command, with optional ones, but without remarks and placeholders."""
    line = REMARK.sub("", COMMAND.sub("", command, count=1))
    words = shlex.split(line, comments=True)
    words = [word[1:-1] if word[0] + word[-1] == "[]" else word for word in words]
    return [word for word in words if not LEFT_OUT.fullmatch(word)]


def compose(verb: str, words: list[str], sweeping: bool) -> Iterator[DictConfig]:
    """Yield the config of each combination of a command."""
    if not sweeping:
        yield compose_config(verb, words)[0]
        return
    with open_loader(verb, words) as (loader, ordered):
        config = loader.load_configuration(verb, ordered, run_mode=RunMode.MULTIRUN)
        composer = Composer(loader, verb, list(config.hydra.overrides.hydra))
        own = OmegaConf.to_container(config.sweep)
        assert isinstance(own, dict)
        space = build_settings(Space, {field.name: own[field.name] for field in fields(Space)}, "sweep")
        axes = list(config.hydra.overrides.task), config.hydra.sweeper.params or {}
        if config.hydra.runtime.choices["hydra/sweeper"] == "optuna":
            points = SearchSpace(products(*axes, space, loader, composer.value)).probes(0)
        else:
            points = combinations(*axes, space, loader, composer.value)
        yield from (composer.compose(point.overrides) for point in points)


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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a new project with the modules that pages expect of their reader."""
    folder = tmp_path_factory.mktemp("project") / "my-experiments"
    assert main(["new", str(folder)]) == 0
    for module in MODULES_OF_THE_READER:
        (folder / f"{module}.py").touch()
    yield folder
    sys.modules.pop("my_experiments", None)


@pytest.mark.parametrize("command", list(documented_commands()))
def test_the_names_of_a_documented_command_exist(
    command: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project if "experiment=first" in command else tmp_path)
    monkeypatch.syspath_prepend(project)
    words = words_of(command)
    verb = _take_verb(words)
    sweeping = verb == "plan" or any(word == "-m" or word.startswith("experiment=") for word in words)
    settings = [complete_word(list_commands()[verb], word) for word in words if word != "-m"]
    try:
        for config in compose(verb, settings, sweeping):
            assert list(unknown_parameters(config)) == []
    except ConfigError as error:
        pytest.fail(f"{documented_commands()[command]}: {error}")


@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in PAGES])
def test_a_choice_in_a_text_exists(name: str) -> None:
    groups = {group.name for group in CONF.iterdir() if any(group.glob("*.yaml"))}
    chosen = {choice for text in INLINE.findall(FENCE.sub("", page(name))) for choice in CHOICE.findall(text)}
    missing = {f"{g}={c}" for g, c in chosen if g in groups and not (CONF / g / f"{c}.yaml").is_file()}
    assert missing <= CHOICES_OF_THE_READER
