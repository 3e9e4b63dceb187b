"""The digest of a source file: its code alone, cached as long as the file stays the same."""

from __future__ import annotations

import os
import time
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from retrievers import source
from retrievers.source import ImportStatement, parse_source, read_source

CODE = """
def weigh(count: int, k1: float = 1.2) -> float:
    return count * (k1 + 1) / (count + k1)


class Ranker:
    depth = 10
"""

SAME = '''
# Copyright
"""What this module does."""
def weigh(
    count: int,  # how often a term occurs
    k1: float = 1.20,
) -> float:
    "The weight of a term."
    return (count * (k1 + 1)
            / (count + k1))
class Ranker:
    """Ranks."""

    depth = 1_0
    """How many documents."""
'''


def test_comments_docstrings_and_formatting_have_no_part_in_the_digest() -> None:
    assert parse_source(SAME.encode()) == parse_source(CODE.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k1 + 1", "k1 + 2"),
        ("k1 + 1", "k1 - 1"),
        ("* (k1 + 1)", "* k1 + 1"),
        ("= 1.2", "= 1"),
        ("depth", "length"),
        ("depth = 10", "depth = None"),
        ("depth = 10", "depth = '10'"),
        ("depth = 10", "depth: int = 10"),
        ("class Ranker", "class Ranker(object)"),
        ("    return", "    count += 1\n    return"),
    ],
)
def test_another_expression_is_another_digest(before: str, after: str) -> None:
    assert before in CODE
    assert parse_source(CODE.replace(before, after).encode()).digest != parse_source(CODE.encode()).digest


def test_imports_are_listed_wherever_they_stand() -> None:
    code = b"import a.b as c, d\ndef f():\n    from ..e import g, h as i\n    from . import j\n"
    assert set(parse_source(code).imports) == {
        ImportStatement("a.b"), ImportStatement("d"), ImportStatement("..e", ("g", "h")), ImportStatement(".", ("j",)),
    }  # fmt: skip


def test_an_invalid_escape_causes_no_warning() -> None:
    assert parse_source(b"x = '\\d'").digest == parse_source(b"x = '\\\\d'").digest


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a module that is old enough to be cached."""
    monkeypatch.setattr(source, "SETTLED_S", -1e9)
    file = tmp_path / "module.py"
    file.write_text(CODE + "from a import b\n")
    return file


def test_what_was_parsed_is_cached_where_python_caches_bytecode(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_source(module)
    assert Path(cache_from_source(str(module))).with_suffix(".code").is_file()
    monkeypatch.setattr(source, "parse_source", None)
    assert read_source(module).digest == first.digest
    assert [*read_source(module).imports] == [ImportStatement("a", ["b"])]


def test_a_changed_file_is_parsed_again(module: Path) -> None:
    before, status = read_source(module), module.stat()
    module.write_text(module.read_text().replace("10", "11"))
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert read_source(module).digest != before.digest


def test_a_damaged_cache_is_ignored(module: Path) -> None:
    first = read_source(module)
    Path(cache_from_source(str(module))).with_suffix(".code").write_bytes(b"[1, 2")
    assert read_source(module).digest == first.digest


def test_a_file_that_may_still_change_is_not_cached(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SETTLED_S", time.time())
    read_source(module)
    assert not Path(cache_from_source(str(module))).with_suffix(".code").exists()
