"""The choices of a group that has a page of its own are named on it.

`--help GROUP` and docs/configuration.md describe the choices of every group, as they are derived from `conf/`.
"""

from __future__ import annotations

import re

from runner.config import CONF
from tests.config.files import list_names

ROOT = CONF.parent
PAGES = {
    "dataset": "docs/datasets.md",
    "encoder/api": "docs/encoders.md",
    "generator": "docs/synthesis.md",
    "reranker": "docs/llm_retrievers.md",
    "reranker/api": "docs/llm_retrievers.md",
    "retriever/http": "docs/serve.md",
    "source": "docs/mining.md",
    "validation": "docs/synthesis.md",
}
"""The page of a folder of `conf/`."""


def list_missing(folder: str) -> set[str]:
    """Return the choices in a folder that its page does not name."""
    group, _, inner = folder.partition("/")
    choices = [f"{inner}/{name}".removeprefix("/") for name in list_names(folder)]
    text = (ROOT / PAGES[folder]).read_text(encoding="utf-8")
    return {name for name in choices if not re.search(rf"[`\[]{name}[`\],]|{group}={name}\b", text)}


def test_every_choice_is_named_on_the_page_of_its_group() -> None:
    assert {folder: missing for folder in PAGES if (missing := list_missing(folder))} == {}
