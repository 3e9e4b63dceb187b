"""Scores are those of trec_eval, per query, for all queries at once."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import NOTHING, Rankings, create_empty_rankings
from runner.datasets.dataset import Dataset
from runner.metrics.errors import MeasureError
from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import TOKEN_MEASURES, Measure, expand, parse
from runner.metrics.scores import Grader, Scores, score
from tests.metrics.oracles import ORACLES
from tests.metrics.worlds import (
    Collection,
    World,
    by_ir_measures,
    judgments_of,
    rankings_of,
    read_collection,
)
from tests.strategies.judgments import worlds
from tests.strategies.settings import at_most

CUTOFFS = [1, 2, 3, 5, 10, 40]
TREC_EVAL = (
    parse("RR"),
    *expand([name for name in FORMULAS if name not in {"RR", "Judged", *ORACLES, *TOKEN_MEASURES}], CUTOFFS),
)
"""Every measure but those of `ORACLES`, those of tokens (tests/datasets/test_spans.py), and those below."""

OTHER_TIE_RULE = expand(["Judged", *(f"RR@{k}" for k in CUTOFFS)], CUTOFFS)
"""Measures that ir_measures has from elsewhere, where equal scores are ordered by id, ascending."""

KNOWS_UNJUDGED = tuple(
    parse(name)
    for name in (
        "infAP",
        "RR(judged_only=True)",
        *(f"{name}(judged_only=True)@5" for name in ("nDCG", "P", "R", "AP", "Success")),
        "SetF",
        "IPrec@0.5",
    )
)
"""Measures of ir_measures, among them those for which a negative grade means that a document was not judged."""


def agree(world: World, measures: tuple[Measure, ...]) -> None:
    scores = world.grader.score(world.rankings, measures)
    theirs = by_ir_measures(world, measures)
    without_hits = (world.rankings.documents == NOTHING).all(axis=1)
    theirs[np.ix_([measure.name == "Judged" for measure in measures], without_hits)] = np.nan  # 0 in ir_measures
    np.testing.assert_allclose(scores.values[:, scores.counted], theirs[:, scores.counted], rtol=0, atol=1e-9)


def scored(world: World, *names: str) -> Scores:
    return world.grader.score(world.rankings, [parse(name) for name in names])


def simple(qrels: dict[int, dict[int, int]], *rows: list[int], n_documents: int = 20) -> World:
    """Return a world where each query found the documents of a row, in this order."""
    ids = [str(position) for position in range(n_documents)]
    hits = [[(document, -float(place)) for place, document in enumerate(row)] for row in rows]
    return World(qrels, rankings_of(hits, ids, max(map(len, rows), default=0)), n_documents, ids)


@given(worlds())
def test_any_rankings_with_ties_score_as_in_trec_eval(world: World) -> None:
    agree(world, TREC_EVAL)


@settings(max_examples=at_most(20))
@given(worlds())
def test_negative_grades_reach_the_measures_of_ir_measures(world: World) -> None:
    agree(world.without_ties(), KNOWS_UNJUDGED)


def test_a_document_with_a_negative_grade_is_unjudged_for_bpref_and_infap() -> None:
    texts, hits = {name: name for name in "abcdx"}, rankings_of([[(2, 5.0), (0, 4.0), (3, 2.0), (1, 1.0)]], "abcdx", 4)
    grades = {"a": 1, "b": 2, "c": -2, "d": 0}
    dataset = Dataset.of(texts, {"q": "question"}, {"q": grades})
    scores = score(hits, dataset.judgments, 1, 5, [parse(name) for name in ("Bpref", "infAP", "AP")])
    assert scores.values[:, 0].round(4).tolist() == [0.5, 0.6875, 0.5]


def test_a_hit_with_a_negative_grade_is_shown_as_irrelevant() -> None:
    world = simple({0: {1: -3, 2: -1, 3: 2}}, [1, 2, 3, 4])
    assert world.grader.grades(world.rankings).tolist() == [[0, 0, 2, -1]]


@given(worlds(), st.integers(1, 10))
def test_a_cutoff_of_a_whole_ranking_measure_is_the_depth_of_the_ranking(world: World, k: int) -> None:
    names = ("AP", "Rprec", "Bpref")
    cut = world.grader.score(world.rankings.cut(k), [parse(name) for name in names])
    at_cutoff = world.grader.score(world.rankings, [parse(f"{name}@{k}") for name in names])
    np.testing.assert_array_equal(at_cutoff.values, cut.values)


@given(worlds())
def test_any_rankings_without_ties_score_as_in_ir_measures(world: World) -> None:
    agree(world.without_ties(), TREC_EVAL + OTHER_TIE_RULE)


@pytest.mark.parametrize("name", ORACLES)
@given(world=worlds())
def test_a_measure_that_ir_measures_lacks_is_that_of_its_oracle(name: str, world: World) -> None:
    scores = world.grader.score(world.rankings, expand([name], CUTOFFS))
    for query in np.flatnonzero(scores.counted).tolist():
        judged = world.qrels[query]
        hits = [judged.get(document, 0) for document in world.rankings.documents[query].tolist() if document != NOTHING]
        expected = [ORACLES[name](hits, [*judged.values()], m.cutoff or world.rankings.depth) for m in scores.measures]
        np.testing.assert_allclose(scores.values[:, query], expected, atol=1e-12)


@given(worlds())
def test_values_are_in_0_to_1_and_nan_only_without_gold_or_a_hit_to_judge(world: World) -> None:
    measures = expand({*FORMULAS} - {*TOKEN_MEASURES}, CUTOFFS)
    scores = world.grader.score(world.rankings, measures)
    golds = [any(grade > 0 for grade in world.qrels[query].values()) for query in range(len(world.rankings))]
    assert scores.counted.tolist() == golds
    assert np.isnan(scores.values[:, ~scores.counted]).all()
    counted = scores.values[:, scores.counted]
    without_hits = (world.rankings.documents == NOTHING).all(axis=1)[scores.counted]
    is_judged = np.array([measure.name == "Judged" for measure in measures])
    assert (np.isnan(counted) == is_judged[:, None] & without_hits).all()
    assert ((counted >= 0) & (counted <= 1) | np.isnan(counted)).all()


def test_a_query_without_hits_is_left_out_of_the_mean_of_judged() -> None:
    world = simple({query: {0: 1} for query in range(4)}, [0, 1, 2, 3], [], [4, 0], [])
    scores = scored(world, "Judged@4", "Success@4")
    np.testing.assert_array_equal(scores.values, [[0.25, np.nan, 0.5, np.nan], [1, 0, 1, 0]])
    assert scores.means() == {"Judged@4": 0.375, "Success@4": 0.5}
    assert scores.by_type(["a", "b", "a", "a"])["a"] == {"queries": 3, "Judged@4": 0.375, "Success@4": 2 / 3}
    assert math.isnan(scores.by_type(["a", "b", "a", "a"])["b"]["Judged@4"])
    alone = scored(simple({0: {0: 1}}, []), "Judged@4", "Success@4").means()
    assert (math.isnan(alone["Judged@4"]), alone["Success@4"]) == (True, 0)


@given(worlds())
def test_a_query_scores_the_same_alone_as_among_others(world: World) -> None:
    together = world.grader.score(world.rankings, TREC_EVAL).values
    for query in range(len(world.rankings)):
        rankings = Rankings(world.rankings.documents[[query]], world.rankings.scores[[query]])
        alone = Grader(judgments_of({0: world.qrels[query]}), 1, world.n_documents).score(rankings, TREC_EVAL)
        np.testing.assert_array_equal(alone.values[:, 0], together[:, query])


@given(worlds())
def test_a_cutoff_is_the_same_as_shorter_rankings(world: World) -> None:
    measures = [measure for measure in TREC_EVAL + OTHER_TIE_RULE if measure.cutoff == 3]
    whole = world.grader.score(world.rankings, measures)
    np.testing.assert_array_equal(whole.values, world.grader.score(world.rankings.cut(3), measures).values)


def with_bm25(collection: Collection) -> World:
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(collection.texts, show_progress=False), show_progress=False)
    depth = min(100, len(collection.ids))
    tokens = bm25s.tokenize(collection.queries, show_progress=False)
    documents, scores = index.retrieve(tokens, k=depth, show_progress=False)
    hits = [
        list(zip(row, values, strict=True)) for row, values in zip(documents.tolist(), scores.tolist(), strict=True)
    ]
    rankings = rankings_of(hits, collection.ids, depth)
    return World(collection.qrels, rankings, len(collection.ids), collection.ids)


def at_random(collection: Collection) -> World:
    """Rank each query's judged documents among others, with few distinct scores."""
    rng = np.random.default_rng(0)
    rows = []
    for judged in collection.qrels.values():
        documents = np.union1d(list(judged), rng.integers(0, len(collection.ids), 60))
        chosen = rng.permutation(documents)[:50]
        rows.append(list(zip(chosen.tolist(), rng.integers(1, 20, len(chosen)).tolist(), strict=True)))
    return World(collection.qrels, rankings_of(rows, collection.ids, 50), len(collection.ids), collection.ids)


