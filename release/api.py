"""Write the reference of the Python API, a page of the site, from signatures and docstrings.

The source files are read and not imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

RETURNED = (
    ("RunResult", "runner/api/results.py"),
    ("Result", "runner/evaluation/result.py"),
    ("Measurements", "runner/evaluation/result.py"),
    ("ResultRankings", "runner/api/results.py"),
    ("SweepBoard", "runner/api/sweep.py"),
    ("SweepReport", "runner/api/sweep.py"),
    ("ResultComparison", "runner/api/comparison.py"),
)
"""The classes that functions return, each with its file."""

SHOWN = {"runner.Dataset": ("of",), "Result": ("of", "failures")}
"""The methods to show of classes that also have many methods that are not for callers."""
INTERNAL = ("plan",)
"""Methods of retrievers that only sweeps call."""
WITHOUT_FIELDS = ("ResultRankings", "SweepBoard")
"""Classes whose fields are not for callers."""

RESULTS = ("Result", "Measurements")
"""Classes that other classes of the page extend."""

INTRODUCTION = """\
# Python API

The functions of `runner`, what they return, and the classes of `retrievers`. [Python and notebooks](docs/python.md)
shows how to use them. Settings of a class that are left out have the defaults below, which are those of the
[configuration](docs/configuration.md)."""


def render_page() -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION]
    for title, names in list_chapters().items():
        parts.append(f"## {title}")
        for public, path in names:
            parts += [f"### `{public}`", *_render(public, _find(path, public.rpartition(".")[2]))]
    return "\n\n".join(parts) + "\n"


def list_chapters() -> dict[str, list[tuple[str, str]]]:
    """Return the public names by chapter, each with its file."""
    check = ("runner.testing.regression.assert_no_regression", "runner/testing/regression.py")
    functions = [*_list_public("runner"), check]
    return {"Functions": functions, "What they return": list(RETURNED), "Retrievers": _list_public("retrievers")}


def _list_public(package: str) -> list[tuple[str, str]]:
    """Return the names that a package loads on first use, each with its file."""
    values = {
        ast.unparse(node.targets[0]): node.value
        for node in _parse(f"{package}/__init__.py").body
        if isinstance(node, ast.Assign)
    }
    places: dict[str, str] = ast.literal_eval(values["_PLACES"])
    return [(f"{package}.{name}", f"{package}/{place.replace('.', '/')}.py") for name, place in places.items()]


def format_signature(function: ast.FunctionDef, name: str) -> str:
    """Return a signature, with a line for each parameter if it is long."""
    parameters = list(_iter_parameters(function.args))
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    line = f"{name}({', '.join(parameters)}){returns}"
    return line if len(line) <= 100 else "\n    ".join([f"{name}(", *(f"{p}," for p in parameters)]) + f"\n){returns}"


def _iter_parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yield the parameters of a function as formatters write them, without `self`."""
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + arguments.defaults
    for parameter, default in zip(names, defaults, strict=True):
        if parameter.arg not in ("self", "cls"):
            yield _format_parameter(parameter, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{_format_parameter(arguments.vararg) if arguments.vararg else ''}"
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _format_parameter(parameter, default)
    if arguments.kwarg:
        yield f"**{_format_parameter(arguments.kwarg)}"


def _format_parameter(parameter: ast.arg, default: ast.expr | None = None) -> str:
    return ast.unparse(parameter) + (f" = {ast.unparse(default)}" if default else "")


def _render(public: str, node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the blocks of a function or a class."""
    if isinstance(node, ast.FunctionDef):
        yield _fence(format_signature(node, public))
        yield _format_docstring(node)
        return
    yield _format_docstring(node)
    if bases := [name for base in node.bases if (name := ast.unparse(base)) in RESULTS]:
        yield f"It has all that `{bases[0]}` has."
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and not _is_private(part.target)]
    if fields and public not in WITHOUT_FIELDS:
        yield "\n".join(["| field | type | default |", "|---|---|---|", *map(_describe_field, fields)])
    for method in (part for part in node.body if isinstance(part, ast.FunctionDef)):
        if (
            method.name in SHOWN.get(public, (method.name,))
            and not method.name.startswith("_")
            and method.name not in INTERNAL
        ):
            is_value = any(ast.unparse(decorator).endswith("property") for decorator in method.decorator_list)
            name = f"{public.rpartition('.')[2]}.{method.name}"
            returns = f": {ast.unparse(method.returns)}" if method.returns else ""
            yield _fence(f"{name}{returns}" if is_value else format_signature(method, name))
            yield _format_docstring(method)


def _describe_field(field: ast.AnnAssign) -> str:
    """Return the row of a field; the default of a pydantic field is read from its call."""
    default = "required"
    if isinstance(field.value, ast.Call) and ast.unparse(field.value.func) in ("Field", "field"):
        given = {word.arg: ast.unparse(word.value) for word in field.value.keywords}
        if "default" in given or "default_factory" in given:
            default = given.get("default", f"{given.get('default_factory')}()")
    elif field.value is not None:
        default = ast.unparse(field.value)
    cells = (ast.unparse(field.target), ast.unparse(field.annotation), default)
    return f"| {' | '.join(_code(cell) if cell != 'required' else cell for cell in cells)} |"


def _is_private(target: ast.expr) -> bool:
    return ast.unparse(target).startswith("_")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _fence(text: str) -> str:
    return f"```py\n{text}\n```"


def _format_docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


@cache
def _parse(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def _find(path: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    nodes = (node for node in _parse(path).body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    return next(node for node in nodes if node.name == name)
