"""Draw the figures of `benchmarks/growth.json`, and write their tables into the page: `python -m release.growth`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from release.configuration import render_table

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "growth.json"
PAGE = ROOT / "docs" / "explanations" / "growth.md"
PICTURE = ROOT / "docs" / "images" / "growth.svg"

BEGINNING = "<!-- Generated from benchmarks/growth.json: `make docs` -->"
END = "<!-- End of the generated tables -->"
COLUMNS = {
    "seconds": "read and index, s",
    "mebibytes": "peak memory, MiB",
    "index_mebibytes": "index on disk, MiB",
    "query_ms": "a query, ms",
}
METHOD = """\
`python -m benchmarks.growth` reads generated documents of 60 words, vectors of 384 dimensions from a file and generated
learned sparse weights (120 terms a document), so no time of an encoder is included. One thread is used, and its
processor time counted; of a query, the fastest of three searches. A dash is an index that is not stored, or memory that
cannot be extrapolated: vectors of more than 4 GiB stay in their file."""
PANELS = ("seconds", "mebibytes", "query_ms")
COLOURS = ("#1f77b4", "#d95f02", "#7570b3", "#1b9e77", "#c2185b")
GIBIBYTES = 16
"""The memory of the machine whose end is extrapolated."""

IN_MEMORY = ("BM25", "learned sparse")
"""The retrievers whose memory is extrapolated: vectors of more than 4 GiB stay in their file."""

Row = dict[str, Any]


def main() -> None:
    """Draw the picture and write the tables."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    draw(figures)
    PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


def identify(figures: Row) -> str:
    """Return a hash of figures, which the picture of them contains."""
    return hashlib.sha256(json.dumps(figures["rows"], sort_keys=True).encode()).hexdigest()[:16]


def draw(figures: Row) -> None:
    """Draw a panel for each of `PANELS`, with the number of documents and the figure on logarithmic axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 9})
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, column in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for (name, rows), colour in zip(group_documents(figures).items(), COLOURS, strict=True):
            axes.loglog(*([row[key] for row in rows] for key in ("size", column)), "o-", label=name, color=colour)
        axes.set(title=COLUMNS[column], xlabel="documents")
        axes.grid(alpha=0.3)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(COLOURS), frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None, "Description": identify(figures)})


def group_documents(figures: Row) -> dict[str, list[Row]]:
    """Return the rows of growing numbers of documents by the name of their retriever."""
    rows = [row for row in figures["rows"] if row["axis"] == "documents"]
    return {name: [row for row in rows if row["name"] == name] for name in dict.fromkeys(row["name"] for row in rows)}


def extrapolate(rows: list[Row], column: str, size: float) -> float:
    """Return a figure on the straight line through those of the two largest sizes."""
    (x0, y0), (x1, y1) = ((row["size"], row[column]) for row in rows[-2:])
    return float(y1 + (size - x1) * (y1 - y0) / (x1 - x0))


def find_limit(rows: list[Row], mebibytes: float) -> float:
    """Return the number of documents at which that line for memory reaches a limit."""
    (x0, y0), (x1, y1) = ((row["size"], row["mebibytes"]) for row in rows[-2:])
    return float(x1 + (mebibytes - y1) * (x1 - x0) / (y1 - y0))


def write_page(page: str, figures: Row) -> str:
    """Return a page with the tables of figures."""
    before, rest = page.split(BEGINNING)
    return f"{before}{BEGINNING}\n\n{render_tables(figures)}\n\n{END}{rest.split(END)[1]}"


def render_tables(figures: Row) -> str:
    """Return the tables in Markdown, below the facts of the measurement."""
    by_name, commits = group_documents(figures), ", ".join(sorted({row["commit"] for row in figures["rows"]}))
    measured, limits = [], []
    for name, rows in by_name.items():
        measured += [[name, f"{row['size']:,}", *(format_figure(row[column]) for column in COLUMNS)] for row in rows]
        largest = 10 * rows[-1]["size"]
        line = {column: format_figure(extrapolate(rows, column, largest)) for column in COLUMNS}
        if name in IN_MEMORY:
            n = find_limit(rows, GIBIBYTES * 1024)
            ends = extrapolate(rows, "seconds", n) / 60, extrapolate(rows, "query_ms", n)
            limits.append([name, f"{n / 1e6:.0f} million", *map(format_figure, ends)])
        else:
            line["mebibytes"] = "–"
        measured.append([name, f"{largest:,}, extrapolated", *line.values()])
    others = [row for row in figures["rows"] if row["axis"] != "documents"]
    commands = [[row["axis"], f"{row['size']:,}", format_figure(row["seconds"])] for row in others]
    writers = ", ".join(sorted({row["orjson"] for row in others}))
    return "\n\n".join(
        [
            METHOD,
            f"Measured on {figures['on']} at commits {commits}, with {figures['processors']} processors and a "
            f"load of up to {figures['load']} by other programs. Extrapolated: on a straight line through the two "
            "largest sizes.",
            render_table(["retriever", "documents", *COLUMNS.values()], measured),
            f"Where {GIBIBYTES} GiB of memory end, extrapolated:",
            render_table(["retriever", "documents", "read and index, minutes", "a query, ms"], limits),
            f"Whole BM25 commands on 100,000 documents, in a new folder, with orjson {writers} (3.12.0 and 3.13.0 "
            "crashed on the report of 10,000 queries):",
            render_table(["what grows", "number", "processor time, s"], commands),
        ]
    )


def format_figure(value: float) -> str:
    """Return a figure with two digits at least; 0 is an index that is not stored."""
    return "–" if not value else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
