"""Why queries miss their gold: each class by its evidence, and what is not claimed without any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import MemoryStore
from runner.evaluation.failure_classes import ADVICE, UNCLASSIFIED, FailureClass
from runner.evaluation.failures import (
    FailureSettings,
    JudgedRun,
    Lexicon,
    QueryFailure,
    explain_failures,
)

CORPUS = Corpus(
    ["boat", "ship", "pier", "lamp", "fish"],
    [
        "a boat in the harbour at night",
        "a vessel moored by the quay",
        "the harbour has a pier and a boat",
        "the lamp of the harbour",
        "fish of the harbour",
    ],
)
TWO = FailureSettings(cutoff=2)
IDF_OF_TWO, IDF_OF_FOUR = (1 - np.log(n) / np.log(5) for n in (2, 4))
"""The weight of a word that two, or four, of the five documents have."""
LEXICON = Lexicon(CORPUS, Analyzer(), MemoryStore())


def judged(
    *queries: tuple[str, Sequence[tuple[str, float]], Mapping[str, int]],
    documents: Sequence[str] = CORPUS.ids,
    known: Sequence[str] | None = None,
) -> JudgedRun:
    """Return queries with what they found and the grades of what is judged."""
    depth = max(len(found) for _, found, _ in queries)
    positions = np.full((len(queries), depth), NOTHING, dtype=np.int32)
    scores, grades = np.full((len(queries), depth), -np.inf, dtype=np.float32), positions.copy()
    for i, (_, found, qrels) in enumerate(queries):
        for j, (name, score) in enumerate(found):
            positions[i, j], scores[i, j], grades[i, j] = documents.index(name), score, qrels.get(name, -1)
    expected = [[name for name, grade in qrels.items() if grade > 0] for _, _, qrels in queries]
    return JudgedRun(
        [text for text, _, _ in queries],
        Rankings(positions, scores),
        grades,
        documents,
        expected,
        np.array([bool(gold) for gold in expected]),
        known,
    )


def only(run: JudgedRun, lexicon: Lexicon | None = LEXICON, **options: object) -> QueryFailure:
    (failure,) = explain_failures(run, lexicon, **{"settings": TWO, **options})  # type: ignore[arg-type]  # options of any kind
    return failure


def test_a_query_is_missed_if_no_gold_is_in_its_first_places() -> None:
    run = judged(
        ("boat", [("boat", 3), ("pier", 2)], {"boat": 1}),
        ("pier", [("boat", 3), ("pier", 2)], {"pier": 1}),
        ("lamp", [("boat", 3), ("pier", 2), ("lamp", 1)], {"lamp": 1}),
        ("fish", [("boat", 3)], {"fish": 1}),
        ("moon", [("boat", 3)], {}),
    )
    assert [(f.query, f.gold, f.gold_rank) for f in explain_failures(run, LEXICON, settings=TWO)] == [
        (2, "lamp", 3),
        (3, "fish", None),
    ]


def test_a_gold_with_few_of_the_words_is_a_vocabulary_mismatch() -> None:
    run = judged(("boat at night in a harbour", [("boat", 3), ("pier", 2)], {"ship": 1}))
    failure = only(run)
    assert "vocabulary mismatch" in failure.classes
    assert failure.overlap == 0
    assert "vocabulary mismatch" in only(run, semantic=np.array([True])).classes


def test_it_is_none_if_a_semantic_retriever_would_not_find_the_gold_either() -> None:
    run = judged(("boat at night in a harbour", [("boat", 3), ("pier", 2)], {"ship": 1}))
    assert "vocabulary mismatch" not in only(run, semantic=np.array([False])).classes


def test_a_gold_with_some_of_the_words_counts_if_only_lsa_finds_it() -> None:
    """The pier stands in no ranking here, and by LSA next to what has the query's words."""
    run = judged(("vessel quay harbour pier", [("fish", 3), ("lamp", 2)], {"pier": 1}))
    lenient = FailureSettings(cutoff=2, some_overlap=0.5)
    failure = only(run, settings=lenient)
    assert failure.semantic_rank == 2
    assert failure.overlap == pytest.approx((1 + IDF_OF_FOUR) / (3 + IDF_OF_FOUR))
    assert "vocabulary mismatch" in failure.classes
    assert "vocabulary mismatch" not in only(run).classes  # too much overlap
    unasked = only(run, settings=FailureSettings(cutoff=2, some_overlap=0.5, semantic_documents=4))
    assert (unasked.semantic_rank, unasked.classes) == (None, ())


