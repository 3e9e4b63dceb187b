"""`tracking=none` shows results and logs no runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def list_files(folder: Path) -> set[str]:
    """Return the files outside the store's cache."""
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in files if not name.startswith("mlruns/cache/")}


def test_an_evaluation_is_shown_and_leaves_no_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracking=none", "retriever=bm25"]) == 0
    printed = capsys.readouterr().out
    assert "nDCG@10" in printed
    assert printed.splitlines()[-1] == "not logged (tracking=none)"
    assert "run:" not in printed
    assert list_files(here) == set()


def test_a_sweep_writes_its_reports_to_sweep_output_and_leaves_no_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tracking=none", "-m", "retriever.k1=0.6,0.9", "sweep.output=out"]) == 0
    printed = capsys.readouterr().out
    assert "report: out/report.html" in printed
    assert "not logged (tracking=none)" in printed
    assert not {"run:", "compare the best two", "compare in MLflow"} & set(printed.split("\n"))
    assert not [line for line in printed.splitlines() if line.startswith(("run:", "compare "))]
    assert {name for name in list_files(here) if not name.startswith("out/")} == set()


@pytest.mark.parametrize("arguments", ["ui", "compare baseline=abcd candidate=abce"])
def test_verbs_that_need_runs_say_so(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments.split(), "tracking=none"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: tracking=none: no runs ")
    assert printed.count("\n") == 1
