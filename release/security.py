"""Write the table of `docs/security.md`: what each class uses that a config or a record of a result can name.

It is made from the classes themselves:  python -m release.security docs/security.md
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from retrievers.access import Access, find_access

ROOT = Path(__file__).parent.parent
PACKAGES = ("retrievers", "runner")
HEADING = "## What each class uses\n"
OPENS = {None: "nothing", "services": "connections", "models": "pre-trained models, which may be downloaded"}


@cache
def list_names() -> tuple[str, ...]:
    """Return the dotted name of each class in the source of the program."""
    return tuple(
        f"{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}.{node.name}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if "templates" not in file.parts
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )


@cache
def list_classes() -> tuple[tuple[str, type], ...]:
    """Return the classes that a config can create, with their dotted names."""
    classes = ((name, _import_class(name)) for name in list_names() if _declares(name))
    return tuple((name, kind) for name, kind in classes if find_access(kind) is not None)


def _declares(name: str) -> bool:
    file = ROOT.joinpath(*name.split(".")[:-1]).with_suffix(".py")
    return "access: ClassVar[Access]" in file.read_text(encoding="utf-8")


def _import_class(name: str) -> type:
    module, _, attribute = name.rpartition(".")
    kind: type = getattr(importlib.import_module(module), attribute)
    return kind


def render_table() -> str:
    """Return the table, with a sentence on the other classes."""
    rows = (_render_row(name, find_access(kind) or Access()) for name, kind in list_classes())
    return "\n".join([
        "<!-- Generated from the classes: `make docs` -->",
        "",
        "All other classes of the program can be created by neither a config nor a record.",
        "",
        "| class | a record creates it | runs code of others | opens | files that its settings name |",
        "|---|---|---|---|---|",
        *rows,
        "",
        "<!-- End of the generated table -->",
        "",
    ])  # fmt: skip


def _render_row(name: str, access: Access) -> str:
    code = ", ".join(f"`{setting}`" for setting in access.code)
    cells = (f"`{name}`", "; ".join(_iter_conditions(access)) or "yes", code or "no", OPENS[access.needs])
    return f"| {' | '.join(cells)} | {', '.join(f'`{path}`' for path in access.paths) or 'none'} |"


def _iter_conditions(access: Access) -> Iterator[str]:
    if access.code:
        yield "with `plugins=[MODULE]`"
    if access.needs:
        bundled = "except the model that comes with the program" if access.is_bundled else ""
        yield " ".join(filter(None, (f"with `trust=[{access.needs}]`", bundled)))
    if access.secrets:
        yield f"`secrets` for {', '.join(f'`{name}`' for name in access.secrets)}"
    if access.paths:
        yield "`files` for paths outside the working folder"


def render_page(page: str) -> str:
    """Return the page with a current table."""
    before, heading, after = page.partition(HEADING)
    following = after.partition("\n## ")
    return f"{before}{heading}\n{render_table()}{''.join(following[1:])}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(render_page(page.read_text(encoding="utf-8")), encoding="utf-8")
