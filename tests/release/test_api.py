"""The reference of the Python API has every public name with its signature."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import retrievers
import runner
from release.api import format_signature, list_chapters, render_page

ROOT = Path(__file__).parents[2]


def test_a_page_has_each_signature_docstring_and_field() -> None:
    page = render_page()
    assert "runner.load_dataset(format: str, **settings: object) -> Dataset" in page
    assert "Return documents, queries and judgments as a dataset" in page
    assert "| `k1` | `float` | `0.9` |" in page


def test_every_public_name_is_listed_with_its_file() -> None:
    listed = [name for names in list_chapters().values() for name in names if "." in name[0]]
    public = {f"{package.__name__}.{name}" for package in (runner, retrievers) for name in package.__all__}
    assert public <= {name for name, _ in listed}
    assert [(name, file) for name, file in listed if find_file(name) != ROOT / file] == []


def find_file(name: str) -> Path:
    """Return the file that defines a name of a module."""
    module, _, attribute = name.rpartition(".")
    return Path(inspect.getsourcefile(getattr(import_module(module), attribute)) or "")


@pytest.mark.parametrize(
    ("source", "signature"),
    [
        ("def f(a: int, *b: str) -> None: ...", "x.f(a: int, *b: str) -> None"),
        ("def f(self, a: str | None=None): ...", "x.f(a: str | None = None)"),
        ("def f(self): ...", "x.f()"),
        (
            f"def f(first: {'A' * 60}, *, second: dict[str, int]={{}}, third: int=0) -> None: ...",
            f"x.f(\n    first: {'A' * 60},\n    *,\n    second: dict[str, int] = {{}},\n    third: int = 0,\n) -> None",
        ),
    ],
)
def test_a_signature_is_shown_without_self_and_on_several_lines_if_it_is_long(source: str, signature: str) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert format_signature(function, "x.f") == signature
