"""The page's CSV is that of Python: no cell is a formula, and every cell is read back."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.pages import explorer
from runner.pages.cells import escape_formula, restore_text

SCRIPT = Path(explorer.__file__).parent / "static" / "export.js"
STARTS = ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "  @", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
TEXTS = [*(f"{start}cmd|' /C calc'!A0" for start in STARTS), "1-2", 'a "b", c', " plain", ""]
CALL = 'process.stdout.write(exportRows("csv", JSON.parse(process.argv[1]), JSON.parse(process.argv[2])));'


def export_csv(columns: list[dict[str, object]], rows: list[int]) -> list[list[str]]:
    """Return the cells of the CSV that the page's script writes."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; it runs the script of the page")
    words = [node, "-e", f"{SCRIPT.read_text(encoding='utf-8')}\n{CALL}", json.dumps(columns), json.dumps(rows)]
    done = subprocess.run(words, capture_output=True, check=True, timeout=60)
    return list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))


def test_texts_of_the_csv_of_the_page_are_escaped_as_in_python() -> None:
    heading, *rows = export_csv([{"name": "=query", "values": TEXTS}], list(range(len(TEXTS))))
    cells = [row[0] if row else "" for row in rows]
    assert heading == [" =query"]
    assert cells == [escape_formula(text) for text in TEXTS]
    assert [restore_text(cell) for cell in cells] == TEXTS
    assert all(cell.startswith(" ") for cell in cells[: len(STARTS)])


def test_numbers_of_the_csv_of_the_page_stay_numbers() -> None:
    columns: list[dict[str, object]] = [
        {"name": "x", "values": [-0.5, None, True]},
        {"name": "-y", "values": [3, 4, 5]},
    ]
    assert export_csv(columns, [2, 0, 1]) == [["x", " -y"], ["true", "5"], ["-0.5", "3"], ["", "4"]]
