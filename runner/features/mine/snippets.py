"""Find sections of files: the code of a question, if its suite keeps it in a separate file.

A section is marked by a pair of comments (`# --8<-- [start:NAME]` as in mkdocs, `# [START NAME]`, `# region NAME`), or
it is the function or class of this name. Code is parsed, never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_MARKERS = (
    (r"--8<--\s*\[\s*start\s*:\s*{}\s*\]", r"--8<--\s*\[\s*end\s*:\s*{}\s*\]"),
    (r"\[\s*START\s+{}\s*\]", r"\[\s*END\s+{}\s*\]"),
    (r"[#/]\s*region\s+{}\s*$", r"[#/]\s*endregion\b"),
)
_ANY_MARKER = re.compile(r"--8<--\s*\[|\[\s*(?:START|END)\s+\S+\s*\]|[#/]\s*(?:end)?region\b")


def find_section(text: str, name: str) -> str | None:
    """Return the lines of a section without marker lines, None if there is no section of this name."""
    for opening, closing in _MARKERS:
        lines = _between(text.splitlines(), opening.format(re.escape(name)), closing.format(re.escape(name)))
        if lines is not None:
            return "\n".join(line for line in lines if not _ANY_MARKER.search(line)).strip("\n") or None
    return next(_definitions(text, name), None)


def _between(lines: list[str], opening: str, closing: str) -> list[str] | None:
    start = next((place for place, line in enumerate(lines) if re.search(opening, line)), None)
    if start is None:
        return None
    rest = lines[start + 1 :]
    end = next((place for place, line in enumerate(rest) if re.search(closing, line)), len(rest))
    return rest[:end]


def _definitions(text: str, name: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            yield ast.get_source_segment(text, node) or ""
