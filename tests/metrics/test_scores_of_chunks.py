"""Where chunks are searched, a document is found at its first chunk; the others take their places, no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import NOTHING, Rankings
from runner.metrics.measures import expand, parse
from runner.metrics.scores import Grader
from tests.metrics.worlds import World, by_ir_measures, judgments_of
from tests.strategies.judgments import chunk_worlds

MEASURES = (parse("RR"), *expand(["nDCG", "P", "R", "Success", "AP", "Rprec", "Bpref"], [1, 2, 3, 5, 20]))
BY_IR_MEASURES = [parse(name) for name in ("ERR@5", "nDCG(dcg='exp-log2')@5")]


def grader(world: World, document_of: np.ndarray) -> Grader:
    return Grader(judgments_of(world.qrels), len(world.rankings), 6, document_of)


def by_hand(world: World, document_of: np.ndarray) -> World:
    """Return the world of documents: later chunks of one are documents that nobody has heard of."""
    k, ids = world.rankings.depth, [f"d{document}" for document in range(7)]
    documents = np.full((len(world.rankings), k), NOTHING, dtype=np.int32)
    for query, row in enumerate(world.rankings.documents.tolist()):
        seen: set[int] = set()
        for place, chunk in enumerate(row):
            if chunk != NOTHING:
                document = int(document_of[chunk])
                documents[query, place] = len(ids) + place if document in seen else document
                seen.add(document)
    scores = np.where(documents == NOTHING, -np.inf, -np.arange(k)).astype(np.float32)
    strangers = [f"again{place}" for place in range(k)]
    return World(world.qrels, Rankings(documents, scores), len(ids) + k, [*ids, *strangers])


@given(chunk_worlds())
def test_scores_are_those_of_rankings_in_which_later_chunks_are_strangers(drawn: tuple[World, np.ndarray]) -> None:
    world, document_of = drawn
    scores = grader(world, document_of).score(world.rankings, MEASURES)
    expected = by_ir_measures(by_hand(world, document_of), MEASURES)
    np.testing.assert_allclose(scores.values[:, scores.counted], expected[:, scores.counted], rtol=0, atol=1e-9)


@given(chunk_worlds())
def test_measures_of_ir_measures_own_see_the_same_rankings(drawn: tuple[World, np.ndarray]) -> None:
    world, document_of = drawn
    scores = grader(world, document_of).score(world.rankings, BY_IR_MEASURES)
    expected = by_hand(world, document_of).grader.score(by_hand(world, document_of).rankings, BY_IR_MEASURES)
    np.testing.assert_allclose(scores.values, expected.values, rtol=0, atol=1e-9)


@given(chunk_worlds())
def test_chunks_that_are_whole_documents_are_scored_as_documents(drawn: tuple[World, np.ndarray]) -> None:
    world, _ = drawn
    n = len(world.ids)
    plain = Grader(judgments_of(world.qrels), len(world.rankings), n)
    cut = replace(plain, document_of=np.arange(n, dtype=np.int32))
    measures = (*MEASURES, *expand(["Judged"], [1, 3, 20]))
    np.testing.assert_array_equal(
        cut.score(world.rankings, measures).values, plain.score(world.rankings, measures).values
    )
    np.testing.assert_array_equal(cut.grades(world.rankings), plain.grades(world.rankings))


def one_query(qrels: dict[int, int], chunks: list[int], document_of: list[int]) -> tuple[Grader, Rankings]:
    found = Rankings(np.array([chunks], dtype=np.int32), -np.arange(len(chunks), dtype=np.float32)[None])
    return Grader(judgments_of({0: qrels}), 1, 6, np.array(document_of, dtype=np.int32)), found


def test_recall_counts_documents_and_a_rank_is_that_of_the_first_chunk() -> None:
    made, found = one_query({0: 2, 1: 1}, [4, 0, 1, 2], [0, 0, 1, 1, 5])
    scores = made.score(found, [parse(name) for name in ("RR", "R@3", "R@4", "P@3", "nDCG@4")])
    ideal, reached = 2 + 1 / np.log2(3), 2 / np.log2(3) + 1 / np.log2(5)
    np.testing.assert_allclose(scores.values[:, 0], [1 / 2, 1 / 2, 1, 1 / 3, reached / ideal])


def test_later_chunks_are_shown_as_judged_and_count_for_no_measure() -> None:
    made, found = one_query({0: 3, 1: 0}, [0, 1, 2, 3, 4], [0, 0, 1, 1, 5])
    assert made.grades(found).tolist() == [[3, 0, 0, 0, -1]]
    scores = made.score(found, [parse(name) for name in ("P@5", "Judged@2", "Judged@4", "Judged@5")])
    np.testing.assert_allclose(scores.values[:, 0], [1 / 5, 1, 1, 2 / 3])


@given(chunk_worlds(), st.sampled_from([1, 2, 5, 20]))
def test_the_judged_are_a_share_of_the_documents_of_the_first_chunks(drawn: tuple[World, np.ndarray], k: int) -> None:
    world, document_of = drawn
    judged = grader(world, document_of).score(world.rankings, [parse(f"Judged@{k}")])
    for query in np.flatnonzero(judged.counted).tolist():
        there = {int(document_of[chunk]) for chunk in world.rankings.documents[query, :k] if chunk != NOTHING}
        share = len(there & world.qrels[query].keys()) / len(there) if there else np.nan
        np.testing.assert_allclose(judged.values[0, query], share)


def test_each_unjudged_hit_outside_the_corpus_is_a_document_of_its_own() -> None:
    made, found = one_query({0: 1}, [0, 1, 2, 3, 2], [0, 0])
    made = replace(made, judged_ids={"known": 0})
    found = replace(found, unknown_ids=("a", "b"))
    assert made.score(found, [parse("Judged@5")]).values[0, 0] == pytest.approx(1 / 3)


def test_rankings_of_more_chunks_than_there_are_are_refused() -> None:
    made, found = one_query({0: 1}, [3], [0, 0, 1])
    with pytest.raises(ValueError, match="document number 3, but the corpus has only 3 documents"):
        made.score(found, [parse("RR")])
