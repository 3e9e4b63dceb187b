"""Artifacts are stored whole, one per line, and read again after any interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.config.objects import ConfigError
from runner.features.traces.artifact_store import FILE, ArtifactStore, open_artifacts
from runner.features.traces.measures.records import Artifact
from tests.features.traces.documents import done


def artifact(value: float) -> Artifact:
    return done("t", reward=value)


def values(store: ArtifactStore) -> list[tuple[str, float]]:
    return [(name, artifact["outcome"]["reward"]) for name, artifact in store.items()]


def test_stored_artifacts_are_read_back_in_full_precision(tmp_path: Path) -> None:
    with open_artifacts(tmp_path / "new" / "folder") as kept:
        kept.add("c/t", "i", artifact(1 / 3))
        kept.add("c/u", "j", artifact(2))
    again = ArtifactStore(tmp_path / "new" / "folder")
    assert values(again) == values(kept) == [("c/t", 1 / 3), ("c/u", 2)]
    assert again.has("c/t", "i")
    assert not again.has("c/t", "another")
    assert not again.has("c/v", "i")


def test_the_last_of_a_name_counts(tmp_path: Path) -> None:
    kept = ArtifactStore(tmp_path)
    kept.add("c/t", "i", artifact(1))
    kept.add("c/t", "j", artifact(2))
    assert values(ArtifactStore(tmp_path)) == values(kept) == [("c/t", 2)]


def test_a_removed_artifact_is_absent_until_it_is_added_again(tmp_path: Path) -> None:
    kept = ArtifactStore(tmp_path)
    kept.add("c/t", "i", artifact(1))
    kept.add("c/u", "i", artifact(2))
    kept.remove("c/t")
    kept.remove("c/nothing")
    for each in (kept, ArtifactStore(tmp_path)):
        assert list(each) == ["c/u"]
        assert not each.has("c/t", "i")
    kept.add("c/t", "j", artifact(3))
    assert values(kept) == values(ArtifactStore(tmp_path)) == [("c/u", 2), ("c/t", 3)]


def test_a_folder_is_one_process_s_at_a_time(tmp_path: Path) -> None:
    with (
        open_artifacts(tmp_path),
        pytest.raises(ConfigError, match="another command is writing to this folder"),
        open_artifacts(tmp_path),
    ):
        pass
    with open_artifacts(tmp_path) as kept:
        assert not kept


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"), open_artifacts(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(
    "torn",
    [
        b'{"name": "c/u", "inp',
        b"\xff\n",
        b"[1]\n",
        b'{"name": "c/u"}\n',
        b'{"name": [], "inputs": "", "artifact": {}}\n',
        b"\n",
    ],
)
def test_a_line_that_a_kill_left_torn_costs_no_other(tmp_path: Path, torn: bytes) -> None:
    ArtifactStore(tmp_path).add("c/t", "i", artifact(1))
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    kept = ArtifactStore(tmp_path)
    assert list(kept) == ["c/t"]
    kept.add("c/v", "j", artifact(3))
    assert values(kept) == values(ArtifactStore(tmp_path)) == [("c/t", 1), ("c/v", 3)]


def test_settled_it_has_only_what_is_wanted_in_that_order(tmp_path: Path) -> None:
    kept = ArtifactStore(tmp_path)
    for name in "tuv":
        kept.add(name, "i", artifact(ord(name)))
    kept.compact(["v", "t"])
    kept.add("w", "i", artifact(1))
    assert list(kept) == list(ArtifactStore(tmp_path)) == ["v", "t", "w"]
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 3


def test_a_last_line_without_its_end_stays_a_line_of_its_own(tmp_path: Path) -> None:
    kept = ArtifactStore(tmp_path)
    for name in "tu":
        kept.add(name, "i", artifact(ord(name)))
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-1])
    ArtifactStore(tmp_path).compact(["u", "t"])
    assert values(ArtifactStore(tmp_path)) == [("u", ord("u")), ("t", ord("t"))]
