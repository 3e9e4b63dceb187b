"""What is documented runs: commands with the files that a page shows, examples, settings with their defaults, links."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrievers.base import Corpus, Retriever
from runner.config import CONF
from runner.tracking.settings import Tracking
from tests.config.files import list_names, load_settings
from tests.documentation import (
    DIR,
    MODULE,
    PAGES,
    ROOT,
    blocks,
    chapters,
    commands,
    files,
    page,
    run,
    write,
)
from tests.retrievers import test_contract as contract

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")

PAGES_OF_THEIR_OWN = {
    "docs/production.md": "tests/test_production.py",
    "docs/tutorials/paper_table.md": "tests/test_tutorials.py",
    "docs/tutorials/postgresql.md": "tests/test_tutorials.py",
}
"""Pages whose commands run in another test."""

NOT_HERE = re.compile(r"retriever=golden_api|dataset=faq|weights_by_type")
"""Commands that need a service, a plug-in or the vectors of many texts.

Run by tests/features/serve/test_search_api.py, a test below, and tests/retrievers/composed/test_fusion_weights.py.
"""


def list_needed(name: str, heading: str) -> dict[str, str]:
    """Return the files that a page shows and the commands of a chapter read; those of the chapter come last."""
    text = page(name)
    words = " ".join(command for command in commands(chapters(text)[heading]) if not NOT_HERE.search(command))
    values = set(re.findall(r"=\W*(\w+)", words)) - set(re.findall(r" output=(\w+)", words))
    shown = files(text) | files(chapters(text)[heading])
    return {file: content for file, content in shown.items() if Path(file).parts[0].partition(".")[0] in values}


def chapters_to_run() -> list[tuple[str, str]]:
    """Return the page and the heading of each chapter whose commands read files that its page shows."""
    return [
        (name, heading)
        for name in PAGES
        if name not in PAGES_OF_THEIR_OWN
        for heading in chapters(page(name))
        if list_needed(name, heading)
    ]


@cache
def run_commands() -> set[str]:
    """Return the documented commands that a test of their chapter runs."""
    listed = (command for name, heading in chapters_to_run() for command in commands(chapters(page(name))[heading]))
    return {command.strip() for command in listed if not NOT_HERE.search(command)}


@pytest.fixture
def here(tracking: Tracking, shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, the shared store of work, and the small dataset."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlruns" / "cache").symlink_to(shared_store)
    write(tmp_path, DIR)
    return tmp_path


@pytest.fixture
def working_directory_imported(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the working directory, whose modules are imported as `python -m` does."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(here)
    yield here
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(here)):
            del sys.modules[name]


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize(("name", "heading"), chapters_to_run())
def test_documented_commands_run_with_the_files_of_their_page(
    working_directory_imported: Path, name: str, heading: str
) -> None:
    chapter = chapters(page(name))[heading]
    write(working_directory_imported, list_needed(name, heading) | files(chapter))
    for block in blocks(chapter, "python"):
        if not MODULE.match(block):
            exec(block, {})  # converts the files
    for command in commands(chapter):
        assert NOT_HERE.search(command) or run(command) == 0, command


def test_the_documented_experiment_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (experiment,) = (block for block in blocks(page("docs/sweeps.md"), "yaml") if block.startswith("# @package"))
    found = re.search(r"^# (conf/\S+), run by: python -m runner (.+)$", experiment, re.MULTILINE)
    assert found is not None
    write(here, {found[1]: experiment})
    assert run(found[2], "--config-dir=conf", "dataset=beir", "dataset.path=DIR") == 0
    assert "combinations by" in capsys.readouterr().out


ADD = chapters(page("docs/objects.md"))["Add a retriever in three steps"]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with the documented retriever, as a module and its YAML, where modules are imported from."""
    folder = tmp_path_factory.mktemp("added")
    (code,), (config,) = blocks(ADD, "python"), blocks(ADD, "yaml")
    write(folder, {"your_module.py": code, "FOLDER/retriever/shortest.yaml": config})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)  # as python -m does with the working directory
        yield folder
    sys.modules.pop("your_module", None)


