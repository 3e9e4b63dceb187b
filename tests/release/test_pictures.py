"""The pictures of the README show what the program prints today: `python -m release.pictures` redraws them."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from rich.text import Text

from release.pictures import IMAGES, ROOT, WIDTH, list_hits, mask, select_lines
from runner.__main__ import main
from tests.documentation import blocks, page


@pytest.mark.usefixtures("tracking")
def test_the_picture_of_the_tour_shows_what_it_prints(
    shared_store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert main(["experiment=tour", f"store.path={shared_store}", "tracking.background=false"]) == 0
    lines = select_lines([Text(line) for line in capsys.readouterr().out.splitlines()])
    shown = (IMAGES / "tour.txt").read_text(encoding="utf-8")
    assert mask("\n".join(line.plain for line in lines)).split() == mask(shown).split()
    for scheme in ("light", "dark"):
        picture = unescape((IMAGES / f"tour_{scheme}.svg").read_text(encoding="utf-8"))
        drawn = "".join(re.findall(r"<text .*?>(.*?)</text>", picture, re.DOTALL))
        assert "".join(drawn.split()) == "".join(shown.split()), scheme


def test_the_picture_of_a_query_shows_its_first_hits() -> None:
    assert (IMAGES / "query.txt").read_text(encoding="utf-8").splitlines() == list_hits()


def test_the_readme_shows_each_picture_on_both_backgrounds() -> None:
    shown = re.findall(r'(?:srcset|src)="([^"]+)"', page("README.md"))
    drawn = [path for path in IMAGES.iterdir() if re.search(r"_(light|dark)\.", path.name)]
    assert sorted(shown) == sorted(path.relative_to(ROOT).as_posix() for path in drawn)


def test_the_lines_of_output_in_the_readme_are_those_of_the_picture() -> None:
    (lines,) = blocks(page("README.md"), "text")
    shown = (IMAGES / "tour.txt").read_text(encoding="utf-8")
    assert [line for line in lines.splitlines() if line not in shown] == []


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(page("README.md"), "python")
    exec(code, {})
    assert "lighthouse-walk-gull-point" in capsys.readouterr().out
