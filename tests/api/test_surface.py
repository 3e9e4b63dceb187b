"""The packages offer their names without loading anything, and work where a program is a script or a notebook."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import retrievers
import runner
from retrievers.code import modules_behind
from runner.pages import notebook_progress as notebook
from runner.pages.progress import Progress, Status

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
import retrievers, runner

if {"numpy", "pandas", "hydra", "mlflow"} & set(sys.modules):
    sys.exit("import runner is not light")
print("started")
from retrievers import BM25
data = runner.load_dataset("beir", path="DIR", split="test")
board = runner.run_sweep("retriever=bm25", "retriever.k1=0.6,0.9", dataset=data)
result = runner.evaluate(BM25(k1=0.9), data)
print(json.dumps([result.means["nDCG@10"], board.best.means["nDCG@10"]]))
"""


def test_a_script_without_a_guard_logs_in_another_process_and_runs_once(here: Path) -> None:
    (here / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "started"
    assert all(mean > 0 for mean in json.loads(second))


@pytest.mark.parametrize("package", [runner, retrievers])
def test_every_name_exists_and_has_a_type(package: ModuleType) -> None:
    assert package.__file__ is not None
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    typed = {
        alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(name for name in typed if name) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is getattr(sys.modules[str(typed[name])], name)
        assert name in dir(package)
    assert (Path(package.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_the_names_are_not_part_of_the_code_that_identifies_a_result() -> None:
    assert "runner.api.sweep" not in modules_behind("runner.evaluation.bench")
    assert "retrievers.vectors.dense" not in modules_behind("retrievers.lexical.bm25")


class Shown:
    """What a notebook shows: the content of each display, as it was replaced."""

    def __init__(self) -> None:
        self.pages: list[dict[str, str]] = []
        self.displays = 0

    def display(self, content: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.displays += 1
        self.pages.append(content)
        return SimpleNamespace(update=lambda content, raw: self.pages.append(content))


def test_a_notebook_has_a_bar_that_ends_with_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, now = Shown(), iter(range(1000))
    python = ModuleType("IPython")
    python.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]  # as in a notebook
    python.display = ModuleType("IPython.display")  # type: ignore[attr-defined]  # a module made here
    python.display.display = shown.display  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", python.display)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as Jupyter's kernel does
    with Progress(2, clock=lambda: float(next(now))) as progress:
        progress.advance(best="<b>")
        progress.advance()
    first, *updates, last = [page["text/html"] for page in shown.pages]
    assert '<progress value="0" max="2">' in first
    assert any('<progress value="1" max="2">' in page and "&lt;b&gt;" in page for page in updates)
    assert last.startswith("<div>done 2 of 2 in ") and last.endswith("best: &lt;b&gt;</div>"), "no empty output"
    assert capsys.readouterr().err == ""


def test_all_work_of_a_cell_shares_one_output_that_ends_with_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, shell = Shown(), SimpleNamespace(kernel=object(), execution_count=7)
    python = ModuleType("IPython")
    python.get_ipython = lambda: shell  # type: ignore[attr-defined]  # as in a notebook
    python.display = ModuleType("IPython.display")  # type: ignore[attr-defined]  # a module made here
    python.display.display = shown.display  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", python.display)
    for work in (Status("reading", clock=lambda: 0.0), Progress(1, clock=lambda: 0.0), Status("logging")):
        with work as progress:
            if isinstance(progress, Progress):
                progress.advance()
    assert shown.pages[-1]["text/plain"] == "done 1 of 1 in 0 s"
    assert shown.displays == 1
    shell.execution_count = 8
    with Status("reading", clock=lambda: 0.0):
        pass
    assert shown.pages[-1]["text/plain"] == "reading: 0 s"
    assert shown.displays == 2


def test_no_bar_is_shown_outside_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook.open_bar("work", 0, 2) is None
    terminal = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert notebook.open_bar("work", 0, 2) is None
