"""The code behind settings: a version of this program's modules, and a hash of all that a plug-in imports."""

from __future__ import annotations

import ast
import hashlib
import pkgutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

import retrievers
from retrievers.code import code_of, find_version, hash_code, modules_behind
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.rank_bm25 import RankBM25

Behind = Callable[..., set[str]]

NAMES = {"retrievers", *(module.name for module in pkgutil.walk_packages(retrievers.__path__, "retrievers."))}
"""All modules of this package."""


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Behind:
    """Return the modules behind `settings`, the source given, in a package of its own with modules a, b and c."""
    package = f"plugin_{uuid.uuid4().hex}"

    def ask(source: str, **others: str) -> set[str]:
        files = {"__init__": "", "a": "A = 1", "b": "B = 2", "c": "C = 3", **others, "settings": source}
        for name, text in files.items():
            path = tmp_path / package / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).replace("PACKAGE", package))
        monkeypatch.syspath_prepend(tmp_path)
        import_module(f"{package}.settings")
        found = modules_behind(f"{package}.settings") - {package, f"{package}.settings"}
        return {name.removeprefix(f"{package}.") for name in found}

    return ask


def test_a_module_of_which_only_a_constant_is_taken_is_behind(behind: Behind) -> None:
    assert behind("from PACKAGE.a import A\nfrom numpy import inf\nimport json") == {"a"}


def test_what_is_behind_a_module_behind_is_behind(behind: Behind) -> None:
    assert behind("from PACKAGE.a import A", a="import PACKAGE.b\nA = 1", b="def f():\n    from .c import C") == {
        *"abc"
    }


@pytest.mark.parametrize(
    "source",
    [
        "import PACKAGE.a, PACKAGE.b as other",
        "from PACKAGE import a, b",
        "import PACKAGE.a as one\nimport PACKAGE.b as other",
        "from . import a, b",
        "from .a import A\nfrom .b import (\n    B,\n)",
        "from PACKAGE import (  # one (of three)\n    a,  # and :)\n    b as other,\n)",
        "from PACKAGE import a, \\\n    b",
        "from .a import *\nfrom  .b  import*",
        "import json; import PACKAGE.a; from PACKAGE import b; import sys",
        "if True: import PACKAGE.a\ntry: from .b import B\nexcept ImportError: pass",
        "class Settings:\n    def index(self):\n        from PACKAGE.a import A\n        import PACKAGE.b\n",
    ],
)
def test_an_import_counts_however_it_is_written(behind: Behind, source: str) -> None:
    assert behind(source) == {"a", "b"}


@pytest.mark.parametrize("condition", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_an_import_only_for_type_checkers_does_not_count(behind: Behind, condition: str) -> None:
    source = f"""
        import typing
        from typing import TYPE_CHECKING
        if {condition}:
            from PACKAGE.a import A
        else:
            from PACKAGE.b import B
        if not TYPE_CHECKING:
            from PACKAGE.c import C
    """
    assert behind(source) == {"b", "c"}


def test_words_that_are_no_statement_do_no_harm(behind: Behind) -> None:
    source = '''
        """What one may do:

            from .... import beyond
            from .gone import nothing
            import .a, [b], no.such.module
            import
            important = "from PACKAGE import d"
        """
    '''
    assert behind(source) == set()


def test_what_is_imported_later_is_read_and_not_run(behind: Behind) -> None:
    source = "def f():\n    from PACKAGE.deep.er import D\n    import PACKAGE.a"
    found = behind(source, **{"deep.__init__": "1 / 0", "deep.er": "from ..b import B", "a": "not Python at all ("})
    assert found == {"deep", "deep.er", "a", "b"}


def test_libraries_are_not_behind_and_are_not_imported() -> None:
    program = (
        "import sys; from retrievers.encoders import sentence_transformer as s; from retrievers.code import code_of;"
        "print(*code_of(s.SentenceTransformerEncoder())); print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    code, loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {name.partition(".")[0] for name in code.split()} == {"retrievers"}
    assert loaded == "[]"


def test_a_module_without_a_source_is_all_that_is_behind_it() -> None:
    assert modules_behind("itertools") == {"itertools"}
    assert hash_code("itertools") == hash_code("no.such.module") == ""


def test_a_file_that_is_not_python_is_known_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"plugin_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_bytes(b"x = '\xff'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert hash_code(name) == hashlib.blake2b(b"x = '\xff'\n", digest_size=16).hexdigest()


def test_modules_of_this_package_are_followed_where_they_are_not_leaves() -> None:
    for name in NAMES:
        behind, todo = {name}, [name]
        while todo:
            for each in parsed(todo.pop()).intersection(NAMES) - behind:
                behind.add(each)
                todo.append(each)
        assert modules_behind(name, is_none) & NAMES == behind


def is_none(module: str) -> bool:
    """Return that a module is no leaf."""
    return False


class WithoutTypeChecking(ast.NodeTransformer):
    """Removes the statements that only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


@cache
def parsed(module: str) -> frozenset[str]:
    """Return all that may be a module in the import statements of one."""
    file = import_module(module).__file__
    assert file is not None
    named = {module.rpartition(".")[0]}
    for node in ast.walk(WithoutTypeChecking().visit(ast.parse(Path(file).read_bytes()))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(named)


def test_the_code_of_a_hybrid_is_that_of_its_parts_too() -> None:
    hybrid = Hybrid(parts={"a": BM25(), "b": RankBM25(analyzer=Analyzer())})
    modules = {"composed.fusion", "lexical.bm25", "lexical.rank_bm25", "lexical.analyzer"}
    assert code_of(hybrid) == {f"retrievers.{name}": find_version(f"retrievers.{name}") for name in modules}
    assert "retrievers.lexical.rank_bm25" not in code_of(BM25())


def test_a_plug_in_is_identified_by_its_code_and_the_versions_of_its_imports() -> None:
    class Mine(BM25):
        pass

    code = code_of(Mine())
    assert code[__name__] == hash_code(__name__)
    assert code["retrievers.lexical.bm25"] == find_version("retrievers.lexical.bm25")
    assert "retrievers.base" not in code, "a module of this program without results of its own"


def test_the_version_of_a_module_names_those_of_the_modules_that_work_for_it() -> None:
    assert str(find_version("retrievers.lexical.analyzer")) in str(find_version("retrievers.lexical.bm25f"))


@pytest.mark.parametrize(
    "source", ["from PACKAGE.deep import er", "import PACKAGE.deep.er as er", "from .deep.er import A"]
)
def test_the_package_of_an_imported_module_is_behind_too(behind: Behind, source: str) -> None:
    assert behind(source, **{"deep.__init__": "", "deep.er": "A = 1"}) == {"deep", "deep.er"}
