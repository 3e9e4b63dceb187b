"""Draw the pictures of the README from the program: `python -m release.pictures [FOLDER]` writes docs/images/.

The first shows the end of the tour in a terminal of 80 columns, the second a query with the hits of two retrievers side
by side, each on a light and on a dark background. The text that a picture shows is written beside it: a test compares
it with what the program says, without run ids and times. The second picture needs playwright and chromium.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

import runner
from retrievers import BM25, Dense, Hybrid, LSAEncoder

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

WIDTH, ROWS = 80, 6
"""The columns of the terminal, and the rows of the leaderboard that are shown."""

RETRIEVERS = {"bm25": ("retriever=bm25",), "hybrid": ("retriever=hybrid", "encoder=lsa")}
QUERY, HITS = "q23", 3
"""A query whose first hits differ between these retrievers, and how many of them are shown."""

CHANGING = re.compile(r"\b[0-9a-f]{8}\b|Use the cheapest: .*", re.DOTALL)
"""What the tour says that depends on the machine or differs each time: ids of runs, and what is cheapest."""

CHROMIUM = shutil.which("chromium")

LIGHT = TerminalTheme((255, 255, 255), (31, 35, 40), [(31, 35, 40)] * 8)
SVG = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="100%" height="100%"/></clipPath>
{lines}
</defs>
<rect width="100%" height="100%" rx="8" fill="BACKGROUND" stroke="#8b949e" stroke-opacity="0.4"/>
<g transform="translate(16, 16)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""
"""A terminal without a window around it, in the reader's own font."""


def main() -> None:
    """Write both pictures and the texts that they show."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory() as work:
        text = Text("\n").join(select_lines(Text.from_ansi(_run(work, "experiment=tour")).split()))
        (folder / "tour.txt").write_text(f"{text.plain}\n", encoding="utf-8")
        for name, theme in (("light", LIGHT), ("dark", DIMMED_MONOKAI)):
            (folder / f"tour_{name}.svg").write_text(draw_terminal(text, theme), encoding="utf-8")
        runs = [json.loads(_run(work, *words, "--json"))["run"] for words in RETRIEVERS.values()]
        _run(work, "compare", f"baseline={runs[0]}", f"candidate={runs[1]}", "gate=none", "output=.")
        lines = list_hits()
        (folder / "query.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        photograph_query(Path(work, "comparison.html").as_uri(), lines, folder)


def select_lines(output: Sequence[Text]) -> list[Text]:
    """Return the lines of the tour's output that are shown: the first rows of the leaderboard, and what it says."""
    plain = [line.plain for line in output]
    head, blank = plain.index("") + 1, Text("")
    said = plain.index("", head) + 1
    notes = next(number for number, line in enumerate(plain) if line.startswith("compare the best two"))
    last = len(plain) - plain[::-1].index("")
    return [*output[: head + 2 + ROWS], Text(" …"), blank, *output[said:notes], blank, *output[last:]]


def mask(text: str) -> str:
    """Return a text without what depends on the machine or differs each time."""
    return CHANGING.sub("*", text)


def draw_terminal(text: Text, theme: TerminalTheme) -> str:
    """Return an SVG of a text with its styles."""
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    console.print(text)
    template = SVG.replace("BACKGROUND", theme.background_color.hex)
    return console.export_svg(theme=theme, code_format=template, unique_id="tour")


def list_hits() -> list[str]:
    """Return the query, and for each retriever its score and its first hits with their grades."""
    data = runner.load_dataset("golden")
    titles = dict(zip(data.corpus.ids, data.corpus.titles, strict=True))
    parts = {"lexical": BM25(), "latent": Dense(LSAEncoder())}
    lines = [dict(zip(data.queries.ids, data.queries.texts, strict=True))[QUERY]]
    for name, retriever in (("bm25", BM25()), ("hybrid", Hybrid(parts))):
        result = runner.evaluate(retriever, data)
        score = result.per_query.set_index("query_id")["nDCG@10"][QUERY]
        hits = result.rankings.to_frame().query(f"query_id == '{QUERY}' and rank <= {HITS}").itertuples()
        grades = {hit.document_id: "unjudged" if pd.isna(hit.grade) else f"grade {hit.grade}" for hit in hits}
        lines += [name, f"nDCG@10 {score:.3f}", *(f"{titles[item]} | {grade}" for item, grade in grades.items())]
    return lines


def photograph_query(page: str, lines: Sequence[str], folder: Path) -> None:
    """Write the part of a comparison's page that shows the query; raises `ValueError` if it shows other lines."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM) as browser:
        for scheme in ("light", "dark"):
            view = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=scheme)
            view.goto(f"{page}#tab=queries&query={QUERY}")
            place = view.locator("#query")
            shown = " ".join(place.inner_text().split())
            missing = [part for line in lines for part in line.split(" | ") if part not in shown]
            if missing:
                raise ValueError(f"{page}: does not show {missing}")
            place.evaluate("place => place.scrollIntoView()")
            view.mouse.move(0, 0)
            view.screenshot(path=folder / f"query_{scheme}.png")


def _run(folder: str, *words: str) -> str:
    """Return what a command of the program prints in a terminal with colours."""
    environment = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "runner", *words]
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


if __name__ == "__main__":
    main()
