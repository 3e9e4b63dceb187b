"""Figures on queries with filters, by the share of documents that pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrievers.base import Corpus, build_rankings
from retrievers.filters import parse_filter
from runner.datasets.base import Queries
from runner.datasets.dataset import Dataset
from runner.evaluation.selectivity import measure_by_selectivity

N = 1000
CORPUS = Corpus([f"d{i}" for i in range(N)], ["x"] * N, metadata=[{"n": i} for i in range(N)])


def dataset(*ends: int | None) -> Dataset:
    """Return a dataset whose queries allow the documents up to an end, or all."""
    ids = [f"q{i}" for i in range(len(ends))]
    filters = [None if end is None else parse_filter({"n": {"to": end}}) for end in ends]
    queries = Queries(ids, ["x"] * len(ids), [""] * len(ids), filters=filters)
    return Dataset.of(CORPUS, queries, {name: ["d0"] for name in ids})


def test_short_results_and_hits_outside_are_counted_by_band() -> None:
    asked = dataset(2, 9, 40, 499, 499, None)
    hits = [range(3), range(4), range(10), range(10), range(9), ()]
    rankings = build_rankings(
        [[(hit, 1.0) for hit in row] for row in [*hits[:3], [*range(9), 700], *hits[4:]]], CORPUS.tie_order, 12
    )
    scores = np.array([1.0, 0.0, 0.5, np.nan, 0.25, 1.0])
    assert measure_by_selectivity(asked, rankings, 12, "nDCG@10", scores) == {
        "queries.filter_up_to_1_percent": 2,
        "nDCG@10.filter_up_to_1_percent": 0.5,
        "short_results_at_10.filter_up_to_1_percent": 1,  # three pass and are there; of ten, four are
        "hits_outside_filter_at_10.filter_up_to_1_percent": 0,
        "queries.filter_1_to_5_percent": 1,
        "nDCG@10.filter_1_to_5_percent": 0.5,
        "short_results_at_10.filter_1_to_5_percent": 0,
        "hits_outside_filter_at_10.filter_1_to_5_percent": 0,
        "queries.filter_over_20_percent": 2,
        "nDCG@10.filter_over_20_percent": 0.25,
        "short_results_at_10.filter_over_20_percent": 1,
        "hits_outside_filter_at_10.filter_over_20_percent": 1,
    }


def test_a_search_whose_longest_ranking_has_three_hits_is_short_for_all_queries() -> None:
    asked = dataset(40, 40)
    rankings = build_rankings([[(hit, 1.0) for hit in range(3)]] * 2, CORPUS.tie_order, 12)
    figures = measure_by_selectivity(asked, rankings, 12, "nDCG@10", np.ones(2))
    assert figures["short_results_at_10.filter_1_to_5_percent"] == 2


@pytest.mark.parametrize("asked", [dataset(None, None), replace(dataset(3), corpus=Corpus([], []))])
def test_without_filters_or_documents_there_is_nothing_to_count(asked: Dataset) -> None:
    n = len(asked.queries)
    assert measure_by_selectivity(asked, build_rankings([[]] * n, CORPUS.tie_order, 3), 3, "AP", np.zeros(n)) == {}
