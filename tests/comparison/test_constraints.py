"""Limits of figures: their form, unknown figures, and what is recorded of the winner."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from runner.comparison.constraints import Constraint, compare_figures, meets_all
from runner.comparison.selection import WinnerSelection, parse_selection
from tests.pages.factory import result

LOADED = replace(result(), diagnostics={"p99_ms_at_50": 80.0})


@pytest.mark.parametrize(
    ("text", "shown", "met"),
    [
        ("p99_ms_at_50<=100", "p99_ms_at_50 <= 100", [True, True, False]),
        (" p99_ms_at_50 >= 1e2 ", "p99_ms_at_50 >= 100", [False, True, True]),
        ("nDCG@10 >= 0.4", "nDCG@10 >= 0.4", [True, True, True]),
    ],
)
def test_a_constraint_has_a_figure_a_direction_and_a_bound(text: str, shown: str, met: list[bool]) -> None:
    constraint = Constraint.parse(text)
    assert str(constraint) == shown
    assert [constraint.is_met(value) for value in (99, 100, 101)] == met
    assert not constraint.is_met(math.nan)


@pytest.mark.parametrize("text", ["p99", "p99 < 100", "<= 3", "p99 <= fast", "p99 == 3"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="should be a figure, <= or >=, and a number, such as"):
        Constraint.parse(text)


def test_figures_are_means_costs_and_diagnostics() -> None:
    assert Constraint.parse("p99_ms_at_50 <= 1").read(LOADED) == 80
    assert Constraint.parse("nDCG@10 >= 0").read(LOADED) == LOADED.means["nDCG@10"]
    assert Constraint.parse("mean_ms <= 1").read(LOADED) == LOADED.timings.mean_ms
    assert math.isnan(Constraint.parse("p99_ms_at_10 <= 1").read(LOADED))


def test_a_result_meets_all_constraints_or_none_counts() -> None:
    limits = [Constraint.parse("p99_ms_at_50 <= 100"), Constraint.parse("nDCG@10 >= 0.99")]
    assert meets_all(LOADED, limits[:1])
    assert not meets_all(LOADED, limits)


def test_a_record_of_a_selection_keeps_the_figures_of_constraints() -> None:
    reported = replace(LOADED, diagnostics={"p99_ms_at_50": 120.0})
    figures = compare_figures([Constraint.parse("p99_ms_at_50 <= 100")], LOADED, reported)
    own = figures["p99_ms_at_50 <= 100"]
    assert (own.selected, own.reported, own.is_met) == (80, 120, False)
    selection = WinnerSelection("toy", "dev", "test", "k1=1", {}, "nDCG@10", 5, {}, constraints=figures)
    assert parse_selection(selection.to_json()).constraints == figures
    failed = compare_figures([Constraint.parse("p99_ms_at_50 <= 100")], LOADED, None)
    assert not failed["p99_ms_at_50 <= 100"].is_met
