"""The modules of the library import each other in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def list_modules(root: Path) -> dict[str, Path]:
    """Return the files of the library by the names of their modules."""
    files = sorted((root / "retrievers").rglob("*.py"))
    return {".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def iter_executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those within it, functions included, without what only a type checker reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from iter_executed(child)


def list_imports(file: Path, modules: Mapping[str, Path]) -> set[str]:
    """Return the modules that a file imports, at the top or in a function; of a package, the module that it names."""
    names = set[str]()
    for node in iter_executed(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            within = {f"{node.module}.{name.name}" for name in node.names} & modules.keys()
            names |= within or {node.module}
    return names & modules.keys()


def find_circle(root: Path) -> list[str]:
    """Return the modules of a circle of imports, [] if there is none."""
    modules = list_modules(root)
    graph = {name: list_imports(file, modules) for name, file in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_circle(ROOT) == []


@pytest.mark.parametrize("line", ["from retrievers import a", "def f():\n    import retrievers.a"])
def test_a_circle_through_a_function_is_noticed(line: str, tmp_path: Path) -> None:
    room = tmp_path / "retrievers"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "a.py").write_text("from retrievers.b import x")
    (room / "b.py").write_text("from retrievers.c import x")
    (room / "c.py").write_text(line)
    assert set(find_circle(tmp_path)) == {"retrievers.a", "retrievers.b", "retrievers.c"}
    (room / "c.py").write_text("if TYPE_CHECKING:\n    from retrievers.a import x")
    assert find_circle(tmp_path) == []
