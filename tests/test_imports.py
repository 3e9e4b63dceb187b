"""Modules import each other in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("retrievers", "runner")

COMPUTED = {
    "retrievers": "loads a public name on first use",
    "retrievers.capabilities": "lists the classes of the library",
    "retrievers.code": "reads the versions of modules that keys name",
    "retrievers.runs.existing": "loads a function that a setting names",
    "runner": "loads a public name on first use",
    "runner.__main__": "loads the command that was typed",
    "runner.commands.help": "loads the settings that a command declares",
    "runner.config.features": "loads what a feature declares",
    "runner.config.objects": "loads the class that a YAML file names",
    "runner.features.mine.packages": "loads a package whose code is mined",
    "runner.llm.providers": "loads the library of a provider",
    "runner.testing.features": "loads what a feature declares",
}
"""The modules that import others by a computed name, and why: the name is data, such as a setting or a declaration."""


def list_modules(root: Path) -> dict[str, Path]:
    """Return the files of the packages by the names of their modules."""
    files = sorted(file for package in PACKAGES for file in (root / package).rglob("*.py"))
    return {".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def iter_executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those within it, functions included, without what only a type checker reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from iter_executed(child)


def iter_called(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """Yield the names of modules that calls such as `importlib.import_module(name)` import."""
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield node.args[0]


def list_imports(file: Path, modules: Mapping[str, Path]) -> tuple[set[str], bool]:
    """Return the modules that a file imports, at the top or in a function, and whether it imports by a computed name.

    Of a package, only the module counts that an import names.
    """
    names, nodes = set[str](), list(iter_executed(ast.parse(file.read_text(encoding="utf-8"))))
    called = list(iter_called(nodes))
    names |= {name.value for name in called if isinstance(name, ast.Constant)}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            within = {f"{node.module}.{name.name}" for name in node.names} & modules.keys()
            names |= within or {node.module}
    return names & modules.keys(), not all(isinstance(name, ast.Constant) for name in called)


def find_circle(root: Path) -> list[str]:
    """Return the modules of a circle of imports, [] if there is none."""
    modules = list_modules(root)
    graph = {name: list_imports(file, modules)[0] for name, file in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_circle(ROOT) == []


def test_modules_that_import_by_a_computed_name_are_known() -> None:
    modules = list_modules(ROOT)
    assert [name for name, file in modules.items() if list_imports(file, modules)[1]] == sorted(COMPUTED)


@pytest.mark.parametrize(
    "line",
    [
        "from retrievers import a",
        "def f():\n    import retrievers.a",
        "def f():\n    importlib.import_module('retrievers.a')",
    ],
)
def test_a_circle_through_a_function_is_noticed(line: str, tmp_path: Path) -> None:
    files = {
        "retrievers/__init__": "",
        "retrievers/a": "from runner.b import x",
        "runner/b": "from runner.c import x",
        "runner/c": line,
    }
    for name, text in files.items():
        file = (tmp_path / name).with_suffix(".py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert set(find_circle(tmp_path)) == {"retrievers.a", "runner.b", "runner.c"}
    (tmp_path / "runner" / "c.py").write_text("if TYPE_CHECKING:\n    from retrievers.a import x")
    assert find_circle(tmp_path) == []


def test_an_import_by_a_computed_name_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("NAME = '.'.join(('runner', 'b'))\n\ndef f():\n    return import_module(NAME)")
    assert list_imports(file, {}) == (set(), True)
