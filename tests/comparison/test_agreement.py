"""Agreement between results: by document and query id, over the queries that both answered."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from retrievers.base import Rankings
from runner.comparison.agreement import measure_agreement, measure_pair
from runner.comparison.comparability import ReportError
from runner.evaluation.result import Result
from runner.statistics.agreement import headroom, rbo
from tests.pages.factory import result


def systems() -> list[Result]:
    return [result(name, seed=seed, swept={"retriever": name}) for seed, name in enumerate(("bm25", "dense", "hybrid"))]


def renumbered(found: Result, seed: int = 0) -> Result:
    """Return the same result over the same documents in another order."""
    assert found.hits is not None
    order = np.random.default_rng(seed).permutation(len(found.hits.documents))
    documents = [found.hits.documents[d] for d in order]
    rankings = found.hits.rankings
    moved = np.where(rankings.documents < 0, -1, np.argsort(order)[rankings.documents]).astype(np.int32)
    return replace(found, hits=replace(found.hits, documents=documents, rankings=replace(rankings, documents=moved)))


def test_every_two_systems_are_compared_over_the_queries_that_have_gold() -> None:
    found = measure_agreement(systems())
    assert list(found.systems) == ["bm25", "dense", "hybrid"]
    assert list(found.pairs) == [measure_pair(first, second) for first, second in combinations(systems(), 2)]
    assert {pair.queries for pair in found.pairs} == {30}
    assert list(found.pairs[0].coefficients) == ["rank_1", "jaccard@3", "jaccard@5", "rbo", "tau@10"]
    documents = [r.hits.rankings.documents[:30] for r in systems() if r.hits]
    assert found.pairs[1].coefficients["rbo"] == pytest.approx(rbo(documents[0], documents[2]).mean())


def test_documents_are_compared_by_id() -> None:
    first, second, _ = systems()
    same = measure_agreement([first, renumbered(first)]).pairs[0].coefficients
    assert same == dict.fromkeys(same, 1.0)
    expected = measure_agreement([first, second]).pairs[0].coefficients
    assert measure_agreement([renumbered(first, 1), renumbered(second, 2)]).pairs[0].coefficients == expected


def test_queries_are_compared_by_id() -> None:
    first, second, _ = systems()
    assert second.hits is not None
    order = np.random.default_rng(3).permutation(len(second.queries.ids))[:20]
    columns = {
        name: [column[i] for i in order] if column else column
        for name in second.queries.__dataclass_fields__
        for column in [getattr(second.queries, name)]
    }
    fewer = replace(
        second,
        queries=replace(second.queries, **columns),
        scores=second.scores[:, order],
        hits=replace(
            second.hits,
            rankings=Rankings(second.hits.rankings.documents[order], second.hits.rankings.scores[order]),
            grades=second.hits.grades[order],
        ),
    )
    found = measure_agreement([fewer, first])
    assert found.pairs[0].queries == np.count_nonzero(order < 30)
    answered = order[order < 30]
    assert first.hits is not None
    expected = rbo(second.hits.rankings.documents[answered], first.hits.rankings.documents[answered])
    assert found.pairs[0].coefficients["rbo"] == pytest.approx(expected.mean())
    assert found.headroom["RR"] == headroom(np.stack([second.of("RR")[order], first.of("RR")[order]]))


def test_a_query_that_one_of_them_could_not_answer_does_not_count() -> None:
    first, second = result("a"), result("b", errors={3: "timed out", 5: "timed out"})
    found = measure_agreement([first, second])
    assert found.pairs[0].queries == 28
    assert found.headroom["AP"].queries == np.count_nonzero(~np.isnan(first.of("AP") + second.of("AP")))


def test_headroom_is_in_every_measure_that_all_have() -> None:
    first, second, _ = systems()
    second = replace(second, measures=second.measures[:3], scores=second.scores[:3])
    found = measure_agreement([first, second]).headroom
    assert list(found) == list(first.measures[:3])
    for measure, of in found.items():
        assert of.oracle >= of.mean == pytest.approx(max(np.nanmean(r.of(measure)) for r in (first, second)))


def test_less_than_two_results_or_one_without_rankings_are_refused() -> None:
    with pytest.raises(ReportError, match="agreement needs at least two results, found 1"):
        measure_agreement([result()])
    with pytest.raises(ReportError, match="b was loaded without its rankings"):
        measure_agreement([result("a"), result("b", hits=False)])
