from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrievers.work import KINDS, kind_of
from runner.sweep.estimates import _MODELS

ROOT = Path(__file__).parents[2]

MAKERS = {"of", "_key", "_index_key", "beside", "build_key", "_load_or_run"}
"""The functions whose first argument is a kind of work."""

ROLES = ("document", "query")
"""What encoders make keys for; the kind is put together from the role."""

COMPOSED = {f"{role} {what}" for role in ROLES for what in ("vectors", "term weights", "token vectors")}
"""The kinds whose names are put together in the code."""


def kinds_in(source: Path) -> Iterator[str]:
    """Yield the kinds of work that a module makes keys for."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call) and node.args and isinstance(name := node.args[0], ast.Constant):
            called = node.func
            called_by = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            key = not isinstance(called, ast.Attribute) or called_by != "of" or ast.unparse(called.value) == "Key"
            if called_by in MAKERS and key and isinstance(name.value, str) and name.value not in ROLES:
                yield name.value


def test_the_table_has_every_kind_of_work_and_no_other() -> None:
    sources = [file for room in ("retrievers", "runner") for file in (ROOT / room).rglob("*.py")]
    assert COMPOSED | {kind for file in sources for kind in kinds_in(file)} == set(KINDS)


def test_every_estimate_is_of_a_kind_in_the_table() -> None:
    assert {model for model in _MODELS if model not in KINDS and model.partition(" ")[0] not in KINDS} == set()


@pytest.mark.parametrize(
    ("name", "stage"),
    [("query terms", "search"), ("query vectors", "search"), ("candidates", "search"), ("postings", "index")],
)
def test_what_queries_cause_is_search(name: str, stage: str) -> None:
    assert kind_of(name).stage == stage


def test_what_a_plug_in_does_counts_as_indexing() -> None:
    kind = kind_of("graph of entities")
    assert (kind.stage, kind.title, kind.counted) == ("index", "graph of entities", True)