def test_lsa_looks_as_deep_as_the_search_also_if_the_rankings_are_shorter() -> None:
    run = judged(("vessel quay harbour pier", [("fish", 3)], {"pier": 1}))
    lenient = FailureSettings(cutoff=2, some_overlap=0.5)
    assert only(run, settings=lenient).semantic_rank == 2
    assert "vocabulary mismatch" not in only(run, settings=lenient).classes
    assert "vocabulary mismatch" in only(replace(run, depth=2), settings=lenient).classes
    found = judged(("vessel quay harbour pier", [("fish", 3), ("lamp", 2), ("pier", 1)], {"pier": 1}))
    assert "vocabulary mismatch" not in only(found, settings=lenient).classes


def test_the_overlap_is_that_of_the_gold_with_the_most() -> None:
    run = judged(("lamp quay", [("boat", 3), ("pier", 2)], {"boat": 1, "ship": 1, "lamp": 1}))
    run.grades[0, 0] = -1  # found, but not as gold
    assert only(run).overlap == pytest.approx(0.5)


def test_common_words_and_scores_that_are_alike_are_a_specificity_gap() -> None:
    flat = [("boat", 1.0), ("pier", 0.9), ("fish", 0.8)]
    steep = [("fish", 9.0), ("lamp", 5.0)]
    run = judged(
        ("harbour", flat, {"lamp": 1}),
        ("fish", steep, {"fish": 1}),
        ("lamp", [("lamp", 8.0), ("fish", 5.0)], {"lamp": 1}),
        ("night", flat, {"lamp": 1}),
    )
    vague, precise = explain_failures(run, LEXICON, settings=TWO)
    assert "specificity gap" in vague.classes
    assert vague.idf == pytest.approx(IDF_OF_FOUR)
    assert vague.spread == pytest.approx(0.1 / ((3 + 0.1) / 2), rel=1e-5)
    assert precise.idf == 1
    assert "specificity gap" not in precise.classes


def test_a_document_judged_irrelevant_above_the_gold_is_a_distractor() -> None:
    failure = only(judged(("lamp", [("boat", 3), ("pier", 2.5), ("lamp", 1)], {"pier": 0, "lamp": 1})))
    assert "distractor overlap" in failure.classes
    assert (failure.rival, failure.rival_grade, failure.lead) == ("pier", 0, 1.5)


def test_so_is_one_with_more_of_the_words_than_any_gold() -> None:
    failure = only(judged(("boat at the pier", [("fish", 3), ("pier", 2), ("boat", 1)], {"boat": 1})))
    assert (failure.rival, failure.rival_grade) == ("pier", None)
    assert failure.overlap == pytest.approx(IDF_OF_TWO / (1 + IDF_OF_TWO))
    assert failure.rival_overlap == pytest.approx(1)


def test_no_document_distracts_from_a_gold_without_the_words_or_in_a_vague_query() -> None:
    other_words = only(judged(("boat at the pier", [("fish", 3), ("pier", 2)], {"lamp": 1})))
    assert (other_words.rival, other_words.classes) == (None, ("vocabulary mismatch",))
    flat = [("fish", 1.0), ("boat", 0.9), ("lamp", 0.8)]
    vague, _ = explain_failures(
        judged(("harbour moon", flat, {"ship": 1}), ("lamp", [("boat", 8), ("fish", 1)], {"lamp": 1})),
        LEXICON, settings=FailureSettings(cutoff=2, low_overlap=0, low_idf=0.5),
    )  # fmt: skip
    assert vague.rival is None


def test_hits_below_the_gold_or_the_cutoff_are_not_distractors() -> None:
    found = [("fish", 5), ("ship", 4), ("pier", 3), ("lamp", 1)]
    failure = only(judged(("lamp", found, {"pier": 0, "lamp": 1})))
    assert failure.rival is None
    assert failure.unjudged == 2


def test_an_unjudged_document_above_the_gold_is_of_note_if_it_is_like_gold() -> None:
    twins = Corpus(["old", "new", "other", "far"], ["a lamp on a pier", "a lamp on the pier", "a fish", "the moon"])
    lexicon = Lexicon(twins, Analyzer(), MemoryStore())
    found = [("other", 3.0), ("old", 2.0), ("new", 1.0)]
    failure = only(judged(("lamp fish", found, {"new": 1}), documents=twins.ids), lexicon)
    assert "unjudged above gold" in failure.classes
    assert (failure.unjudged, failure.lookalike) == (2, "old")
    assert failure.likeness == pytest.approx(1)
    assert failure.rival == "other"  # what is like gold is no distractor
    known = only(judged(("lamp fish", found, {"new": 1, "old": 0}), documents=twins.ids), lexicon)
    assert (known.lookalike, known.rival) == (None, "old")


