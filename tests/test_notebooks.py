"""The notebooks of the documentation run from top to bottom, and so do the examples of the page about Python."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.documentation import DIR, blocks, commands, page, write

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs and a small dataset."""
    assert tracking.sqlite_file() is not None
    monkeypatch.chdir(tmp_path)
    write(tmp_path, DIR)
    return tmp_path


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last expression, which a notebook shows."""
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([*statements, last], []), "cell", "exec"), names)
        return None
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_runs_from_top_to_bottom(name: str) -> None:
    notebook, names, shown = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8")), dict[str, Any](), 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            value = run_cell("".join(cell["source"]), names)
            shown += "<table" in (getattr(value, "_repr_html_", str)() or "")
    assert shown > 0


def test_the_examples_of_the_page_run_and_the_command_line_resumes_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("docs/python.md")
    first, *others = blocks(text, "python")
    names: dict[str, Any] = {}
    exec(first, names)
    assert names["board"].best.means["nDCG@10"] == pytest.approx(max(names["board"].frame["nDCG@10"]), abs=0)
    assert (here / "report" / "report.html").is_file()
    (command,) = commands(text)
    capsys.readouterr()
    assert main(command.split()[3:]) == 0
    assert "all 3 combinations are already finished; nothing to do" in capsys.readouterr().err
    for block in others:
        exec(block, {})
