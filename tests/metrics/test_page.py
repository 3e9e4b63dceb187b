"""The page of the measures says what their values say."""

from __future__ import annotations

from pathlib import Path

from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import parse
from runner.metrics.page import render_page
from runner.tracking.record import metric_name

ROOT = Path(__file__).parents[2]


def test_the_page_is_the_one_that_the_measures_make() -> None:
    """`make docs` writes it again."""
    assert (ROOT / "docs" / "measures.md").read_text(encoding="utf-8") == render_page()


def test_the_front_page_of_the_docs_links_it() -> None:
    assert "(measures.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_every_name_and_alias_leads_to_its_formula() -> None:
    for formula in FORMULAS.values():
        for name in (formula.name, *formula.aliases):
            measure = parse(name if formula.cutoff == "depth" else f"{name}@5")
            assert measure.formula is formula
            assert metric_name(str(measure)).removesuffix("_at_5") == formula.mlflow