def test_the_documented_retriever_is_run_from_outside(
    here: Path, added: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, command = (re.search(pattern, ADD) for pattern in (r"`(--config-dir=.+?)`", r"`python -m runner (.+?)`"))
    assert options is not None
    assert command is not None
    assert run(f"{command[1]} {options[1]}".replace("FOLDER", str(added / "FOLDER"))) == 0
    assert "2 combinations" in capsys.readouterr().out


def checks() -> list[Callable[..., None]]:
    """Return what is checked of a retriever that is exact, whatever it takes for a word: as of the dense one."""
    tests = [value for name, value in vars(contract).items() if name.startswith("test_")]
    return [test for test in tests if any(p.id == "dense" for mark in test.pytestmark for p in mark.args[1])]


@pytest.mark.parametrize("check", checks())
@pytest.mark.usefixtures("added")
def test_the_documented_retriever_keeps_the_contract(check: Callable[..., None], harbour: Corpus) -> None:
    retriever: Retriever = importlib.import_module("your_module").Shortest()
    wanted = {"harbour": harbour} if "harbour" in inspect.signature(check).parameters else {}
    check(retriever=retriever, **wanted)


def test_the_documented_place_of_the_contract_exists() -> None:
    found = re.search(r"[Aa]dd\s+it\s+to `(\w+)` in\s+`(\S+)`", ADD)
    assert found is not None
    assert (ROOT / found[2]).samefile(contract.__file__)
    assert hasattr(contract, found[1])


FORMAT = chapters(page("docs/datasets.md"))["A custom format"]


@pytest.fixture
def formatted(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a working directory with the page's format, as a module and its YAML, and a file to read."""
    (code,), (config,) = blocks(FORMAT, "python"), blocks(FORMAT, "yaml")
    write(here, files(FORMAT) | {"your_format.py": code, "FOLDER/dataset/faq.yaml": config})
    monkeypatch.syspath_prepend(here)
    yield here
    sys.modules.pop("your_format", None)


@pytest.mark.usefixtures("formatted")
@pytest.mark.parametrize(
    ("setting", "code", "output"),
    [
        ("", 0, "faq (test): 2 documents, 2 queries"),
        ("chunking=tokens chunking.size=4", 0, "2 documents in 4 chunks"),
        ("dataset.path=faqs.txt", 2, "dataset.path=faqs.txt: no such file or folder"),
    ],
)
def test_the_documented_format_is_read_from_outside(
    setting: str, code: int, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = blocks(FORMAT, "console")
    assert run(command, *setting.split()) == code
    assert output in "".join(capsys.readouterr())


KEY = re.compile(r"^\| `dataset\.(\w+)` \| `(.*?)` \| .*? \| (.*) \|$", re.MULTILINE)
"""A row of the generated page of the configuration: a setting of a dataset, its default, its meaning."""


@cache
def list_keys(title: str) -> dict[str, tuple[Any, str]]:
    """Return the default and the meaning of each key in a section, and of those that it has from other sections."""
    group = chapters(page("docs/configuration.md"))["The group `dataset`"]
    (text,) = (part for part in re.split(r"^### ", group, flags=re.MULTILINE) if part.startswith(f"{title}\n"))
    bases = re.findall(r"keys of (?:(every \w+)|`(\w+)`)", "".join(re.findall(r"^It also has .*", text, re.MULTILINE)))
    keys = {}
    for every, name in bases:
        keys |= list_keys(f"Keys of {every}" if every else f"`dataset={name}`")
    for key, default, meaning in KEY.findall(text):
        keys[key] = (yaml.safe_load(default), meaning or keys.get(key, (None, ""))[1])
    return keys


@pytest.mark.parametrize("name", list_names("dataset"))
def test_every_setting_of_a_dataset_is_documented_with_its_default(name: str) -> None:
    settings, documented = load_settings(CONF / "dataset" / f"{name}.yaml"), list_keys(f"`dataset={name}`")
    assert {key: default for key, (default, _) in documented.items()} == {
        key: settings[key] for key in settings.keys() - {"_target_"}
    }
    assert [key for key, (_, meaning) in documented.items() if not meaning] == []


def test_the_files_named_for_extensions_exist() -> None:
    named = re.findall(r"`((?:\w+/)+[\w.]*|\w+\.(?:md|toml))`", page("docs/extending.md"))
    assert len(named) > 40
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


def test_the_names_that_extensions_change_are_in_their_files() -> None:
    text = " ".join(page("docs/extending.md").split())
    named = [
        (file, name)
        for file, inner in re.findall(r"`([\w/]+\.py)` \((`[^)]*)\)", text)
        for name in re.findall(r"`(\w+)`", inner)
    ]
    named += [(file, name) for name, file in re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", text)]
    assert len(named) > 25
    assert [
        (file, name) for file, name in named if not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
    ] == []


BENCHMARK = re.compile(r"python -m\s+(benchmarks[\w.]*\w)")
"""A module of this repository that measures figures on a page."""

METHODS = (
    "explanations/racing.md",
    "tables.md",
    "explanations/causes.md",
    "explanations/dataset_reliability.md",
    "explanations/passages.md",
)
"""Pages of methods, which have the parts that a reader needs to judge one."""


def test_a_page_of_a_method_has_all_parts_and_a_simulation_that_exists() -> None:
    for name in METHODS:
        parts = re.split(r"^(?:## ([A-Z]\w+)$|\*\*([A-Z]\w+)\.\*\*)", page(f"docs/{name}"), flags=re.MULTILINE)
        titles = [heading or label for heading, label in zip(parts[1::3], parts[2::3], strict=True)]
        assert {"Question", "Formula", "Source", "Assumptions", "Simulation"} <= set(titles), name
        simulations = [text for title, text in zip(titles, parts[3::3], strict=True) if title == "Simulation"]
        assert any(BENCHMARK.search(text) for text in simulations), name


def test_the_benchmarks_behind_documented_figures_exist() -> None:
    modules = {module for name in PAGES for module in BENCHMARK.findall(page(name))}
    assert len(modules) > 30
    places = {module: ROOT / module.replace(".", "/") for module in modules}
    assert [module for module, path in places.items() if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


@cache
def list_anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def is_broken(name: str, target: str, anchor: str) -> bool:
    """Return whether a link on a page leads to a file or a heading of this repository that does not exist."""
    path = (ROOT / name).parent / target if target else ROOT / name
    is_external = target.startswith(("http:", "https:"))
    return not is_external and not (path.exists() and (not anchor or anchor in list_anchors(path)))


def test_what_is_linked_exists() -> None:
    links = [(name, *link) for name in PAGES for link in LINK.findall(page(name))]
    assert len(links) > 400
    assert [link for link in links if is_broken(*link)] == []
