"""A file is replaced whole, or stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrievers.files import replace_file, replace_texts


def test_a_file_is_replaced_only_when_all_is_written(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with replace_file(file) as new:
        new.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with pytest.raises(RuntimeError), replace_file(file) as new:
        new.write_text("hal")
        raise RuntimeError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_texts_are_replaced_one_by_one_and_each_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        replace_texts(tmp_path, {"a.txt": "neu\n", "b.txt": "half a character: \ud800"})
    assert {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()} == {"a.txt": "neu\n"}
