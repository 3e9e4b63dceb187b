"""Find the names that Python code imports, calls and derives from. Code is parsed, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.datasets.base import DatasetError


@dataclass(frozen=True)
class Code:
    """The full names that a file imports, each with its local name, and the names that it calls or derives from."""

    imports: Mapping[str, str]
    used: frozenset[str]

    def uses(self, name: str) -> bool:
        """Return whether the file calls an imported name, given in full, or derives a class from it."""
        return self.imports[name] in self.used


def parse_code(text: str, place: str) -> Code:
    """Parse Python code; raises `DatasetError`, whose message starts with the place."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise DatasetError(f"{place}{line}: invalid Python ({getattr(error, 'msg', error)})") from None
    return Code(dict(_iter_imports(tree)), frozenset(_iter_uses(tree)))


def code_from_facts(facts: Mapping[str, Any], place: str) -> Code:
    """Return the code described by recorded facts: `imports`, `called_names`, `base_classes`; raises `DatasetError`."""
    try:
        imports = {
            f"{entry['module']}.{entry['name']}" if entry["kind"] == "from" else entry["module"]: entry.get("asname")
            or entry.get("name")
            or entry["module"]
            for entry in facts["imports"]
            if not entry.get("level") and entry.get("name") != "*"
        }
        return Code(imports, frozenset((*facts.get("called_names", ()), *facts.get("base_classes", ()))))
    except (AttributeError, KeyError, TypeError) as error:
        raise DatasetError(f"{place}: expected the imports of a file ({type(error).__name__}: {error})") from None


def _iter_imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the absolute imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            origin = f"{node.module}."
        elif isinstance(node, ast.Import):
            origin = ""
        else:
            continue
        yield from ((f"{origin}{name.name}", name.asname or name.name) for name in node.names if name.name != "*")


def _iter_uses(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are called or derived from; `a.b.C` is yielded as such and as `C`."""
    for node in ast.walk(tree):
        called: Sequence[ast.expr] = [node.func] if isinstance(node, ast.Call) else ()
        for expression in node.bases if isinstance(node, ast.ClassDef) else called:
            name = ast.unparse(expression)
            yield name
            yield name.rpartition(".")[2]
