"""The table of a paper as LaTeX, Markdown, CSV, and JSON with the command that reproduces each cell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.comparison.comma_separated import format_csv
from runner.features.table.paper_table import COLUMNS, AcrossRow, Marks, PaperCell, PaperTable, name_column
from runner.features.table.report.sentences import describe_across, describe_table
from runner.pages.latex import escape_latex, render_float, render_tabular
from runner.pages.markdown import escape, render_rows
from runner.pages.numbers import DASH, difference_interval, format_signed, interval, missing, p_value, score
from runner.results.re_evaluation import find_obstacle

_DOCUMENT = r"""\documentclass[a4paper,landscape]{article}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""

_TITLES = (
    "system", "mean rank", "difference", "same datasets", "p", "new datasets", "p (new)",
    "won, tied, lost", "sig. better", "sig. worse",
)  # fmt: skip


def list_commands(table: PaperTable, folder: str, again: str) -> dict[str, str]:
    """Return the command that reproduces each cell, by id: `again`, which makes the table again, if no other can."""
    per = len(table.measures)
    return {
        cell.id: again if find_obstacle(table.results[row, column // per]) else _format_command(folder, cell.id)
        for row, cells in enumerate(table.cells)
        for column, cell in enumerate(cells)
        if cell is not None
    }


def describe_reproduction(commands: Mapping[str, str], again: str) -> str:
    """Return a sentence with the command of the first cell that can be reproduced, or else that of the table."""
    for cell, command in commands.items():
        if command != again:
            return f"Reproduce a cell, for example {cell}: `{command}`."
    return f"Its systems cannot be evaluated again; make the table again from its records: `{again}`."


def document_latex(files: Sequence[str]) -> str:
    """Return a LaTeX document that shows these files of tables."""
    return _DOCUMENT % "\n".join(rf"\input{{{Path(file).stem}}}" for file in files)


def table_latex(table: PaperTable, reproduction: str, digits: int = 3) -> str:
    """Return the table as a float for LaTeX with the package booktabs, below a comment on its reproduction."""
    per = len(table.measures)
    datasets = [rf"\multicolumn{{{per}}}{{c}}{{{escape_latex(title)}}}" for title in table.datasets]
    header = [f" & {' & '.join(datasets)} \\\\"]
    if per > 1:
        spans = (rf"\cmidrule(lr){{{2 + i * per}-{1 + (i + 1) * per}}}" for i in range(len(datasets)))
        measures = [escape_latex(measure) for _, measure in table.columns]
        header += ["".join(spans), f" & {' & '.join(measures)} \\\\"]
    rows = [
        [escape_latex(system), *(_format_latex(cell, digits, table.marks) for cell in cells)]
        for system, cells in zip(table.systems, table.cells, strict=True)
    ]
    last = name_column(len(table.columns) - 1)
    comments = [f"cells A{row} to {last}{row}" for row in range(1, len(table.systems) + 1)]
    tabular = render_tabular("l" + "r" * len(table.columns), header, rows, comments)
    shown = render_float(tabular, escape_latex(" ".join(describe_table(table))), "tab:systems")
    return f"% Needs \\usepackage{{booktabs}}. {' '.join(reproduction.split())}\n\n{shown}\n"


def across_latex(table: PaperTable) -> str:
    """Return the comparisons across datasets, a float for each measure."""
    parts = ["% Needs \\usepackage{booktabs}."]
    for measure in dict.fromkeys(row.measure for row in table.across):
        titles = [escape_latex(title) for title in _TITLES]
        lines = [list(map(_escape_number, _list_across(row))) for row in table.across if row.measure == measure]
        across = render_tabular("l" + "r" * (len(_TITLES) - 1), [f"{' & '.join(titles)} \\\\"], lines)
        caption = escape_latex(f"{measure} across datasets. {' '.join(describe_across(table))}")
        parts.append(render_float(across, caption, f"tab:across-{table.measures.index(measure) + 1}"))
    return "\n\n".join(parts) + "\n"


def table_markdown(table: PaperTable, reproduction: str, digits: int = 3) -> str:
    """Return the table, the comparison across datasets, and all differences as Markdown."""
    titles = [
        escape(table.datasets[dataset] + (f" {measure}" if len(table.measures) > 1 else ""))
        for dataset, measure in table.columns
    ]
    rows = [
        [escape(system), *(_format_markdown(cell, digits, table.marks) for cell in cells)]
        for system, cells in zip(table.systems, table.cells, strict=True)
    ]
    parts = [
        render_rows(["system", *titles], rows, [False] + [True] * len(titles)),
        *map(escape, describe_table(table)),
    ]
    for measure in dict.fromkeys(row.measure for row in table.across):
        lines = [list(map(escape, _list_across(row))) for row in table.across if row.measure == measure]
        parts += [f"## {escape(measure)} across datasets", *map(escape, describe_across(table))]
        parts.append(render_rows(_TITLES, lines, [False] + [True] * (len(_TITLES) - 1)))
    compared = [cell for cell in table.list_cells() if not missing(cell.difference.mean)]
    if compared:
        confidence = f"{table.statistics.confidence * 100:g}%"
        titles = [
            "cell", "system", "dataset", "measure", "reference", "difference", f"{confidence} interval", "g", "p",
            "won", "tied", "lost",
        ]  # fmt: skip
        parts += [
            "## Differences",
            "g is Hedges' g, the mean difference in standard deviations of the differences between queries. Intervals "
            "and p-values are corrected as the marks are. Won, tied and lost count queries.",
            render_rows(titles, [list(map(escape, _list_difference(cell))) for cell in compared],
                        [i == 0 or i > 4 for i in range(len(titles))]),
        ]  # fmt: skip
    parts.append(f"{reproduction} A1 is the first number of the first row.")
    return "\n\n".join(parts) + "\n"


def table_csv(table: PaperTable) -> str:
    """Return a row per cell as comma-separated values."""
    return format_csv(COLUMNS, [cell.to_dict() for cell in table.list_cells()])


def table_json(
    table: PaperTable, commands: Mapping[str, str], records: Mapping[tuple[int, int], str]
) -> dict[str, Any]:
    """Return the table for JSON; each cell has the command that reproduces it, and the name of its record."""
    places = {
        cell.id: (row, column) for row, cells in enumerate(table.cells) for column, cell in enumerate(cells) if cell
    }
    cells = []
    for cell in table.list_cells():
        row, column = places[cell.id]
        result = table.results[row, column // len(table.measures)]
        cells.append(
            {
                **_without_nan(cell.to_dict()),
                "dataset_fingerprint": result.dataset.fingerprint,
                "config_hash": result.config_hash,
                "record": records[row, column // len(table.measures)],
                "command": commands[cell.id],
            }
        )
    return {
        "systems": table.systems,
        "datasets": table.datasets,
        "measures": table.measures,
        "baseline": table.baseline or None,
        "statistics": {name: getattr(table.statistics, name) for name in ("test", "correction", "confidence", "alpha")},
        "notes": [*describe_table(table), *describe_across(table)],
        "cells": cells,
        "across": [_without_nan(row.to_dict()) for row in table.across],
    }


def _format_command(folder: str, cell: str) -> str:
    word = f"{folder}@{cell}"
    quoted = 'cell="' + word.replace('"', '\\"') + '"'  # for Hydra, which would split the word
    return f"python -m runner reproduce {shlex.quote(quoted if '=' in word else word)}"


def _without_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and missing(value) else value for name, value in values.items()}


def _escape_number(text: str) -> str:
    """Return an escaped text in which a hyphen before a digit is a minus sign, unless it is inside a word."""
    return re.sub(r"(?<!\w)\{-\}(?=\d)", "$-$", escape_latex(text))


def _format_latex(cell: PaperCell | None, digits: int, marks: Marks) -> str:
    if cell is None:
        return "--"
    mean = score(cell.mean, digits)
    mark = rf"\mathrm{{{cell.letters}}}" if marks == "letters" and cell.letters else cell.mark
    return (rf"\textbf{{{mean}}}" if cell.is_best else mean) + (f"$^{{{mark}}}$" if mark else "")


def _format_markdown(cell: PaperCell | None, digits: int, marks: Marks) -> str:
    if cell is None:
        return DASH
    mean, mark = score(cell.mean, digits), {"+": "⁺", "-": "⁻"}.get(cell.mark, "")
    if marks == "letters" and cell.letters:
        mark = f"<sup>{cell.letters}</sup>"
    return (f"**{mean}**" if cell.is_best else mean) + mark


def _list_across(row: AcrossRow) -> list[str]:
    return [
        row.system, f"{row.mean_rank:.2f}", format_signed(row.same.mean), interval((row.same.low, row.same.high)),
        p_value(row.same.corrected), interval((row.new.low, row.new.high)), p_value(row.new.corrected),
        *(
            [DASH] * 3 if row.system == row.reference
            else [f"{row.new.wins}, {row.new.ties}, {row.new.losses}", str(row.better), str(row.worse)]
        ),
    ]  # fmt: skip


def _list_difference(cell: PaperCell) -> Sequence[str]:
    own = cell.difference
    return [
        cell.id, cell.system, cell.dataset, cell.measure, cell.reference, format_signed(own.mean),
        difference_interval((own.low, own.high, own.differing, own.queries)),
        f"{own.effect:+.2f}", p_value(own.corrected),
        str(own.wins), str(own.ties), str(own.losses),
    ]  # fmt: skip
