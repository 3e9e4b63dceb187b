"""The inspection of a dataset as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from runner.features.inspect.inspection import Inspection
from runner.features.inspect.report import reliability, specs, tables
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.specs import build_bars
from runner.pages.sections import ReportSection

TEMPLATE = Path(__file__).with_name("page.html.jinja")

MOST_TYPES = 20
"""How many query types a plot of them has at most."""


def inspection_page(inspection: Inspection) -> str:
    """Return the page of an inspection."""
    plots = list(_list_plots(inspection))
    return render_explorer(
        TEMPLATE,
        {"kind": "inspection", "plots": [plot.to_dict() for plot in plots]},
        sections=_list_sections(inspection),
        inspection=inspection,
        inspection_tables=tables,
        reliability=reliability,
        figures=plots,
    )


def _list_sections(inspection: Inspection) -> list[ReportSection]:
    note = "Lengths are in words; overlaps are shares of a query's words, by their IDF."
    return [
        ReportSection("First queries and their gold", tables.samples_table(inspection), "findings"),
        ReportSection("Not available", inspection.lacking, "findings"),
        ReportSection("Grades", tables.grades_table(inspection), "distributions"),
        ReportSection("Distributions", tables.distributions_table(inspection), "distributions", note),
        ReportSection("Query types", tables.types_table(inspection), "distributions", figure="types"),
    ]


def _list_plots(inspection: Inspection) -> Iterator[Plot]:
    rankings = inspection.findability
    if rankings.names and rankings.answerable.any():
        bars = {f"Success@{rankings.cutoff}": rankings.success, f"Judged@{rankings.cutoff}": rankings.judged}
        text = (
            f"The share of queries with gold in the first {rankings.cutoff}, and the share of these documents that "
            "is judged."
        )
        spec, table = build_bars(rankings.names, bars, "share"), tables.retrievers_table(inspection)
        yield Plot("retrievers", "What retrievers find", text, spec, table)
    if not np.isnan(inspection.gold_overlap).all():
        series = {"with gold": inspection.gold_overlap, "with random documents": inspection.chance_overlap}
        text = "The further the gold lies to the right of random documents, the more lexical search is favoured."
        yield Plot("overlap", "Overlap of query and gold", text, specs.build_overlaps(series))
    text = "The number of relevant documents for a query, 0 for queries without gold."
    golds, queries = specs.count_golds(inspection.golds)
    yield Plot("gold", "Gold documents per query", text, build_bars(golds, {"queries": queries}, "queries"))
    for color, (what, words) in enumerate(inspection.words.items()):
        yield Plot(f"words-{color}", f"Length of {what}", "In words.", specs.build_lengths(words, what, color))
    types = tables.types_table(inspection)
    if 1 < len(inspection.types) <= MOST_TYPES:
        names, counts = zip(*types.rows, strict=True)
        spec = build_bars(names, {"queries": counts}, "queries")
        yield Plot("types", "Query types", "The number of queries of each type.", spec, types)
