"""An evaluation as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.base import Corpus
from runner.comparison.insights import Insights
from runner.comparison.queries import build_query_outcome
from runner.config.report import Texts
from runner.evaluation.report import insights, tables
from runner.evaluation.report.rankings import (
    build_field_columns,
    build_rankings,
    describe_length,
    list_queries,
    replace_nan,
)
from runner.evaluation.report.sections import iter_sections
from runner.evaluation.result import Result
from runner.pages.explorer import specs
from runner.pages.explorer.data import DataColumn
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.place import FILE, PagePlace

TEMPLATE = Path(__file__).with_name("page.html.jinja")

QUERIES = 300
"""Most queries that can be read without a script, the hardest first."""

LISTED = 50
"""Most queries of every other list."""


def result_page(
    result: Result,
    insight: Insights,
    corpus: Corpus | None = None,
    place: PagePlace = FILE,
    texts: Texts = "snippets",
) -> str:
    """Return the page of one evaluation and its insights; `corpus` has the texts of the documents."""
    figures = [*_list_plots(result), *_list_threshold_plots(insight)]
    queries = result.queries
    rankings = build_rankings([result], [result.name], corpus, [insight], texts)
    rankings["systems"][0]["values"] = replace_nan(result.of(result.primary).tolist())
    data: dict[str, Any] = {
        "kind": "run",
        "primary": result.primary,
        "columns": [column.to_dict() for column in build_columns(result, insight)],
        "order": "value",
        "example": f"{result.primary} < 0.2",
        "plots": [plot.to_dict() for plot in figures],
        **list_queries(queries),
        "errors": list(queries.errors),
        **place.describe_runs([result.config]),
        **rankings,
    }
    return render_explorer(
        TEMPLATE,
        data,
        place,
        iter_sections(result, insight, LISTED),
        result=result,
        tables=tables,
        figures=figures,
        limit=QUERIES,
    )


def build_columns(result: Result, insight: Insights) -> list[DataColumn]:
    """Return what is known of each query as columns: its text, its values of all measures, and why it was missed."""
    queries = result.queries
    places = range(len(queries.ids))
    lengths = [describe_length(text) for text in queries.texts]
    statuses = [status.replace("_", " ") for status in queries.statuses]
    outcomes = [build_query_outcome(result, i) for i in places]
    classes = {failure.query: ", ".join(failure.labels) for failure in insight.failures}
    primary = result.primary
    columns = [
        DataColumn("query", "query", "query", list(queries.ids)),
        DataColumn("text", "text", "text", list(queries.texts)),
        DataColumn("type", "type", "type", list(queries.types), kind="setting", shown=any(queries.types)),
        DataColumn("value", primary, primary, result.of(primary).tolist(), "score", "measure"),
        DataColumn(
            "first_gold", "first_gold", "first gold", [outcome.first_gold for outcome in outcomes], "integer",
            definition="Rank of the first gold document",
        ),
        DataColumn(
            "status", "status", "status", statuses, kind="setting",
            definition="First gold: " + ", ".join(
                tables.describe_outcome(result, status) for status in ("pass", "partial", "fail")
            ),
        ),
        DataColumn(
            "missed", "missed", "why missed", [classes.get(i, "") for i in places], kind="setting", shown=bool(classes),
        ),
        DataColumn(
            "words", "words", "words", [len(text.split()) for text in queries.texts], "integer", shown=False,
            definition="Length of the query in words",
        ),
        DataColumn("length", "length", "length", lengths, kind="setting", shown=False),
        *build_field_columns(queries),
        DataColumn(
            "gold", "gold", "gold", [len(expected) for expected in queries.expected], "integer", shown=False,
            definition="Number of expected documents",
        ),
    ]  # fmt: skip
    times = [*result.timings.each_ms, *[None] * (len(places) - len(result.timings.each_ms))]
    if any(ms is not None for ms in times):
        definition = "Time of the query, searched alone"
        columns.append(DataColumn("ms", "ms", "ms", times, "milliseconds", shown=False, definition=definition))
    measures = [measure for measure in result.measures if measure != primary]
    for i, measure in enumerate(measures):
        columns.append(
            DataColumn(f"m{i}", measure, measure, result.of(measure).tolist(), "score", "measure", shown=False)
        )
    return columns


def _list_plots(result: Result) -> Iterator[Plot]:
    series = curves({family: (values, result.means) for family, values in tables.by_cutoff(result.measures).items()})
    if series:
        text = "The mean of each measure at each cutoff."
        yield Plot("cutoffs", "By cutoff", text, specs.build_curves(series, ""))
    if not np.isnan(result.of(result.primary)).all():
        text = f"The distribution of {result.primary} over queries. Drag to select queries."
        yield Plot("histogram", "By query", text, specs.build_histogram("value", result.primary))
    by_type = tables.types_table(result)
    if by_type.rows:
        measures = [column.title for column in by_type.columns[2:]]
        types = [f"{name} ({count})" for name, count, *_ in by_type.rows]
        bars = {measure: [row[i + 2] for row in by_type.rows] for i, measure in enumerate(measures)}
        text = "Means of the queries of each type."
        yield Plot("types", "By query type", text, specs.build_bars(types, bars, "mean"), by_type)
    lost = tables.losses_table(result)
    if lost.rows:
        steps, counts = zip(*(row[:2] for row in lost.rows), strict=True)
        spec = specs.build_bars(steps, {result.name: counts}, "gold documents lost")
        yield Plot("losses", "Gold lost by step", tables.describe_losses(result), spec, lost)


def _list_threshold_plots(insight: Insights) -> Iterator[Plot]:
    if not insight.tunings:
        return
    points = [
        {"name": f"{insights.target(tuning.settings)}, {where}", "recall": outcome.recall, "tn_rate": outcome.tn_rate}
        for tuning in insight.tunings
        for where, outcome in (("in fold", tuning.in_fold), ("out of fold", tuning.out_of_fold))
    ]
    curve = insight.tunings[0].curve
    steps = [{"recall": r, "tn_rate": t} for r, t in zip(curve.recall.tolist(), curve.tn_rate.tolist(), strict=True)]
    spec = specs.build_thresholds(
        steps, points, f"R@{insight.tunings[0].settings.k} of the queries that have an answer"
    )
    text = insights.thresholds_note(insight)
    yield Plot("thresholds", "Choosing a threshold", text, spec, insights.thresholds_table(insight))


def curves(
    families: Mapping[str, tuple[Mapping[int, str], Mapping[str, float]]],
) -> dict[str, dict[int, float]]:
    """Return the means by cutoff of each family of measures that has two cutoffs or more."""
    means_by_cutoff = {
        label: {cutoff: means[measures[cutoff]] for cutoff in sorted(measures)}
        for label, (measures, means) in families.items()
        if len(measures) > 1
    }
    return {label: values for label, values in means_by_cutoff.items() if not np.isnan(list(values.values())).any()}
