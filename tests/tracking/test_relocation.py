"""Artifacts that were moved without their database: `relocate` lists what is missing and records where it is now."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.evaluation.result import ResultError
from runner.tracking.fetching import Runs
from runner.tracking.relocation import replace_place
from runner.tracking.revisions import TESTED, find_installed_revision
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
from tests.tracking.test_contract import finished


def _log(tracking: Tracking, names: tuple[str, ...]) -> list[str]:
    store = choose_store(tracking)
    store.open()
    return [run.id for run in store.log([("", finished(name)) for name in names])]


@pytest.fixture(params=["sqlite", "postgresql"])
def moved(request: pytest.FixtureRequest, tracking: Tracking, tmp_path: Path) -> tuple[Tracking, Path, Path]:
    """Return a store with two runs, the folder of artifacts that it names, and the folder where one of them is."""
    if request.param == "postgresql":
        tracking = replace(tracking, uri=request.getfixturevalue("postgresql"), experiment=uuid.uuid4().hex)
    before, after = tmp_path / "here", tmp_path / "there"
    tracking = replace(tracking, artifacts=str(before))
    _, lost = _log(tracking, ("a", "b"))
    shutil.move(before, after)
    shutil.rmtree(after / lost)
    return tracking, before, after


def _relocate(capsys: pytest.CaptureFixture[str], tracking: Tracking, *words: str) -> dict[str, object]:
    quoted = [f"tracking.uri='{tracking.uri}'", f"tracking.experiment={tracking.experiment}"]
    assert main(["relocate", *quoted, *words, "--json"]) == 0
    content: dict[str, object] = orjson.loads(capsys.readouterr().out)
    return content


def _folders(tracking: Tracking) -> dict[str, Path | None]:
    return {run.name: run.folder and run.folder.parents[1] for run in Runs(tracking).list_ended()}


def test_missing_folders_are_listed_and_recorded_only_on_request(
    moved: tuple[Tracking, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tracking, before, after = moved
    run = next(run for run in Runs(tracking).list_ended() if run.name == "a")
    with pytest.raises(ResultError, match=rf"^{before}: the folder with the artifacts .*`python -m runner relocate "):
        Runs(tracking).record(run)
    missing = _relocate(capsys, tracking)["missing"]
    assert isinstance(missing, dict)
    assert missing[str(before)] == 2  # a server has the runs of other tests, too
    where = (f"relocate.before={before}", f"relocate.after={after}")
    shown = _relocate(capsys, tracking, *where)
    assert (shown["runs"], shown["absent"], shown["applied"]) == (1, 1, False)
    assert _folders(tracking) == {"a": before, "b": before}
    assert _relocate(capsys, tracking, *where, "relocate.apply=true")["applied"] is True
    assert _folders(tracking) == {"a": after, "b": before}
    run = next(run for run in Runs(tracking).list_ended() if run.name == "a")
    assert Runs(tracking).record(run).name == "a"
    later = choose_store(replace(tracking, artifacts=Tracking.artifacts))
    later.open()
    assert [run.folder and run.folder.parents[1] for run in later.log([("", finished("c"))])] == [after]


def test_a_database_of_a_revision_that_was_never_tested_is_relocated(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tracking = replace(tracking, artifacts=str(tmp_path / "here"))
    _log(tracking, ("a",))
    shutil.move(tmp_path / "here", tmp_path / "there")
    monkeypatch.delitem(TESTED, find_installed_revision())
    file = tracking.sqlite_file()
    assert file is not None
    with closing(sqlite3.connect(file)) as database:
        database.execute("update alembic_version set version_num = 'ffffffffffff'")
        database.commit()
    found = _relocate(capsys, tracking, f"relocate.after={tmp_path}/there", "relocate.apply=true")
    assert (found["before"], found["runs"]) == (str(tmp_path / "here"), 1)
    again = _relocate(capsys, tracking, f"relocate.after={tmp_path}/there", "relocate.apply=true")
    assert (again["runs"], again["missing"]) == (0, {}), "nothing is missing any more"
    with closing(sqlite3.connect(file)) as database:
        uris = database.execute("select artifact_uri from runs").fetchall()
        assert database.execute("select version_num from alembic_version").fetchall() == [("ffffffffffff",)]
    assert [uri.startswith((tmp_path / "there").as_uri()) for (uri,) in uris] == [True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tracking.uri=http://127.0.0.1:9"], "a server cannot change where artifacts are; stop it, and"),
        (["tracking.uri=sqlite:///none.db"], "none.db does not exist"),
        (["relocate.after=nowhere", "relocate.before=/old"], "relocate.after=nowhere: there is no such folder"),
        (["relocate.before=/old"], "relocate.after=FOLDER is missing"),
        (["tracking=none"], "tracking=none: no runs are stored"),
    ],
)
def test_what_cannot_be_relocated_is_refused_with_what_to_do(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["relocate", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("uri", "before", "after", "new"),
    [
        ("file:///old/a%20b/run/artifacts", "/old/a b", "/new", "file:///new/run/artifacts"),
        ("/old/run/artifacts", "file:///old", "s3://bucket/place/", "s3://bucket/place/run/artifacts"),
        ("s3://bucket/old/run/artifacts", "s3://bucket/old/", "s3://other", "s3://other/run/artifacts"),
        ("s3://bucket/older/run/artifacts", "s3://bucket/old", "s3://other", None),
        ("/older/run/artifacts", "/old", "/new", None),
        ("mlflow-artifacts:/1/run/artifacts", "/old", "/new", None),
    ],
)
def test_one_place_is_replaced_by_another(uri: str, before: str, after: str, new: str | None) -> None:
    assert replace_place(uri, before, after) == new
