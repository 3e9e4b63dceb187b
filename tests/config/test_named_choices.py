"""Every choice of a group is named where users look for the choices of the group, or is an exception with a reason."""

from __future__ import annotations

import re

from runner.config import CONF

ROOT = CONF.parent
PAGES = {
    "chunking": "README.md",
    "dataset": "README.md",
    "encoder": "README.md",
    "encoder/api": "docs/encoders.md",
    "gate": "README.md",
    "generator": "docs/synthesis.md",
    "grading": "README.md",
    "llm": "README.md",
    "reranker": "docs/llm_retrievers.md",
    "reranker/api": "docs/llm_retrievers.md",
    "retriever": "README.md",
    "retriever/http": "docs/serve.md",
    "source": "docs/mining.md",
    "tracking": "README.md",
    "validation": "docs/synthesis.md",
}
"""The page that lists the choices of a folder of `conf/`; in the README, a row of a table if the group has one."""

WITHOUT_PAGE = {
    "analyzer": "the README says that every language of Snowball has one, which tests/config/test_conf.py tests",
    "experiment": "examples of sweeps, which `python -m runner --help` lists",
    "experiment/synthesis": "examples of settings, which `python -m runner synthesize --help` lists",
    "metrics": "has one choice",
}

UNNAMED = {"tracking=default": "is described by the settings that it has"}


def list_folders() -> dict[str, list[str]]:
    """Return the choices in each folder of a group."""
    folders: dict[str, list[str]] = {}
    for file in sorted(CONF.rglob("*.yaml")):
        folder = file.parent.relative_to(CONF).as_posix()
        if folder not in (".", "hydra") and not file.stem.startswith("_"):
            folders.setdefault(folder, []).append(file.stem)
    return folders


def test_every_group_has_a_page_that_lists_its_choices() -> None:
    assert list_folders().keys() == PAGES.keys() | WITHOUT_PAGE.keys()


def list_missing(folder: str) -> set[str]:
    """Return the choices in a folder that its page does not name."""
    group, _, inner = folder.partition("/")
    choices = [f"{inner}/{name}".removeprefix("/") for name in list_folders()[folder]]
    text = (ROOT / PAGES[folder]).read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{group}` \|.*", text, re.MULTILINE)
    named = "\n".join(rows) or text
    return {f"{group}={name}" for name in choices if f"`{name}`" not in named and f"{group}={name}" not in named}


def test_every_choice_is_named_on_the_page_of_its_group() -> None:
    assert {choice for folder in PAGES for choice in list_missing(folder)} == set(UNNAMED)
