"""An evaluation as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from runner.reports.evaluation import grades, insights, tables
from runner.reports.evaluation.insights import Insights
from runner.reports.rendering.page import Figure, figure, render
from runner.result import Result

QUERIES = 300
"""Most queries on the page of a result, the hardest first."""


def result_page(result: Result, insight: Insights) -> str:
    """Return the page of one evaluation and its insights."""
    figures = [*_result_figures(result), *_threshold_figures(insight)]
    return render(
        "result.html.jinja",
        result=result,
        insights=insight,
        tables=tables,
        insight_tables=insights,
        grade_tables=grades,
        figures=figures,
        limit=QUERIES,
    )


def _result_figures(result: Result) -> Iterator[Figure]:
    from runner.reports.rendering import charts

    series = curves({family: (values, result.means) for family, values in tables.by_cutoff(result.measures).items()})
    if series:
        yield figure("By cutoff", "The mean of each measure at each cutoff.", charts.curves(series))
    values = result.of(result.primary)
    if not np.isnan(values).all():
        text = f"The distribution of {result.primary} over queries."
        yield figure("By query", text, charts.histogram(values, result.primary))
    by_type = tables.types_table(result)
    if by_type.rows:
        measures = [column.title for column in by_type.columns[2:]]
        types = [f"{name} ({count})" for name, count, *_ in by_type.rows]
        bars = {measure: [row[i + 2] for row in by_type.rows] for i, measure in enumerate(measures)}
        yield figure("By query type", "Means of the queries of each type.", charts.bars(types, bars), by_type)


def _threshold_figures(insight: Insights) -> Iterator[Figure]:
    if not insight.tunings:
        return
    from runner.reports.evaluation import plots

    points = {
        f"{insights.target(tuning.settings)}, {where}": outcome
        for tuning in insight.tunings
        for where, outcome in (("in fold", tuning.in_fold), ("out of fold", tuning.out_of_fold))
    }
    svg = plots.tradeoff(insight.tunings[0].curve, points, insight.tunings[0].settings.k)
    text = insights.thresholds_note(insight)
    yield figure("Choosing a threshold", text, svg, insights.thresholds_table(insight))


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
