"""Where there is a summary, all files are there, whole, and of the same work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from runner.config.objects import ConfigError
from runner.datasets.saving import SUMMARY, beside, check_output, save


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_rows_are_lines_and_nothing_else_is_left(tmp_path: Path) -> None:
    output = tmp_path / "new" / "d.jsonl"
    check_output(output)
    assert not output.parent.exists()  # what is refused afterwards leaves no empty folder
    save(output, {".more.jsonl": [], "": [{"id": "a"}, {"id": "ü"}]}, {"n": 2})
    assert names(output.parent) == {"d.jsonl", "d.jsonl.more.jsonl", "d.jsonl.summary.json"}
    assert [orjson.loads(line) for line in output.read_bytes().splitlines()] == [{"id": "a"}, {"id": "ü"}]
    assert orjson.loads(beside(output, SUMMARY).read_bytes()) == {"n": 2}


def test_interrupted_work_leaves_neither_a_partial_file_nor_an_old_summary(tmp_path: Path) -> None:
    output = tmp_path / "d.jsonl"
    save(output, {"": [{"id": "old"}]}, {"n": 1})

    def rows() -> Iterator[dict[str, str]]:
        yield {"id": "new"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save(output, {"": rows()}, {"n": 1})
    assert names(tmp_path) == {"d.jsonl"}
    assert orjson.loads(output.read_bytes()) == {"id": "old"}


def test_a_place_that_cannot_be_written_is_refused_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for refused in (tmp_path, tmp_path / "file" / "d.jsonl", Path("/proc/none/d.jsonl")):
        with pytest.raises(ConfigError, match=f"output={refused}"):
            check_output(refused)
    with pytest.raises(ConfigError, match=r"output=.*cannot be written"):
        save(tmp_path / "file" / "d.jsonl", {"": []}, {})


@pytest.mark.parametrize("output", ["source.jsonl", "source", "docs/page.md", "docs/new.jsonl"])
def test_nothing_is_written_over_what_is_read_or_among_it(tmp_path: Path, output: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "source.jsonl").touch()
    with pytest.raises(ConfigError, match=r"output=.*would change the input"):
        check_output(tmp_path / output, tmp_path / "source.jsonl", tmp_path / "docs")
    check_output(tmp_path / "sources.jsonl", tmp_path / "source.jsonl", tmp_path / "docs")
