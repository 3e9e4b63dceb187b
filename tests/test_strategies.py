"""The strategies of Hypothesis are in `tests/strategies`; a test file defines none at module level."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tests" / "strategies"
STRATEGIES = ("hypothesis.strategies.", "hypothesis.extra.", "tests.strategies.")
SETTINGS = "tests.strategies.settings."


def list_imports(module: ast.Module) -> dict[str, str]:
    """Return the full name of each imported name."""
    names = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
            names |= {first: first for alias in node.names if (first := alias.name.partition(".")[0])}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def resolve(node: ast.AST, imports: Mapping[str, str]) -> str:
    """Return the full name of what an expression names, or nothing if it is not imported."""
    if isinstance(node, ast.Attribute):
        return f"{resolve(node.value, imports)}.{node.attr}"
    return imports.get(node.id, "") if isinstance(node, ast.Name) else ""


def list_names(node: ast.AST, imports: Mapping[str, str]) -> list[str]:
    """Return the full names of all that an expression names."""
    return [resolve(part, imports) for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]


def makes_strategy(function: ast.FunctionDef, imports: Mapping[str, str]) -> bool:
    """Return whether a function is composite or returns a strategy."""
    decorators = {name for each in function.decorator_list for name in list_names(each, imports)}
    results = list_names(function.returns, imports) if function.returns else []
    return "hypothesis.strategies.composite" in decorators or "hypothesis.strategies.SearchStrategy" in results


def iter_statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements outside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            yield from iter_statements(child)


def find_strategies(source: str) -> Iterator[str]:
    """Yield the line and the name of each strategy that a file defines at module level."""
    module = ast.parse(source)
    imports = list_imports(module)
    for statement in iter_statements(module):
        if isinstance(statement, ast.FunctionDef):
            if makes_strategy(statement, imports):
                yield f"{statement.lineno} {statement.name}"
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            names = list_names(statement.value, imports)
            if any(name.startswith(STRATEGIES) and not name.startswith(SETTINGS) for name in names):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                yield f"{statement.lineno} {', '.join(map(ast.unparse, targets))}"


def test_no_test_file_defines_a_strategy_at_module_level() -> None:
    files = [path for path in sorted((ROOT / "tests").rglob("*.py")) if PACKAGE not in path.parents]
    assert len(files) > 100
    misplaced = [
        f"{path.relative_to(ROOT)}:{place}: move it to a module of tests/strategies, or into the @given of its test"
        for path in files
        for place in find_strategies(path.read_text(encoding="utf-8"))
    ]
    assert not misplaced, "\n".join(misplaced)


@pytest.mark.parametrize(
    "source",
    [
        "NAMES = st.text()",
        "NAMES: object = [st.none() | st.text()]",
        "if True:\n    NAMES = st.text()",
        "class Names:\n    names = st.text()",
        "@st.composite\ndef draw_names(draw): ...",
        "def names() -> st.SearchStrategy[str]: ...",
        "from hypothesis.strategies import SearchStrategy\ndef names() -> SearchStrategy[str] | None: ...",
        "from hypothesis.strategies import composite\n@composite\ndef names(draw): ...",
        "import hypothesis.strategies\nNAMES = hypothesis.strategies.text()",
        "import hypothesis.strategies as strategies\nNAMES = strategies.text()",
        "from hypothesis.extra.numpy import arrays\nTABLES = arrays(int, 3)",
        "from tests.strategies.json_values import json_values\nJSON = json_values()",
        "from tests.strategies import texts\nNAMES = texts.WORDS.filter(bool)",
    ],
)
def test_a_strategy_at_module_level_is_detected(source: str) -> None:
    assert len([*find_strategies("from hypothesis import strategies as st\n" + source)]) == 1


@pytest.mark.parametrize(
    "source",
    [
        "@given(st.text())\ndef test_names(name: str) -> None: ...",
        "def check(data: st.DataObject) -> None:\n    names = st.text()",
        "from tests.strategies.settings import at_most\nFEW = settings(max_examples=at_most(9))",
        "import runner.strategies as other\nNAMES = other.text()",
    ],
)
def test_claims_settings_and_other_modules_are_left_alone(source: str) -> None:
    assert not [*find_strategies("from hypothesis import given, settings, strategies as st\n" + source)]
