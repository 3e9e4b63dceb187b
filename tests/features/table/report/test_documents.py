"""The table of a paper as LaTeX that compiles, as Markdown, and as CSV."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runner.features.table.paper_table import PaperTable, build_paper_table
from runner.features.table.report.documents import (
    across_latex,
    describe_reproduction,
    document_latex,
    list_commands,
    table_csv,
    table_json,
    table_latex,
    table_markdown,
)
from runner.features.table.report.sentences import describe_table
from runner.features.table.report.tables import systems_table
from runner.pages.latex import escape_latex
from tests.features.table.test_paper_table import make_results

UNRULY = r"""a_b & 100% #1 {x} $y$ ~^\ "q" <a|b> [1] * -- `` ?` é ł 中 – α"""
PDFLATEX = shutil.which("pdflatex")


@pytest.fixture(scope="module")
def table() -> PaperTable:
    """Return six systems on six datasets, one of them with a name that LaTeX would not take as it is."""
    return build_paper_table(make_results(), names={"k1=2": UNRULY}, marks="signs")


@pytest.fixture(scope="module")
def lettered() -> PaperTable:
    """Return the same systems with letters for all their pairs, which is the default without a baseline."""
    return build_paper_table(make_results(), names={"k1=2": UNRULY})


@pytest.mark.skipif(PDFLATEX is None, reason="needs pdflatex: apt-get install texlive-latex-recommended")
@pytest.mark.parametrize("measures", [1, 2])
def test_six_systems_on_six_datasets_compile(tmp_path: Path, lettered: PaperTable, measures: int) -> None:
    table = lettered
    if measures == 2:
        table = build_paper_table(make_results(), ["nDCG@10", "RR"], "k1=0", names={"k1=2": UNRULY})
    (tmp_path / "table.tex").write_text(table_latex(table, "Make it again."), encoding="utf-8")
    (tmp_path / "across.tex").write_text(across_latex(table), encoding="utf-8")
    (tmp_path / "document.tex").write_text(document_latex(["table.tex", "across.tex"]), encoding="utf-8")
    command = [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "document.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "document.pdf").read_bytes().startswith(b"%PDF")
    assert "Missing character" not in (tmp_path / "document.log").read_text(encoding="latin-1")


def test_latex_has_a_row_per_system_with_the_best_in_bold_and_marks(table: PaperTable) -> None:
    body = table_latex(table, "paper").partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    for row, cells in zip(rows, table.cells, strict=True):
        texts = row.removesuffix(r" \\").rpartition("中")[2].split(" & ")[-6:]
        for text, cell in zip(texts, cells, strict=True):
            assert cell is not None
            assert text.startswith(rf"\textbf{{{cell.mean:.3f}}}" if cell.is_best else f"{cell.mean:.3f}")
            assert text.endswith("$^{-}$" if cell.mark else text[-1])
            assert ("$" in text) == bool(cell.mark)


def test_braces_and_environments_are_balanced(table: PaperTable) -> None:
    lines = [*table_latex(table, "x").splitlines(), *across_latex(table).splitlines()]
    text = re.sub(r"\\[{}]", "", "\n".join(line for line in lines if line[:1] != "%"))
    assert text.count("{") == text.count("}")
    assert sorted(re.findall(r"\\begin\{(.+?)\}", text)) == sorted(re.findall(r"\\end\{(.+?)\}", text))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b & c", r"a\_b \& c"),
        ("50% #1", r"50\% \#1"),
        ("\\{}$^~", r"\textbackslash{}\{\}\$\textasciicircum{}\textasciitilde{}"),
        ("[x] *y", "{[}x{]} {*}y"),
        ("a -- b", "a {-}{-} b"),
        ("a\n\tb", "a b"),
        ("é Å ç", r"\'{e} \r{A} \c{c}"),
        ("β\u2013", r"$\beta$--"),
        ("中\x00", "U+4E2DU+0000"),
    ],
)
def test_what_latex_takes_for_markup_is_escaped(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_markdown_shows_the_same_cells_and_every_difference(table: PaperTable) -> None:
    text = table_markdown(table, "paper")
    for cell in table.list_cells():
        shown = f"**{cell.mean:.3f}**" if cell.is_best else f"{cell.mean:.3f}{'⁻' if cell.mark else ''}"
        assert f"| {shown} |" in text
        assert (f"| {cell.id} | " in text) == (cell.system != cell.reference)
    assert "k1=3" in text
    assert text.endswith("\n\npaper A1 is the first number of the first row.\n")


def test_every_output_has_the_letters_of_all_pairs(lettered: PaperTable) -> None:
    assert max(len(cell.letters) for cell in lettered.list_cells()) > 1
    latex, markdown = table_latex(lettered, "paper"), table_markdown(lettered, "paper")
    shown = systems_table(lettered).texts()
    csv_rows = list(csv.DictReader(io.StringIO(table_csv(lettered))))
    for row, (system, cells) in enumerate(zip(lettered.systems, lettered.cells, strict=True)):
        for column, cell in enumerate(cells):
            assert cell is not None
            mean, letters = f"{cell.mean:.3f}", cell.letters
            best = (rf"\textbf{{{mean}}}", f"**{mean}**", f"{mean}*") if cell.is_best else (mean, mean, f"{mean} ")
            assert rf"{best[0]}$^{{\mathrm{{{letters}}}}}$" in latex
            assert f"| {best[1]}<sup>{letters}</sup> |" in markdown
            assert shown[row][column + 1] == f"{best[2]} {letters}"
            assert csv_rows[row * len(cells) + column]["letters"] == letters
        assert shown[row][0] == system
    text = " ".join(describe_table(lettered))
    assert (
        "Letters: two systems of a column differ significantly if and only if they share no letter (differences paired "
        "by query; p by random flips of their signs, with the step-down max-T correction for all pairs of systems in "
        "the column; p < 0.05)."
    ) in text
    assert escape_latex(text) in latex


def test_csv_has_a_row_per_cell_with_every_figure(table: PaperTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table_csv(table))))
    assert [row["id"] for row in rows] == [cell.id for cell in table.list_cells()]
    assert [float(row["mean"]) for row in rows] == [cell.mean for cell in table.list_cells()]
    assert [row["mark"].strip() for row in rows] == [cell.mark for cell in table.list_cells()]  # a space before "-"