@pytest.mark.parametrize(
    ("name", "ranked"),
    [("adi", with_bm25), ("cranfield", with_bm25), ("scifact", with_bm25), ("medquad", at_random)],
)
def test_real_collections_score_as_in_ir_measures(collections: Path, name: str, ranked: type) -> None:
    world = ranked(read_collection(collections / name))
    agree(world, TREC_EVAL)
    agree(world.without_ties(), TREC_EVAL + OTHER_TIE_RULE)


def test_a_query_with_negative_grades_alone_does_not_abort_ir_measures() -> None:
    scores = scored(simple({0: {0: -1}, 1: {0: 1}}, [0], [0]), "P(rel=2)@1", "AP(rel=2)")
    assert scores.counted.tolist() == [False, True]


@pytest.mark.parametrize("name", ["nDCG(dcg='exp-log2')@3", "ERR@5", "SetF(beta=2.0)", "infAP", "Accuracy@5"])
def test_other_measures_are_computed_by_ir_measures(name: str) -> None:
    world = simple({0: {1: 2, 3: 0, 5: 1}, 1: {4: 1}, 2: {4: 3, 2: 1}, 3: {1: 0}}, [1, 2, 3, 5], [1, 2], [], [1])
    scores = scored(world, "AP", name, "P@1")
    np.testing.assert_allclose(scores.of(name)[:3], by_ir_measures(world, [parse(name)])[0, :3], atol=1e-12)
    assert scores.of("P@1")[:3].tolist() == [1, 0, 0]
    assert scores.of(name)[2] == 0
    assert np.isnan(scores.of(name)[3])


