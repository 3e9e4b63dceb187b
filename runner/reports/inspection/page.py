"""The inspection of a dataset as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from runner.analysis.inspection import Inspection
from runner.reports.inspection import reliability, tables
from runner.reports.rendering.page import Figure, figure, render

MOST_TYPES = 20
"""How many query types a plot of them has at most."""


def inspection_page(inspection: Inspection) -> str:
    """Return the page of an inspection."""
    return render(
        "inspection.html.jinja",
        inspection=inspection,
        inspection_tables=tables,
        reliability=reliability,
        figures=list(_figures(inspection)),
        types_plotted=is_plotted(inspection),
    )


def _figures(inspection: Inspection) -> Iterator[Figure]:
    from runner.reports.inspection import plots
    from runner.reports.rendering import charts

    rankings = inspection.findability
    if rankings.names and rankings.answerable.any():
        bars = {f"Success@{rankings.cutoff}": rankings.success, f"Judged@{rankings.cutoff}": rankings.judged}
        text = (
            f"The share of queries with gold in the first {rankings.cutoff}, and the share of these documents that "
            "is judged."
        )
        yield figure(
            "What retrievers find", text, charts.bars(rankings.names, bars), tables.retrievers_table(inspection)
        )
    if not np.isnan(inspection.gold_overlap).all():
        series = {"with gold": inspection.gold_overlap, "with random documents": inspection.chance_overlap}
        text = "The further the gold lies to the right of random documents, the more lexical search is favoured."
        yield figure("Overlap of query and gold", text, plots.overlaps(series))
    text = "The number of relevant documents for a query, 0 for queries without gold."
    yield figure("Gold documents per query", text, plots.counts(inspection.golds, "gold documents"))
    for color, (what, words) in enumerate(inspection.words.items()):
        yield figure(f"Length of {what}", "In words.", plots.lengths(words, what, color))
    types = tables.types_table(inspection)
    if is_plotted(inspection):
        names, queries = zip(*types.rows, strict=True)
        yield figure("Query types", "The number of queries of each type.", plots.tally(names, queries), types)


def is_plotted(inspection: Inspection) -> bool:
    """Return whether query types are plotted; otherwise they are only a table."""
    return 1 < len(inspection.types) <= MOST_TYPES