def test_each_cell_has_its_command_and_its_record(table: PaperTable) -> None:
    records = {place: f"{place[0]}_{place[1]}" for place in table.results}
    content = table_json(table, {cell.id: f"reproduce {cell.id}" for cell in table.list_cells()}, records)
    cells = {cell["id"]: cell for cell in content["cells"]}
    assert len(cells) == 36
    assert cells["B3"]["command"] == "reproduce B3"
    assert cells["B3"]["record"] == "2_1"
    assert cells["B3"]["dataset_fingerprint"] == table.results[2, 1].dataset.fingerprint
    assert cells["A4"]["p"] is None


def test_a_cell_that_cannot_be_evaluated_again_has_the_command_of_the_table(table: PaperTable) -> None:
    configured = {"retriever": {"_target_": "x"}, "metrics": {"x": 1}, "dataset": {"x": 1}, "choices": {"x": "y"}}
    file = {**configured, "retriever": {"parts": [{"_target_": "retrievers.runs.run_file.RunFile"}]}}
    results = {
        place: replace(result, config=file if place == (0, 0) else configured)
        for place, result in table.results.items()
    }
    mixed = replace(table, results=results)
    commands = list_commands(mixed, "my paper", "again")
    assert commands["A1"] == "again"
    assert commands["B3"] == "python -m runner reproduce 'my paper@B3'"
    assert describe_reproduction(commands, "again") == (
        "Reproduce a cell, for example B1: `python -m runner reproduce 'my paper@B1'`."
    )
    assert list_commands(mixed, "k=1", "")["B1"] == "python -m runner reproduce 'cell=\"k=1@B1\"'"


def test_the_caption_names_the_baseline_and_what_is_corrected(table: PaperTable) -> None:
    text = " ".join(describe_table(table))
    counts = {cell.dataset: cell.queries for cell in table.list_cells()}
    listed = ", ".join(f"{title}: {counts[title]}" for title in table.datasets)
    assert text.startswith(f"Mean nDCG@10 by dataset, over queries ({listed}).")
    assert "Bold: the highest mean of the column, whether or not others differ significantly from it." in text
    assert "worse than the highest mean of the column (differences paired by query" in text
    text = " ".join(describe_table(replace(table, baseline="k1=0")))
    assert "than k1=0" in text
    assert "max-T correction for all pairs of systems in the column; p < 0.05" in text
    assert "Datasets are not corrected for one another." in text
    several = build_paper_table(make_results(), ["nDCG@10", "RR", "AP"], names={"k1=2": UNRULY})
    text = " ".join(describe_table(several))
    assert "nDCG@10 is the primary measure; the others are exploratory and corrected for all 2 on each dataset." in text
    assert "The command compare counts all measures on record, so its p-values may differ." in text
    free = replace(table, statistics=replace(table.statistics, correction="none"))
    assert "for all pairs" not in " ".join(describe_table(free))