def test_scoring_more_queries_takes_no_more_calls() -> None:
    """All queries are scored at once; a benchmark compares the time with that of ir_measures."""
    rng = np.random.default_rng(0)
    measures = expand(["nDCG", "P", "R", "Success", "AP", "Rprec"], [1, 3, 10, 100])[:25]

    def calls(queries: int) -> int:
        documents = np.argsort(rng.random((queries, 1000)), axis=1)[:, :100]
        qrels = {
            query: dict(zip(row[::9].tolist(), rng.integers(0, 4, 12).tolist(), strict=True))
            for query, row in enumerate(documents)
        }
        world = simple(qrels, *documents.tolist(), n_documents=1000)
        return count_calls(partial(world.grader.score, world.rankings, measures))

    assert calls(300) == calls(30)


def count_calls(call: Callable[[], object]) -> int:
    """Return how many functions a call calls, those in C too."""
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        call()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in events)


def test_precision_is_divided_by_k_and_recall_by_all_golds() -> None:
    scores = scored(simple({0: {0: 1}}, [0, 1]), "P@5", "R@5", "P@1", "F1@5")
    assert scores.means() == {"P@5": 0.2, "R@5": 1, "P@1": 1, "F1@5": pytest.approx(1 / 3)}


def test_ndcg_of_grades_3_2_3_0_1_2_is_that_of_the_worked_example() -> None:
    """The often cited example: with linear gain the DCG is 6.861, the best of the same documents 7.141."""
    world = simple({0: {0: 3, 1: 2, 2: 3, 3: 0, 4: 1, 5: 2}}, [0, 1, 2, 3, 4, 5])
    assert scored(world, "nDCG@6").means()["nDCG@6"] == pytest.approx(6.861 / 7.141, abs=1e-4)


def test_a_perfect_ranking_has_an_ndcg_of_exactly_1() -> None:
    rng = np.random.default_rng(0)
    qrels = {query: {document: int(rng.integers(1, 5)) for document in range(15)} for query in range(50)}
    world = simple(qrels, *(sorted(row, key=row.__getitem__, reverse=True) for row in qrels.values()))
    measures = [parse(f"nDCG@{k}") for k in range(1, 20)]
    assert (world.grader.score(world.rankings, measures).values == 1).all()


