from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus, Rankings
from runner.datasets.base import Judgments, Queries
from runner.datasets.chunking import Tokens
from runner.datasets.dataset import Dataset
from runner.evaluation.verdicts import GradeVerdict, cut_warning
from runner.features.judge.judging import JudgedRankings, Judging, bounds, fill_judgments, judge_pairs, pool
from runner.metrics.measures import parse
from tests.evaluation.chats import Scripted, always
from tests.strategies.rankings import unique_lists


def rankings(*rows: list[int]) -> Rankings:
    width = max(map(len, rows))
    documents = np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int32)
    return Rankings(documents, -np.arange(width, dtype=np.float32) + np.zeros_like(documents, dtype=np.float32))


def judgments(*rows: tuple[int, int, int]) -> Judgments:
    return Judgments.of(rows)


JUDGED = judgments((0, 0, 1), (0, 3, 0), (1, 1, 1), (2, 0, 0))  # the third query has no gold


def make_dataset() -> Dataset:
    corpus = Corpus([f"d{i}" for i in range(6)], [f"text {i}" for i in range(6)], [f"title {i}" for i in range(6)])
    queries = Queries(["q0", "q1", "q2"], ["zero", "one", "two"], ["", "", ""])
    return Dataset("d", "test", corpus, queries, JUDGED)


DATASET = make_dataset()


def ranked(run: Rankings, judged: Judgments = JUDGED, dataset: Dataset = DATASET) -> JudgedRankings:
    return JudgedRankings(dataset, run, judged)


def test_the_pool_is_the_unjudged_documents_most_prominent_first() -> None:
    one, other = rankings([0, 4, 5], [2, 1], [4]), rankings([4, 3, 2], [2, 5], [5])
    found = [ranked(one), ranked(other)]
    assert list(pool(found, depth=2)) == [(0, 4), (1, 2), (1, 5)]
    assert list(pool(found, depth=3)) == [(0, 4), (1, 2), (1, 5), (0, 2), (0, 5)]
    assert list(pool(found, depth=2).values()) == [(1, 4), (0, 2), (1, 5)]


def test_a_pool_of_all_queries_has_those_without_gold_too() -> None:
    run = [ranked(rankings([0, 4], [1], [4, 0]))]
    assert list(pool(run, depth=2)) == [(0, 4)]
    assert list(pool(run, depth=2, all_queries=True)) == [(2, 4), (0, 4)]


def test_judgments_of_a_search_type_lack_other_pairs_and_are_filled_by_themselves() -> None:
    """The third query has gold for this type alone, so that the others' null result stays as it is."""
    own = judgments((0, 0, 1), (0, 4, 1), (1, 1, 1), (2, 0, 1))
    one, other = rankings([0, 4], [1], [4]), rankings([4, 3], [1], [4])
    pairs = pool([ranked(one), ranked(other, own)], depth=2)
    assert list(pairs) == [(2, 4), (0, 3), (0, 4)]
    said = [GradeVerdict(3.0, "graded")] * 3
    rows = [set(after.list_rows()) for after in (fill_judgments(JUDGED, pairs, said), fill_judgments(own, pairs, said))]
    assert rows[0] == {(0, 0, 1), (0, 3, 0), (0, 4, 1), (1, 1, 1), (2, 0, 0)}
    assert rows[1] == {(0, 0, 1), (0, 3, 1), (0, 4, 1), (1, 1, 1), (2, 0, 1), (2, 4, 1)}


def test_the_judge_sees_query_and_document(tmp_path: Path) -> None:
    llm = always('{"grade": 2, "reasoning": "nearly"}')
    said, journal = judge_pairs(Judging(llm=llm), [ranked(rankings([]))], {(1, 2): (0, 2)}, tmp_path)
    assert "one" in llm.asked[0]
    assert "title 2 text 2" in llm.asked[0]
    assert (said[0].grade, said[0].reasoning) == (2, "nearly")
    assert journal.file.is_file()


def test_a_budget_judges_the_head_of_the_pool_and_the_next_start_the_rest(tmp_path: Path) -> None:
    found, pairs = [ranked(rankings([]))], {pair: (0, pair[1]) for pair in [(0, 4), (1, 2), (1, 5), (0, 5)]}
    said, _ = judge_pairs(Judging(llm=always('{"grade": 3}', budget=2)), found, pairs, tmp_path)
    assert sorted(verdict.outcome for verdict in said) == ["graded", "graded", "unasked", "unasked"]
    llm = always('{"grade": 3}')
    said, _ = judge_pairs(Judging(llm=llm), found, pairs, tmp_path)
    assert [verdict.outcome for verdict in said] == ["graded"] * 4
    assert len(llm.asked) == 2


@pytest.mark.parametrize(
    ("greatest", "grades"), [(1, [0, 0, 1, 1]), (2, [0, 1, 1, 2]), (3, [0, 1, 2, 3]), (4, [0, 1, 3, 4])]
)
def test_grades_are_put_on_the_scale_of_the_judgments(greatest: int, grades: list[int]) -> None:
    own = judgments((0, 0, greatest))
    after = fill_judgments(own, [(0, d) for d in (1, 2, 3, 4)], [GradeVerdict(float(g), "graded") for g in range(4)])
    assert after.documents.tolist() == [0, 1, 2, 3, 4]
    assert after.grades.tolist() == [greatest, *grades]


def test_what_could_not_be_judged_stays_unjudged_and_what_people_judged_stays() -> None:
    after = fill_judgments(JUDGED, [(0, 4), (0, 5)], [GradeVerdict(None, "error"), GradeVerdict(3.0, "graded")])
    assert after.list_rows() == [(0, 0, 1), (0, 3, 0), (0, 5, 1), (1, 1, 1), (2, 0, 0)]


