"""What is said of a figure is said in one place, from which the documentation derives."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.task_figures import TaskFigure, find_figure, list_task_figures

PAGE = Path(__file__).parents[4] / "docs" / "traces.md"


def describe(figure: TaskFigure) -> str:
    logged, better = f"`{figure.mlflow}`" * figure.is_logged, figure.better * (figure.better != "neither")
    meaning = figure.definition[0].lower() + figure.definition[1:]
    return f"| `{figure.name}` | {figure.title} | {logged} | {better} | {meaning} |"


def test_the_documentation_lists_every_figure_as_it_is() -> None:
    table = "\n".join(map(describe, list_task_figures()))
    assert (
        f"| figure | in tables | in MLflow | better | meaning |\n|---|---|---|---|---|\n{table}\n\n" in PAGE.read_text()
    )


def test_names_and_titles_of_figures_differ() -> None:
    figures = list_task_figures((1, 10))
    assert [figure.name for figure in figures] == [*FigureNames((1, 10)).all]
    for values in ({figure.name for figure in figures}, {figure.title for figure in figures}):
        assert len(values) == len(figures)


def test_a_figure_is_looked_up_by_its_name() -> None:
    assert all(find_figure(figure.name) == figure for figure in list_task_figures((5,)))
    assert (find_figure("ndcg@10").title, find_figure("precision@5").title) == ("nDCG@10", "P@5")
    for name in ("nonsense", "nonsense@5"):
        with pytest.raises(KeyError):
            find_figure(name)


def test_time_tokens_and_money_are_costs_and_errors_are_not() -> None:
    costs = {figure.name for figure in list_task_figures() if figure.is_cost}
    assert costs == {"cost", "seconds", "tokens", "ttfr_seconds", "ttfr_tokens"}
