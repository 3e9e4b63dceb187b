"""The page of an evaluation: one file, nothing from elsewhere, data stays data, and plots for whatever there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrievers.base import Corpus
from runner.comparison.insights import find_insights
from runner.evaluation.report.page import result_page
from runner.evaluation.report.rankings import DEPTH
from runner.evaluation.result import Result
from tests.pages.factory import result
from tests.pages.reading import EVIL, Page, read_explorer_data

PRIMARY = "nDCG@10"


def page_of(found: Result) -> str:
    """Return a result's page without the texts of its corpus."""
    return result_page(found, find_insights(found))


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
    data = read_explorer_data(of_result)
    assert [plot["id"] for plot in data["plots"]] == ["cutoffs", "histogram", "types", "thresholds"]
    assert len(page.table("query", "text")) == 30, "those with gold can be read without a script"


def test_the_script_has_each_query_with_its_hits_and_its_gold() -> None:
    found = result()
    assert found.hits is not None
    data = read_explorer_data(page_of(found))
    (system,) = data["systems"]
    ids = data["documents"]["ids"]
    for i, query in enumerate(found.queries.ids):
        assert data["queries"]["ids"][i] == query
        assert [ids[document] for document in system["hits"][i]] == found.hits.ids(i, DEPTH)
        assert system["grades"][i] == found.hits.grades[i, :DEPTH].tolist()
        assert [ids[document] for document in data["gold"][i]] == list(found.queries.expected[i])
    columns = {column["name"]: column["values"] for column in data["columns"]}
    np.testing.assert_allclose(np.array(columns["R@100"], dtype=float), found.of("R@100"), atol=1e-6)


def test_what_readers_see_of_documents_and_the_time_of_queries_are_in_the_page() -> None:
    found = result(queries=4, no_result=0)
    assert found.hits is not None
    metadata = [{"category": "boat", "headline": f"item {i}"} for i in range(300)]
    timings = replace(found.timings, each_ms=[1.5, None, 2.5])
    shown = replace(found, hits=replace(found.hits, metadata=metadata), timings=timings)
    data = read_explorer_data(page_of(shown))
    first = data["systems"][0]["hits"][0][0]
    documents, number = data["documents"], int(data["documents"]["ids"][first].removeprefix("d"))
    assert documents["notes"][first] == f"category: boat; headline: item {number}"
    assert "notes" not in read_explorer_data(page_of(found))["documents"]
    (times,) = (column["values"] for column in data["columns"] if column["id"] == "ms")
    assert times == [1.5, None, 2.5, None]


def test_queries_are_grouped_by_other_fields_and_variants_count_once() -> None:
    found = result(queries=4, no_result=0)
    languages, types = ["de", "de", "en", ""], found.queries.types
    fields = [{"kind": kind, "language": code, "length": "x"} for kind, code in zip(types, languages, strict=True)]
    queries = replace(found.queries, fields=fields, clusters=["a", "a", "", ""])
    data = read_explorer_data(page_of(replace(found, queries=queries)))
    names = [
        column["name"] for column in data["columns"] if column["id"].startswith("f") and column["id"][1:].isdigit()
    ]
    assert names == ["language", "query.length"], "types have a column already"
    (column,) = (column for column in data["columns"] if column["name"] == "language")
    assert (column["kind"], column["values"]) == ("setting", ["de", "de", "en", ""])
    assert data["clusters"] == [0, 0, 1, 2]
    assert read_explorer_data(page_of(found))["clusters"] is None


def test_texts_come_from_the_corpus_and_stop_where_the_page_would_grow_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = result()
    corpus = Corpus(
        [f"d{i}" for i in range(300)], [f"text {i:3d}" for i in range(300)], [f"title {i}" for i in range(300)]
    )
    documents = read_explorer_data(result_page(found, find_insights(found), corpus))["documents"]
    assert documents["texts"] == [f"text {int(id[1:]):3d}" for id in documents["ids"]]
    assert documents["titles"] == [f"title {id[1:]}" for id in documents["ids"]]
    monkeypatch.setattr("runner.evaluation.report.rankings.TEXTS", 80)
    documents = read_explorer_data(result_page(found, find_insights(found), corpus))["documents"]
    assert [text is not None for text in documents["texts"]] == [i < 10 for i in range(len(documents["ids"]))]
    hardest = int(np.nanargmin(found.of(PRIMARY)))
    assert set(found.queries.expected[hardest]) <= set(documents["ids"][:10]), "the hardest query comes first"


def test_the_page_loads_nothing(of_result: str) -> None:
    assert Page(of_result).loaded == []


def test_data_is_never_markup() -> None:
    found = result(EVIL, retriever=EVIL, swept={f"{EVIL}.k": EVIL}, types=(EVIL, "b"), text=EVIL)
    page = Page(page_of(found))
    assert page.scripts == 1
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
    assert len(page.table("query", "text")) == 30