def test_judged_documents_that_the_corpus_lacks_count_in_the_ideal_and_in_recall() -> None:
    scores = scored(simple({0: {0: 1, 25: 3}}, [0, 1], n_documents=20), "R@5", "nDCG@5", "AP")
    assert scores.means()["R@5"] == 0.5
    assert scores.means()["AP"] == 0.5
    assert scores.means()["nDCG@5"] == pytest.approx(1 / (3 + 1 / np.log2(3)))


def test_a_query_without_results_scores_0() -> None:
    world = simple({0: {0: 1, 1: 0}, 1: {0: 1}}, [], [0])
    scores = world.grader.score(world.rankings, TREC_EVAL + OTHER_TIE_RULE + expand(ORACLES, CUTOFFS))
    is_judged = np.array([measure.name == "Judged" for measure in scores.measures])
    assert (scores.values[~is_judged, 0] == 0).all()
    assert np.isnan(scores.values[is_judged, 0]).all()
    assert scores.of("RR").tolist() == [0, 1]


def test_rankings_without_a_place_score_0() -> None:
    world = simple({0: {0: 1, 1: 0}}, [])
    assert world.rankings.depth == 0
    assert (world.grader.score(world.rankings, TREC_EVAL).values == 0).all()


def test_a_query_whose_search_raised_an_error_enters_no_mean() -> None:
    world = simple({0: {0: 1}, 1: {0: 1}}, [0], [])
    rankings = Rankings(world.rankings.documents, world.rankings.scores, errors={1: "timed out"})
    scores = world.grader.score(rankings, [parse("RR")])
    assert scores.counted.tolist() == [True, False]
    assert scores.means() == {"RR": 1}


def test_without_a_counted_query_the_mean_is_nan() -> None:
    scores = score(create_empty_rankings(2, 5), judgments_of({0: {0: 0}}), 2, 3, [parse("AP"), parse("P@1")])
    assert np.isnan(list(scores.means().values())).all()


def test_no_query_at_all_scores_nothing() -> None:
    assert score(create_empty_rankings(0, 5), judgments_of({}), 0, 3, TREC_EVAL).values.shape == (len(TREC_EVAL), 0)


def test_grades_below_0_gain_nothing_and_are_not_gold() -> None:
    scores = scored(simple({0: {0: -2, 1: 1}}, [0, 1]), "nDCG@2", "AP", "Judged@2", "Bpref")
    assert scores.means() == {"nDCG@2": pytest.approx(1 / np.log2(3)), "AP": 0.5, "Judged@2": 1, "Bpref": 1}


def test_a_slice_keeps_the_values_of_its_queries() -> None:
    scores = scored(simple({0: {0: 1}, 1: {0: 1}, 2: {1: 0}}, [0], [1, 0], [1]), "RR")
    assert scores.select(np.array([False, True, True])).means() == {"RR": 0.5}
    assert scores.select(np.array([0, 1])).means() == {"RR": 0.75}


def test_a_measure_that_was_not_measured_is_refused() -> None:
    with pytest.raises(MeasureError, match="AP was not measured; choose from RR, P@1"):
        scored(simple({0: {0: 1}}, [0]), "RR", "P@1").of("AP")


def test_rankings_of_other_queries_or_of_another_corpus_are_refused() -> None:
    world = simple({0: {0: 1}}, [0])
    with pytest.raises(ValueError, match="rankings of 2 queries do not match judgments of 1"):
        world.grader.score(create_empty_rankings(2, 3), [parse("AP")])
    with pytest.raises(
        ValueError, match="the rankings contain document number 20, but the corpus has only 20 documents"
    ):
        world.grader.score(Rankings(world.rankings.documents + 20, world.rankings.scores), [parse("AP")])


def test_scoring_again_gives_the_same_and_changes_no_argument() -> None:
    world = simple({0: {0: 1, 4: 2}, 1: {3: 0}}, [4, 2, 0], [3])
    grader, before = world.grader, world.rankings.documents.copy()
    first, second = (grader.score(world.rankings, TREC_EVAL).values for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(world.rankings.documents, before)
