"""A new project runs as it is: its experiment, its plug-in, its test, without a flag."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from retrievers import extras
from retrievers.extras import NAME
from runner.__main__ import main
from runner.commands import list_commands
from runner.commands.help import render_help
from runner.commands.new import TEMPLATES
from runner.config import objects
from tests.documentation import page


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new project, which is the working directory, with its plug-in as if it were installed."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "it's new"]) == 0
    folder = tmp_path / "it's new"
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "it_s_new", raising=False)
    for module in ("runner.config.objects", "runner.commands.help"):
        monkeypatch.setattr(f"{module}.list_plugins", lambda: {"it_s_new": "it_s_new"})
    return folder


def test_its_experiment_runs_and_shows_the_plug_in(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment=first", "tracking=none"]) == 0
    printed = capsys.readouterr().out
    assert "shortest most_words=20" in printed
    assert "bm25 k1=0.6" in printed


def test_its_test_passes(project: Path) -> None:
    (check,) = (
        v for k, v in runpy.run_path(str(project / "tests" / "test_plugin.py")).items() if k.startswith("test_")
    )
    check()


@pytest.mark.usefixtures("project")
def test_help_lists_its_choices_and_the_plug_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help", "dataset"]) == 0
    assert "dataset=own " in capsys.readouterr().out
    assert "Plug-ins\n  it_s_new" in render_help("evaluate", list_commands())


def test_its_workflow_and_its_configuration_are_valid(project: Path) -> None:
    files = [*project.rglob("*.yaml"), *project.rglob("*.yml")]
    assert len(files) == 4
    assert all(isinstance(yaml.safe_load(file.read_text(encoding="utf-8")), dict) for file in files)
    texts = [path.read_text(encoding="utf-8") for path in project.rglob("*") if path.is_file()]
    assert not re.search(r"\$[a-z]", "\n".join(texts)), "a name that was not filled in"


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ({"url": "file:///a/b", "dir_info": {"editable": True}}, ""),
        ({"url": "file:///a/r.whl", "archive_info": {}}, ""),
        ({"url": "https://a.b/c", "vcs_info": {"vcs": "git", "commit_id": "1f"}}, f"{NAME} @ git+https://a.b/c@1f"),
        ({}, NAME),
    ],
)
def test_its_workflow_installs_what_another_machine_can_install(
    record: dict[str, object], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "_read_record", lambda: (record, "pip"))
    monkeypatch.chdir(tmp_path)
    assert main(["new", "own"]) == 0
    workflow = yaml.safe_load((tmp_path / "own" / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["env"] == {"RETRIEVAL_INSTALL": source}
    assert workflow["jobs"]["run"]["steps"][2]["run"].startswith(
        'python -m pip install --no-compile "${RETRIEVAL_INSTALL:?'
    )


def test_coding_agents_read_the_same_page_in_a_project_as_in_the_repository() -> None:
    pages = (page("AGENTS.md"), (TEMPLATES / "project" / "AGENTS.md").read_text(encoding="utf-8"))
    repository, project = (text.partition("## Run")[2] for text in pages)
    assert repository == project != ""


@pytest.mark.usefixtures("project")
def test_without_its_entry_point_the_plug_in_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(objects, "list_plugins", dict)
    assert main(["dataset=own", "retriever=shortest", "tracking=none"]) == 2
    assert "'plugins=[it_s_new]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("taken", "error: folder=taken: already exists and is not an empty folder; choose another name"),
        ("1st", "error: folder=1st: the name should start with a letter"),
        ("s3://bucket/x", "error: folder=s3://bucket/x: remote addresses are not supported"),
    ],
)
def test_a_folder_that_cannot_be_a_project_is_refused(
    folder: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    assert main(["new", folder]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(message)
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[tool.retrieval-runner]\nconf = "none"\n', "tool.retrieval-runner.conf=none: no such folder"),
        ("[tool.retrieval-runner]\nconf = \n", "cannot be read"),
    ],
)
def test_a_project_file_with_a_mistake_is_one_line(
    content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(content)
    assert main(["retriever=bm25", "tracking=none"]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_project_file_of_another_program_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nbroken = \n")
    assert main(["retriever=bm25", "tracking=none"]) == 0
