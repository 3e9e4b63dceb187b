"""Read Python source files: a digest of the code, and the imports in it, except those only for type checkers.

The digest is of the syntax tree without docstrings, so comments, docstrings and formatting do not affect it. Results
are cached beside Python's bytecode.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple, TypeGuard
from zipfile import BadZipFile, ZipFile

from retrievers.files import replace_file

SETTLED_S = 2.0
"""The age from which a file is cached. A younger file could change again within the resolution of its times."""

_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of a syntax tree that follow from others or do not affect the code."""


class ImportStatement(NamedTuple):
    """`from origin import names`, or `import origin`; a relative origin begins with dots."""

    origin: str
    names: Sequence[str] = ()


class SourceCode(NamedTuple):
    """A digest of the code in a file, 32 hexadecimal digits, and the import statements in it."""

    digest: str
    imports: Sequence[ImportStatement] = ()


def read_source(file: Path) -> SourceCode:
    """Return the digest and the imports of a file; invalid Python has a digest of its bytes, and no imports."""
    if file.suffix != ".py":
        return SourceCode(_digest(_content(file)))
    now, seal, cached = time.time(), _seal(file), _cache_file(file)
    if seal is None or cached is None:  # for example in a zip archive
        return parse_source(_content(file))
    with suppress(OSError, ValueError, TypeError):
        sealed, digest, imports = json.loads(cached.read_bytes())
        if sealed == seal:
            return SourceCode(digest, [ImportStatement(*statement) for statement in imports])
    source = parse_source(_content(file))
    if seal == _seal(file) and now - file.stat().st_ctime >= SETTLED_S:
        with suppress(OSError):
            cached.parent.mkdir(exist_ok=True)
            with replace_file(cached) as new:
                new.write_text(json.dumps([seal, *source]), encoding="utf-8")
    return source


def parse_source(content: bytes) -> SourceCode:
    """Return the digest and the imports of the content of a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes; Python warns when the module is imported
            tree = ast.parse(content)
        digest = _digest("\0".join(_describe(tree)).encode("utf-8", "surrogatepass"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SourceCode(_digest(content))
    return SourceCode(digest, tuple(_imports(tree)))


def _imports(tree: ast.AST) -> Iterator[ImportStatement]:
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        todo += node.orelse if _is_for_type_checkers(node) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (ImportStatement(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ImportStatement("." * node.level + (node.module or ""), tuple(alias.name for alias in node.names))


def _is_for_type_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    """Return whether a statement begins with `if TYPE_CHECKING:`, so that its first part never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _describe(node: ast.AST) -> Iterator[str]:
    """Yield the words of a syntax tree, without empty fields, which differ between versions of Python."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        if name in _IGNORED or value is None or value == []:
            continue
        yield name
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, ast.AST):
                yield repr(item)
            elif not _is_text(item):
                yield from _describe(item)
        yield "]"
    yield ")"


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is only a string, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _cache_file(file: Path) -> Path | None:
    """Return the path of the cached result of a file; None if Python does not cache bytecode."""
    try:
        return Path(cache_from_source(str(file))).with_suffix(".code")
    except NotImplementedError:
        return None


def _seal(file: Path) -> list[int] | None:
    """Return the status of a file and of this module, which parses it; None if it is not a file on disk."""
    try:
        return [*_status(file), *_own_status()]
    except OSError:
        return None


@cache
def _own_status() -> tuple[int, ...]:
    return _status(Path(__file__))


def _status(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _content(file: Path) -> bytes:
    """Return the content of a module's file, which may be in a zip archive; empty if it cannot be read."""
    with suppress(OSError):
        return file.read_bytes()
    for archive in file.parents:
        with suppress(OSError, BadZipFile, KeyError), ZipFile(archive) as opened:
            return opened.read(file.relative_to(archive).as_posix())
    return b""
