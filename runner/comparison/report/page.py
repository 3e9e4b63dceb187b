"""A comparison as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from retrievers.base import Corpus
from runner.comparison.compare import Comparison
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check
from runner.comparison.queries import build_query_outcome
from runner.comparison.report import gate_rules, tables
from runner.comparison.report.sections import iter_sections
from runner.config.report import Texts
from runner.evaluation.report.rankings import (
    build_field_columns,
    build_rankings,
    describe_length,
    list_queries,
    replace_nan,
)
from runner.pages.explorer import specs
from runner.pages.explorer.data import DataColumn
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.place import FILE, PagePlace
from runner.pages.numbers import gist

TEMPLATE = Path(__file__).with_name("page.html.jinja")

QUERIES = 100
"""Most gains, and most losses, of each system that can be read without a script."""

MOST_TYPES = 8
"""Most query types in a plot."""

BESIDE = 5
"""Most systems whose rankings stand side by side."""


def comparison_page(
    comparison: Comparison,
    checks: Sequence[Check] = (),
    effect: DataEffect | None = None,
    corpus: Corpus | None = None,
    place: PagePlace = FILE,
    texts: Texts = "snippets",
) -> str:
    """Return the page of a comparison; `corpus` has the texts of the documents."""
    figures, queries = list(_list_plots(comparison)), comparison.queries
    rankings = build_rankings(comparison.results[:BESIDE], comparison.labels[:BESIDE], corpus, texts=texts)
    for system, values in zip(rankings["systems"], comparison.scores[comparison.primary], strict=False):
        system["values"] = replace_nan(values.tolist())
    content: dict[str, Any] = {
        "kind": "comparison",
        "primary": comparison.primary,
        "columns": [column.to_dict() for column in build_columns(comparison)],
        "order": "change1",
        "example": "change < 0",
        **place.describe_runs([result.config for result in comparison.results]),
        "plots": [plot.to_dict() for plot in figures],
        **list_queries(queries),
        **rankings,
    }
    return render_explorer(
        TEMPLATE,
        content,
        place,
        iter_sections(comparison, checks, effect, queries=0),
        comparison=comparison,
        checks=checks,
        comparison_tables=tables,
        gate_rules=gate_rules,
        few=comparison.headline,
        figures=figures,
        limit=QUERIES,
    )


def build_columns(comparison: Comparison) -> list[DataColumn]:
    """Return what is known of each query as columns: the value of each system, and its change to the first."""
    queries, primary = comparison.queries, comparison.primary
    scores = comparison.scores[primary]
    several = len(comparison.labels) > 2
    columns = [
        DataColumn("query", "query", "query", list(queries.ids)),
        DataColumn("text", "text", "text", list(queries.texts)),
        DataColumn("type", "type", "type", list(queries.types), kind="setting", shown=any(queries.types)),
    ]
    lengths = [describe_length(text) for text in queries.texts]
    columns.append(DataColumn("length", "length", "length", lengths, kind="setting", shown=False))
    columns += build_field_columns(queries)
    for i, label in enumerate(comparison.labels):
        definition = f"{primary} of {label}"
        columns.append(DataColumn(f"value{i}", f"value{i}", label, scores[i].tolist(), "score", definition=definition))
    for i, label in enumerate(comparison.labels[1:], 1):
        title = f"change of {label}" if several else "change"
        change = (scores[i] - scores[0]).tolist()
        definition = f"Difference in {primary} to {comparison.labels[0]}"
        columns.append(DataColumn(f"change{i}", title, title, change, "signed", definition=definition))
    for i, result in enumerate(comparison.results):
        ranks = [build_query_outcome(result, query).first_gold for query in range(len(queries.ids))]
        title = f"first gold, {comparison.labels[i]}"
        columns.append(DataColumn(f"gold{i}", f"gold{i}", title, ranks, "integer", shown=not several))
    return columns


def _list_plots(comparison: Comparison) -> Iterator[Plot]:
    primary = comparison.primary
    if math.isnan(comparison.table[primary][-1].difference.mean):
        return
    first = comparison.labels[0]
    text = f"Mean differences to {first}, with intervals. Hollow markers are not significant."
    rows = [
        {
            "name": label,
            "measure": measure,
            "value": versus.difference.mean,
            "low": versus.difference.low,
            "high": versus.difference.high,
            "significant": versus.difference.significant,
        }
        for measure in comparison.headline
        if measure not in comparison.results[0].outcomes  # on scales of their own
        for label, versus in zip(comparison.labels[1:], comparison.table[measure][1:], strict=True)
    ]
    spec = specs.build_measure_differences(rows, f"difference to {gist(first, 40)}")
    yield Plot("differences", "Differences", text, spec)
    by_type = tables.by_type(comparison, [primary])
    if 1 < len(by_type) <= MOST_TYPES:
        types = [f"{of['type']} ({of['queries']})" for of in by_type]
        bars = {label: [of["means"][i] for of in by_type] for i, label in enumerate(comparison.labels)}
        text = f"{primary} of the queries of each type."
        yield Plot("types", "By query type", text, specs.build_bars(types, bars, primary))
    for i, label in enumerate(comparison.labels[1:], 1):
        own = comparison.table[primary][i].difference
        text = f"{label} against {first}: better on {own.wins:,}, equal on {own.ties:,}, worse on {own.losses:,}."
        spec = specs.build_changes(f"change{i}", f"difference in {primary}")
        yield Plot(f"queries-{i}", "Query by query", f"{text} Drag to select queries.", spec)
