"""Every setting that a message names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

import runner
from runner.config import CONF
from runner.config.composing import compose_config
from tests.config.files import LOADER, load_settings

SOURCES = Path(runner.__file__).parent
GROUPS = sorted(folder.name for folder in CONF.iterdir() if folder.is_dir() and folder.name != "hydra")
FIELDS = {
    "gate": {"checks", "drop", "passed", "rules", "verdict"},
    "reranker": {"input_documents", "output_documents", "query"},
}
"""Names in the documents of commands, in JUnit and of attributes of spans, which are not settings."""
NAMED = re.compile(rf"(?<![\w./])({'|'.join(GROUPS)})\.([a-z][a-z_]*)(?![\w(.])")
JUDGED_BY = {"judged": ("judged", "ratings", "ubi", "trec", "clicks"), "trec": ("trec",), "beir": ("beir",)}
"""The modules whose messages each choice may print."""


def list_messages(file: Path) -> Iterator[str]:
    """Yield the texts in a module that are sentences; {} stands for the values in them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    quoted = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quoted | inner:
            yield node.value


def list_named(file: Path) -> set[tuple[str, str]]:
    return {(match[1], match[2]) for text in list_messages(file) for match in NAMED.finditer(text)}


def list_existing() -> Mapping[str, set[str]]:
    """Return the settings of each group, in any of its choices."""
    existing = {group: {"name", *FIELDS.get(group, ())} for group in GROUPS}
    for group in GROUPS:
        for file in (CONF / group).rglob("*.yaml"):
            existing[group] |= {*map(str, load_settings(file))}
    for file in CONF.glob("*.yaml"):
        own = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
        for group in existing.keys() & {name for name, value in own.items() if isinstance(value, dict)}:
            existing[group] |= {*map(str, own[group])}
    return existing


def test_every_setting_in_a_message_exists() -> None:
    existing = list_existing()
    named = [(group, name, file.name) for file in SOURCES.rglob("*.py") for group, name in list_named(file)]
    assert len(named) > 100
    assert [one for one in named if one[1] not in existing[one[0]]] == []


@pytest.mark.parametrize("choice", JUDGED_BY)
def test_settings_in_messages_about_judgments_can_be_set(choice: str) -> None:
    files = [SOURCES / "datasets" / f"{module}.py" for module in JUDGED_BY[choice]]
    messages = [text for file in files for text in list_messages(file) if "dataset=" not in text]  # of another choice
    names = sorted({match[2] for text in messages for match in NAMED.finditer(text) if match[1] == "dataset"})
    assert names
    config, _ = compose_config("evaluate", [f"dataset={choice}", *(f"dataset.{name}=x" for name in names)])
    assert [config.dataset[name] for name in names] == ["x"] * len(names)
