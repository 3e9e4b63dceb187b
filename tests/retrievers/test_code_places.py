from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrievers import code
from retrievers.code import hash_code, modules_behind

FILES = {
    "ours_retriever.py": "from namesake.inner import thing\nimport namesake.inner.part\n",
    "namesake/inner/thing.py": "x = 1\n",
    "namesake/inner/part.py": "",
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (code.hash_code, code.modules_behind, code._imports, code._read, code._is_library, code._has_distributions)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def place(folder: Path, packed: bool) -> Path:
    """Write the modules below a folder, or into a zip archive, and return where they are imported from."""
    if packed:
        with zipfile.ZipFile(folder / "modules.zip", "w") as archive:
            for name, content in FILES.items():
                archive.writestr(name, content)
        return folder / "modules.zip"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_modules_are_located_in_folders_and_in_zip_archives(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(place(tmp_path, packed)), *sys.path])
    assert {"ours_retriever"} <= modules_behind("ours_retriever")
    assert len(hash_code("ours_retriever")) == 32
    assert "ours_retriever" not in sys.modules


def test_a_nested_namespace_package_needs_no_parent_that_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(place(tmp_path, False)), *sys.path])
    behind = {"ours_retriever", "namesake.inner.thing", "namesake.inner.part"}
    assert modules_behind("ours_retriever") == behind


@pytest.mark.parametrize("mark", ["site-packages", "dist-info"])
def test_what_pip_installed_elsewhere_is_a_library(tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / ("site-packages" if mark == "site-packages" else "target")
    place(libraries, False)
    if mark == "dist-info":
        (libraries / "namesake-1.0.dist-info").mkdir()
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine_retriever.py").write_text("import ours_retriever\n")
    monkeypatch.setattr(sys, "path", [str(own), str(libraries), *sys.path])
    assert modules_behind("mine_retriever") == {"mine_retriever"}
