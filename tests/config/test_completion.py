from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.__main__ import main


def complete(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COMP_LINE", line)
    assert main(["-sc", "query=bash"]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "choice"),
    [
        ("runner retriever=bm2", "retriever=bm25"),
        ("runner compare statistics.te", "statistics.test="),
        ("python -m runner compare statistics.te", "statistics.test="),
        (".venv/bin/runner synthesize generator=", "generator=deterministic"),
        ("runner synthesize count=5 generator=d", "generator=deterministic"),
        ("runner comp", "compare"),
        ("runner ", "inspect"),
        ("runner ", "chunking="),
    ],
)
def test_verbs_and_their_settings_are_completed(
    line: str, choice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choice in complete(line, monkeypatch, capsys)


def test_a_setting_of_another_verb_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete("runner compare sweep.", monkeypatch, capsys) == []
    assert complete("runner compare comp", monkeypatch, capsys) == ["compare."]


def test_install_bash_prints_the_completion_of_runner(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-sc", "install=bash"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("complete -o nospace -o default -F hydra_bash_completion runner")


def test_the_installed_command_imports_plugins_from_the_working_directory(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "command.py"
    command.parent.mkdir()
    command.write_text("import sys\nfrom runner.__main__ import main\nsys.exit(main())\n")
    (tmp_path / "shelf.py").write_text("raise RuntimeError('the plug-in was imported')\n")
    words = ["retriever=bm25", "retriever._target_=shelf.Shelf", "plugins=[shelf]"]
    done = subprocess.run([sys.executable, command, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "the plug-in was imported" in done.stderr
