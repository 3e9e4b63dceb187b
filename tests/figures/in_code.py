"""List the figures that the code logs, from the literals in it that name them.

A name is read where figures are made: in functions, variables, parameters and dictionary keys that are called figures,
diagnostics, metrics or points. A part of a name that is computed is `{}`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDERS = ("runner", "retrievers")
_MAKERS = re.compile(r"(^|_)(figures|diagnostics|metrics|points)($|_)|^_grades$|^_no_result|^encoding$|^_embed$")
_OTHER_ROOMS = re.compile(r"/(report|pages|traces|comparison)/|judge/people|tracking/tables|qdrant_words")
"""Rooms whose figures are not logged, or are logged from other lists: `list_task_figures`."""


def list_names() -> dict[str, str]:
    """Return the names of figures in the code, each with the file that has it."""
    names: dict[str, str] = {}
    for folder in FOLDERS:
        for file in sorted((Path(__file__).parents[2] / folder).rglob("*.py")):
            place = str(file.relative_to(Path(__file__).parents[2]))
            if place != "runner/features/judge/report.py" and _OTHER_ROOMS.search(place):
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            names |= {name: place for part in _iter_makers(tree) for name in _iter_keys(part, _list_constants(tree))}
    return names


def _list_constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that names at the top of a module stand for."""
    return {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _iter_makers(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the parts of a module that make figures."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _MAKERS.search(node.name):
            yield node
        elif isinstance(node, ast.keyword) and node.arg and _MAKERS.search(node.arg):
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            roots = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
            if any(isinstance(root, ast.Name) and _MAKERS.search(root.id) for root in roots):
                yield node
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "diagnostics")


def _iter_keys(part: ast.AST, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of figures in a part: keys of dictionaries, and first elements of tuples."""
    for node in ast.walk(part):
        keys: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            keys = list(node.keys)
        elif isinstance(node, ast.DictComp):
            keys = [node.key]
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
            keys = node.elts[:1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            keys = [node.slice]
        yield from filter(None, (_read_name(key, constants) for key in keys))


def _read_name(key: ast.expr | None, constants: Mapping[str, str]) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    if isinstance(key, ast.JoinedStr):
        values = (part.value if isinstance(part, ast.Constant) else "{}" for part in key.values)
        return "".join(map(str, values))
    return constants.get(key.id, "") if isinstance(key, ast.Name) else ""
