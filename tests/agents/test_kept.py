"""Artifacts are kept whole, one a line, and taken up again after whatever ended the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.kept import FILE, Kept, keeping
from runner.config.objects import ConfigError


def test_what_is_kept_is_there_again_in_full_precision(tmp_path: Path) -> None:
    with keeping(tmp_path / "new" / "folder") as kept:
        kept.add("c/t", "i", {"value": 1 / 3})
        kept.add("c/u", "j", {"value": 2})
    again = Kept(tmp_path / "new" / "folder")
    assert list(again.items()) == list(kept.items()) == [("c/t", {"value": 1 / 3}), ("c/u", {"value": 2})]
    assert again.has("c/t", "i")
    assert not again.has("c/t", "another")
    assert not again.has("c/v", "i")


def test_the_last_of_a_name_counts(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.add("c/t", "i", {"value": 1})
    kept.add("c/t", "j", {"value": 2})
    assert list(Kept(tmp_path).items()) == list(kept.items()) == [("c/t", {"value": 2})]


def test_what_is_forgotten_is_not_there_until_it_is_made_anew(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.add("c/t", "i", {"value": 1})
    kept.add("c/u", "i", {"value": 2})
    kept.forget("c/t")
    kept.forget("c/nothing")
    for each in (kept, Kept(tmp_path)):
        assert list(each) == ["c/u"]
        assert not each.has("c/t", "i")
    kept.add("c/t", "j", {"value": 3})
    assert list(kept.items()) == list(Kept(tmp_path).items()) == [("c/u", {"value": 2}), ("c/t", {"value": 3})]


def test_a_folder_is_one_process_s_at_a_time(tmp_path: Path) -> None:
    with keeping(tmp_path), pytest.raises(ConfigError, match="another command is writing there"), keeping(tmp_path):
        pass
    with keeping(tmp_path) as kept:
        assert not kept


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"), keeping(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(
    "torn",
    [
        b'{"name": "c/u", "inp',
        b"\xff\n",
        b"[1]\n",
        b'{"name": "c/u"}\n',
        b'{"name": [], "inputs": "", "made": {}}\n',
        b"\n",
    ],
)
def test_a_line_that_a_kill_left_torn_costs_no_other(tmp_path: Path, torn: bytes) -> None:
    Kept(tmp_path).add("c/t", "i", {"value": 1})
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    kept = Kept(tmp_path)
    assert list(kept) == ["c/t"]
    kept.add("c/v", "j", {"value": 3})
    assert list(kept.items()) == list(Kept(tmp_path).items()) == [("c/t", {"value": 1}), ("c/v", {"value": 3})]


def test_settled_it_has_only_what_is_wanted_in_that_order(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for name in "tuv":
        kept.add(name, "i", {"name": name})
    kept.settle(["v", "t"])
    kept.add("w", "i", {"name": "w"})
    assert list(kept) == list(Kept(tmp_path)) == ["v", "t", "w"]
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 3


def test_a_last_line_without_its_end_stays_a_line_of_its_own(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for name in "tu":
        kept.add(name, "i", {"name": name})
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-1])
    Kept(tmp_path).settle(["u", "t"])
    assert list(Kept(tmp_path).items()) == [("u", {"name": "u"}), ("t", {"name": "t"})]