def test_bounds_by_hand() -> None:
    found = bounds(ranked(rankings([4, 0], [2, 1], [4, 5])), parse("P@2"), depth=2)
    assert (found.irrelevant, found.relevant, found.judged) == (0.5, 1.0, 0.5)


@given(
    st.lists(unique_lists(range(6), 4, fewest=4), min_size=3, max_size=3),
    st.sampled_from(["P@3", "Success@3", "RR@3"]),
    st.lists(st.integers(0, 3), min_size=20, max_size=20),
)
def test_whatever_a_judge_says_the_measure_is_within_the_bounds(
    rows: list[list[int]], measure: str, said: list[int]
) -> None:
    run = rankings(*rows)
    before = bounds(ranked(run), parse(measure), depth=3)
    pairs = pool([ranked(run)], depth=3)
    verdicts = [GradeVerdict(float(grade), "graded") for grade in said[: len(pairs)]]
    after = bounds(ranked(run, fill_judgments(JUDGED, pairs, verdicts)), parse(measure), depth=3)
    assert before.irrelevant <= after.irrelevant <= after.relevant <= before.relevant
    assert after.irrelevant == after.relevant  # nothing is left unjudged
    assert after.judged == 1


def test_a_judge_that_knows_the_truth_gives_the_true_score(tmp_path: Path) -> None:
    truth = judgments((0, 0, 1), (0, 3, 0), (0, 4, 1), (0, 5, 0), (1, 1, 1), (1, 2, 1), (2, 0, 0))
    run = rankings([4, 5, 0], [2, 1, 3], [0])
    right = {(q, d): g for q, d, g in zip(truth.queries, truth.documents, truth.grades, strict=True)}

    def knows(question: str, before: int) -> str:
        query = next(q for q, text in enumerate(DATASET.queries.texts) if f"**Query:** {text}\n" in question)
        document = next(d for d in range(6) if f"text {d}\n" in question)
        return f'{{"grade": {3 * right.get((query, document), 0)}}}'

    pairs = pool([ranked(run)], depth=3)
    said, _ = judge_pairs(Judging(llm=Scripted(knows)), [ranked(run)], pairs, tmp_path)
    mine = bounds(ranked(run, fill_judgments(JUDGED, pairs, said)), parse("nDCG@3"), depth=3)
    assert mine.irrelevant == pytest.approx(bounds(ranked(run, truth), parse("nDCG@3"), depth=3).irrelevant)


def test_chunks_are_pooled_by_document_and_judged_by_the_first() -> None:
    """Of two results, cut in other ways, the one that has a document further up shows it; its other chunks add none."""
    cut = DATASET.split_documents(Tokens(1))  # "text", "0", "text", "1", ...
    chunks = rankings([9, 11, 8, 0], [4, 2], [8])
    whole = rankings([5, 4], [2], [4])
    pairs = pool([ranked(chunks, dataset=cut), ranked(whole)], depth=3)
    assert pairs == {(0, 4): (0, 9), (1, 2): (0, 4), (0, 5): (1, 5)}
    assert pool([ranked(whole), ranked(chunks, dataset=cut)], depth=3)[(1, 2)] == (0, 2)


def test_the_judge_sees_the_chunk_and_its_grade_is_of_the_document(tmp_path: Path) -> None:
    cut, llm = DATASET.split_documents(Tokens(1)), always('{"grade": 3}')
    found = ranked(rankings([9, 8, 0], [2], [8]), dataset=cut)
    pairs = pool([found], depth=3)
    said, _ = judge_pairs(Judging(llm=llm), [found], pairs, tmp_path)
    assert "title 4 4" in llm.asked[0]
    assert "title 4 text" not in llm.asked[0]
    after = fill_judgments(JUDGED, pairs, said)
    assert (0, 4, 1) in after.list_rows()
    before, now = (bounds(ranked(found.rankings, judged, cut), parse("RR"), depth=3) for judged in (JUDGED, after))
    assert (before.irrelevant, before.relevant) == ((1 / 3 + 1) / 2, 1)
    assert (now.irrelevant, now.relevant, now.judged) == (1, 1, 1)


def test_a_hit_that_the_corpus_lacks_is_not_pooled_and_may_be_relevant() -> None:
    """It has no text to judge; the bounds still count it."""
    run = Rankings(
        *(getattr(rankings([6, 0], [7, 1], [7]), name) for name in ("documents", "scores")), unknown_ids=("x", "y")
    )
    assert list(pool([ranked(run)], depth=2)) == []
    found = bounds(ranked(run), parse("P@2"), 2)
    assert (found.irrelevant, found.relevant) == (0.5, 1)


def test_a_text_that_is_too_long_is_cut_and_the_verdict_says_so(tmp_path: Path) -> None:
    corpus = Corpus(["long", "short"], ["x" * 200, "y" * 20], ["", ""])
    dataset = Dataset("d", "test", corpus, Queries(["q"], ["zero"], [""]), JUDGED)
    llm = always('{"grade": 2}')
    found = [ranked(rankings([]), dataset=dataset)]
    said, _ = judge_pairs(Judging(llm=llm, max_characters=100), found, {(0, 0): (0, 0), (0, 1): (0, 1)}, tmp_path)
    assert [verdict.cut for verdict in said] == [True, False]
    assert not any("x" * 95 in question for question in llm.asked)
    assert cut_warning(said).startswith("1 of 2 verdicts are based on texts that were cut")
