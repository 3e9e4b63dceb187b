"""The page of an evaluation: one file, nothing from elsewhere, data stays data, and plots for whatever there is."""

from __future__ import annotations

import pytest

from runner.reports.evaluation.insights import insights
from runner.reports.evaluation.page import result_page
from runner.result import Result
from tests.reports.factory import result
from tests.reports.reading import EVIL, Page

PRIMARY = "nDCG@10"


def page_of(found: Result) -> str:
    """Return a result's page without the texts of its corpus."""
    return result_page(found, insights(found))


@pytest.fixture(scope="module")
def of_result() -> str:
    """Return the page of one result."""
    return page_of(result())


def test_a_result_shows_its_numbers(of_result: str) -> None:
    found, page = result(), Page(of_result)
    measures = {row[0]: row[1:] for row in page.table("measure", "@1")}
    assert measures["R"] == [f"{found.means[f'R@{k}']:.3f}" for k in (1, 10, 100)]
    assert f"{found.means[PRIMARY]:.3f}" in page.texts
    types = page.table("type", "queries")
    assert [row[2] for row in types] == [f"{found.by_type[row[0]][PRIMARY]:.3f}" for row in types]
    assert page.tags["svg"] == 4
    assert page.tags["details"] == 30 + 1  # the queries, and how it was made


def test_the_page_loads_nothing(of_result: str) -> None:
    assert Page(of_result).loaded == []


def test_data_is_never_markup() -> None:
    found = result(EVIL, retriever=EVIL, swept={f"{EVIL}.k": EVIL}, types=(EVIL, "b"), text=EVIL)
    page = Page(page_of(found))
    assert page.tags["script"] == 1
    assert page.tags["img"] == 0
    assert any(EVIL in text for text in page.texts)


def test_the_same_input_gives_the_same_bytes(of_result: str) -> None:
    assert page_of(result()) == of_result


@pytest.mark.parametrize(
    "found",
    [
        result(),
        result(queries=2, no_result=0, errors={0: "x", 1: "x"}),
        result(mean_ms=None, types=(), no_result=0),
        result(queries=1, no_result=0),
        result(types=("类型", "タイプ"), swept={"名": "a"}),
        result(primary="RR"),
    ],
    ids=["one", "without a mean", "no types, no times", "one query", "other scripts", "a measure without a cutoff"],
)
def test_whatever_there_is_makes_a_page(found: Result) -> None:
    assert Page(page_of(found)).tags["h1"] == 1


def test_a_result_without_rankings_makes_a_page() -> None:
    page = Page(page_of(result(hits=False)))
    assert "retrieved" not in page.texts
    assert "expected" in page.texts
