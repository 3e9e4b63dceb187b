"""A project that was moved or copied uses its own artifacts; what cannot be logged is known before the work."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from runner.config.objects import ConfigError
from runner.tracking.background import BackgroundTracker
from runner.tracking.fetching import Runs
from runner.tracking.logged import LoggedRun
from runner.tracking.record import Finished
from runner.tracking.revisions import TESTED, _list_revisions, check_file, find_installed_revision, read_revision
from runner.tracking.settings import Tracking
from tests.pages.factory import result


def _log(tracking: Tracking, name: str) -> LoggedRun:
    with BackgroundTracker(replace(tracking, background=False)) as tracker:
        return tracker.log_at_once(Finished(result(name), {}))


def _at(folder: Path) -> Tracking:
    return Tracking(uri=f"sqlite:///{folder}/mlruns/mlflow.db")


@pytest.fixture
def project(migrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project with one run, in its own artifacts."""
    folder = tmp_path / "first"
    (folder / "mlruns").mkdir(parents=True)
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")
    monkeypatch.chdir(folder)
    run = _log(_at(folder), "before")
    assert run.folder == folder / "mlruns" / "artifacts" / run.id / "artifacts"
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_a_moved_or_copied_project_reads_and_writes_its_own_artifacts(
    move: object, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "second"
    before = sorted(path.name for path in (project / "mlruns" / "artifacts").iterdir())
    move(project, other)  # type: ignore[operator]  # one of two functions
    monkeypatch.chdir(other)
    own = other / "mlruns" / "artifacts"
    (run,) = Runs(_at(other)).list_ended()  # without writing
    assert run.folder == own / run.id / "artifacts"
    assert Runs(_at(other)).record(run).name == "before"
    assert not capsys.readouterr().err
    later = _log(_at(other), "after")
    assert later.folder == own / later.id / "artifacts"
    assert f"{other}/mlruns: moved or copied from {project}/mlruns; the artifacts" in capsys.readouterr().err
    with closing(sqlite3.connect(other / "mlruns" / "mlflow.db")) as database:
        uris = {uri for (uri,) in database.execute("select artifact_uri from runs")}
    assert uris == {(own / name / "artifacts").as_uri() for name in (run.id, later.id)}
    _log(_at(other), "again")
    assert not capsys.readouterr().err
    if project.exists():
        assert sorted(path.name for path in (project / "mlruns" / "artifacts").iterdir()) == before


def test_a_moved_database_of_an_untested_revision_is_relocated(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(TESTED, find_installed_revision())
    other = tmp_path / "second"
    shutil.move(project, other)
    (run,) = Runs(_at(other)).list_ended()  # without writing
    assert run.folder == other / "mlruns" / "artifacts" / run.id / "artifacts"
    assert Runs(_at(other)).record(run).name == "before"
    monkeypatch.chdir(other)
    _log(_at(other), "after")
    said = capsys.readouterr().err
    assert f"{other}/mlruns: moved or copied from {project}/mlruns; the artifacts" in said
    assert "logged through MLflow's client" in said
    with closing(sqlite3.connect(other / "mlruns" / "mlflow.db")) as database:
        uris = [uri for (uri,) in database.execute("select artifact_uri from runs")]
    assert len(uris) == 2
    assert all(uri.startswith((other / "mlruns" / "artifacts").as_uri()) for uri in uris)
    assert not project.exists()


def test_artifacts_go_where_the_settings_say_also_in_an_existing_experiment(project: Path, tmp_path: Path) -> None:
    run = _log(replace(_at(project), artifacts=str(tmp_path / "elsewhere")), "other")
    assert run.folder == tmp_path / "elsewhere" / run.id / "artifacts"
    assert (run.folder / "result.json").is_file()
    assert {run.name: run.folder for run in Runs(_at(project)).list_ended()}["other"] == run.folder
    assert _log(_at(project), "third").folder.parents[1] == project / "mlruns" / "artifacts"  # type: ignore[union-attr]  # is set


def _change(project: Path, statement: str) -> None:
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        database.execute(statement)
        database.commit()


def test_a_deleted_experiment_is_refused_before_the_work(project: Path) -> None:
    _change(project, "update experiments set lifecycle_stage = 'deleted' where name = 'retrieval'")
    with pytest.raises(ConfigError, match=r"^tracking\.experiment=retrieval: the experiment was deleted; restore it"):
        BackgroundTracker(_at(project))


def test_a_database_of_an_older_mlflow_is_refused_before_the_work_and_can_be_read(project: Path) -> None:
    _, followed = _list_revisions()
    older = min(followed - TESTED.keys())
    _change(project, f"update alembic_version set version_num = '{older}'")
    database = project / "mlruns" / "mlflow.db"
    before = database.read_bytes()
    with pytest.raises(ConfigError, match=rf"the tables of an older MLflow \(revision {older}\); writing to it would"):
        BackgroundTracker(_at(project))
    assert [run.name for run in Runs(_at(project)).list_ended()] == ["before"]
    assert database.read_bytes() == before


def test_a_postgresql_database_of_an_older_mlflow_is_read_and_never_migrated(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(uri: str, statement: str) -> list[tuple[str, ...]]:
        engine = create_engine(uri, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            result = connection.execute(text(statement))
            rows = [tuple(row) for row in result] if result.returns_rows else []
        engine.dispose()
        return rows

    monkeypatch.chdir(tmp_path)
    name = f"older_{uuid.uuid4().hex}"
    execute(postgresql, f"create database {name}")
    tracking = Tracking(uri=f"{postgresql.rpartition('/')[0]}/{name}", artifacts=str(tmp_path / "artifacts"))
    tables = (
        "select table_name, column_name from information_schema.columns where table_schema = 'public' order by 1, 2"
    )
    assert Runs(tracking).list_ended() == []
    assert execute(tracking.uri, tables) == []  # reading creates nothing
    _log(tracking, "before")
    _, followed = _list_revisions()
    older = min(followed - TESTED.keys())
    execute(tracking.uri, f"update alembic_version set version_num = '{older}'")
    before = execute(tracking.uri, tables)
    assert [run.name for run in Runs(tracking).list_ended()] == ["before"]
    with pytest.raises(ConfigError, match=rf"the tables of an older MLflow \(revision {older}\); writing to it would"):
        BackgroundTracker(tracking)
    assert execute(tracking.uri, tables) == before
    assert execute(tracking.uri, "select version_num from alembic_version") == [(older,)]


def test_rows_are_written_to_the_tested_tables_of_another_mlflow(project: Path) -> None:
    another = min(TESTED.keys() - {find_installed_revision()})
    _change(project, f"update alembic_version set version_num = '{another}'")
    assert _log(_at(project), "after").folder is not None
    assert [run.name for run in Runs(_at(project)).list_ended()] == ["after", "before"]
    assert read_revision(project / "mlruns" / "mlflow.db") == another
    with pytest.raises(ConfigError, match=rf"MLflow \(revision {another}\)"):
        check_file(_at(project))


def test_a_database_of_an_unknown_mlflow_is_refused_before_the_work(project: Path) -> None:
    _change(project, "update alembic_version set version_num = 'ffffffffffff'")
    with pytest.raises(ConfigError, match=r"another MLflow \(revision f+\), which the installed one does not"):
        BackgroundTracker(_at(project))


def test_a_database_that_cannot_be_written_is_refused_before_the_work(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def open_read_only(file: object, **options: object) -> sqlite3.Connection:
        return connect(f"file:{file}?mode=ro", uri=True, **options)  # type: ignore[call-overload,no-any-return]  # any

    monkeypatch.setattr(sqlite3, "connect", open_read_only)
    with pytest.raises(ConfigError, match=r"cannot be written \(attempt to write a readonly database\); choose"):
        BackgroundTracker(_at(project))
    assert [run.name for run in Runs(_at(project)).list_ended()] == ["before"]
