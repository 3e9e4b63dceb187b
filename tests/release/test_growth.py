"""The page about growing cost shows the figures of `benchmarks/growth.json`: `make docs` renews it."""

from __future__ import annotations

import json

import pytest

from benchmarks.growth import RETRIEVERS
from release.growth import FIGURES, PAGE, PICTURE, extrapolate, find_limit, group_documents, identify, write_page

ROWS = [{"size": 10, "mebibytes": 7}, {"size": 100, "mebibytes": 50}, {"size": 1000, "mebibytes": 140}]


def test_the_tables_and_the_picture_show_the_stored_figures() -> None:
    figures, page = json.loads(FIGURES.read_text(encoding="utf-8")), PAGE.read_text(encoding="utf-8")
    assert write_page(page, figures) == page, "run python -m release.growth"
    picture = PICTURE.read_text(encoding="utf-8")
    assert identify(figures) in picture, "run python -m release.growth"
    assert identify({"rows": figures["rows"][1:]}) not in picture


def test_every_retriever_was_measured_from_10_thousand_to_a_million_documents() -> None:
    by_name = group_documents(json.loads(FIGURES.read_text(encoding="utf-8")))
    sizes = {name: [row["size"] for row in rows][:3] for name, rows in by_name.items()}
    assert sizes == {name: [10_000, 100_000, 1_000_000] for name in RETRIEVERS}


def test_extrapolations_continue_the_line_through_the_two_largest_sizes() -> None:
    assert extrapolate(ROWS, "mebibytes", 2000) == pytest.approx(240)
    assert find_limit(ROWS, 240) == pytest.approx(2000)