def test_unjudged_documents_above_the_gold_are_counted_like_it_or_not() -> None:
    failure = only(judged(("lamp", [("boat", 3), ("pier", 2), ("lamp", 1)], {"pier": 0, "lamp": 1})))
    assert (failure.unjudged, failure.lookalike) == (1, None)
    assert "unjudged above gold" not in failure.classes


def test_a_document_of_which_several_chunks_are_above_the_gold_counts_once() -> None:
    rows = ("lamp", [("boat", 3), ("fish", 2.5), ("pier", 2), ("lamp", 1)], {"lamp": 1})
    run = judged(rows)
    chunked = replace(run, documents=["boat" if name == "fish" else name for name in run.documents])
    wide = FailureSettings(cutoff=3)
    assert [only(each, settings=wide).unjudged for each in (run, chunked)] == [3, 2]


def test_gold_that_is_not_in_the_corpus_is_named() -> None:
    run = judged(("moon", [("boat", 3)], {"moon": 1}))
    assert only(run).absent == ("moon",)
    assert only(run).overlap is None
    assert "absent from the corpus" in only(run).classes
    by_ids = judged(("moon", [("boat", 3)], {"moon": 1, "lamp": 1}), known=CORPUS.ids)
    assert only(by_ids, lexicon=None).absent == ("moon",)


def test_without_texts_nothing_is_claimed_that_needs_them() -> None:
    run = judged(("boat at the pier", [("fish", 3), ("pier", 2), ("boat", 1)], {"boat": 1, "moon": 1}))
    failure = only(run, lexicon=None)
    assert failure.classes == ()
    assert (failure.overlap, failure.idf, failure.rival, failure.absent) == (None, None, None, ())


def test_a_query_without_terms_and_hits_is_a_failure_without_classes() -> None:
    run = judged(("of the", [], {"lamp": 1}), ("night", [("boat", 1)], {"boat": 1}))
    failure = only(run)
    assert (failure.gold, failure.gold_rank, failure.overlap, failure.idf, failure.spread) == ("lamp", *[None] * 4)
    assert failure.classes == ()


def test_rankings_without_a_place_miss_everything() -> None:
    assert only(judged(("lamp", [], {"lamp": 1}))).gold == "lamp"


def test_the_classes_are_of_the_ids_and_not_of_the_positions() -> None:
    """A record that was read back numbers its documents afresh."""
    rows = ("boat at the pier", [("fish", 3.0), ("pier", 2.0), ("boat", 1.0)], {"boat": 1, "fish": 0})
    assert only(judged(rows)) == only(judged(rows, documents=["pier", "fish", "boat"]))


@given(
    st.lists(st.permutations(CORPUS.ids), min_size=1, max_size=5),
    st.sampled_from([0.5, 4.0]),
    st.sampled_from([0.0, 8.0]),
)
def test_another_scale_of_scores_changes_no_class(orders: list[list[str]], by: float, to: float) -> None:
    def run(by: float, to: float) -> list[tuple[str, ...]]:
        queries = [
            (
                "boat harbour",
                [(name, by * 2.0 ** -(i + j) + to) for j, name in enumerate(order)],
                {"lamp": 1, "fish": 0},
            )
            for i, order in enumerate(orders)
        ]
        return [failure.classes for failure in explain_failures(judged(*queries), LEXICON, settings=TWO)]

    assert run(by, to) == run(1.0, 0.0)


@given(st.lists(st.sampled_from(["boat", "quay", "harbour", "moon", "the", "night"]), max_size=5).map(" ".join))
def test_overlaps_are_those_of_the_sets_of_terms_by_what_each_tells(query: str) -> None:
    tokens = LEXICON.analyzer.tokens
    having = [set(tokens(text)) for text in CORPUS.texts]
    weights = {t: 1 - np.log(max(sum(t in terms for terms in having), 1)) / np.log(5) for t in tokens(query)}
    found = LEXICON.overlaps(query, [*CORPUS.ids, "unknown"])
    for value, terms in zip(found, having, strict=False):
        shared, whole = (sum(weights[t] for t in of) for of in (weights.keys() & terms, weights))
        assert value == pytest.approx(shared / whole if whole else np.nan, nan_ok=True)
    assert np.isnan(found[-1])


def test_every_class_has_advice() -> None:
    assert ADVICE.keys() == {*get_args(FailureClass), UNCLASSIFIED}
    assert all(all(vars(advice).values()) for advice in ADVICE.values())
