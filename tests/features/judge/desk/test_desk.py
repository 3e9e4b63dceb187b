"""What an assessor sees and what a keystroke changes."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from runner.features.judge.desk.desk import Desk, DeskError
from runner.features.judge.desk.export import format_setting
from runner.features.judge.desk.journal import Action, load_journals
from runner.features.judge.desk.merging import list_disputes, merge_grades
from runner.features.judge.desk.pages import name_grade
from runner.features.judge.desk.queue import BATCH, is_shared
from runner.features.judge.order import ORDERS
from runner.pages.highlighting import iter_segments
from tests.features.judge.desk.desks import build_pool, open_desk
from tests.features.judge.test_judging import judgments


def grade_next(desk: Desk, grade: int) -> tuple[str, str]:
    pair = desk.view().pair
    assert pair is not None
    desk.decide("grade", pair.ids, grade)
    return pair.ids


def test_pairs_come_once_with_queries_and_near_duplicates_together(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    seen = [grade_next(desk, 1) for _ in range(len(desk.pool))]
    assert sorted(seen) == sorted(desk.pool.ids)
    assert desk.view().pair is None
    for start in range(0, len(seen), BATCH):
        queries = [query for query, _ in seen[start : start + BATCH]]
        assert sum(a != b for a, b in pairwise(queries)) <= 1
    for query in ("q0", "q1"):
        assert abs(seen.index((query, "d1")) - seen.index((query, "d2"))) == 1
    desk.journal.close()


def test_the_second_of_two_near_duplicates_shows_the_grade_of_the_first(tmp_path: Path) -> None:
    desk, hints = open_desk(tmp_path), {}
    while (view := desk.view()).pair:
        hints[view.pair.ids] = view.duplicate_grade
        desk.decide("grade", view.pair.ids, 2)
    assert sorted(hint is None for hint in (hints["q0", "d1"], hints["q0", "d2"])) == [False, True]
    assert {hint for pair, hint in hints.items() if pair[1] not in ("d1", "d2")} == {None}
    desk.journal.close()


def test_documents_of_a_query_come_in_an_order_that_depends_on_the_assessor(tmp_path: Path) -> None:
    orders = []
    for folder, assessor in (("1", "anna"), ("2", "anna"), ("3", "ben")):
        desk = open_desk(tmp_path / folder, assessor=assessor)
        orders.append([grade_next(desk, 0) for _ in range(len(desk.pool))])
        desk.journal.close()
    assert orders[0] == orders[1] != orders[2]


def test_undo_brings_the_pair_back_and_the_grade_is_gone(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    first = grade_next(desk, 3)
    grade_next(desk, 0)
    desk.undo()
    desk.undo()
    view = desk.view()
    assert view.pair is not None and view.pair.ids == first and not view.can_undo
    assert (view.progress.decided, desk.journal.assessment.grades) == (0, {})
    desk.undo()  # nothing is left to take back
    assert grade_next(desk, 1) == first
    desk.journal.close()


def test_pairs_that_were_undone_come_back_in_the_order_of_their_decisions(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    order = [grade_next(desk, 1) for _ in range(2)]
    view = desk.view()
    assert view.pair is not None
    desk.decide("skip", view.pair.ids)
    for _ in range(3):
        desk.undo()
    assert [*(grade_next(desk, 2) for _ in range(2)), grade_next(desk, 0)] == [*order, view.pair.ids]
    desk.journal.close()


def test_a_form_that_is_sent_twice_counts_once(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    pair = grade_next(desk, 3)
    desk.decide("grade", pair, 3, "")
    assert desk.journal.assessment.grades == {pair: 3}
    desk.journal.close()


@pytest.mark.parametrize(("action", "grade", "note"), [("grade", 0, ""), ("unsure", None, ""), ("grade", 3, "new")])
def test_a_page_from_before_the_decision_cannot_change_it(
    tmp_path: Path, action: Action, grade: int | None, note: str
) -> None:
    desk = open_desk(tmp_path)
    pair = grade_next(desk, 3)
    with pytest.raises(DeskError, match="You had graded that document 3 already"):
        desk.decide(action, pair, grade, note)
    assert (desk.journal.assessment.grades, desk.journal.assessment.notes) == ({pair: 3}, {})
    desk.journal.close()


def test_skipped_pairs_come_last_and_unsure_ones_not_again(tmp_path: Path) -> None:
    desk, skipped = open_desk(tmp_path), []
    for action in ("skip", "unsure", "skip"):
        pair = desk.view().pair
        assert pair is not None
        desk.decide(action, pair.ids)  # type: ignore[arg-type]  # three of the actions
        skipped.append(pair.ids)
    progress = desk.view().progress
    assert (progress.decided, progress.skipped, progress.unsure) == (1, 2, 1)
    rest = [grade_next(desk, 1) for _ in range(len(desk.pool) - 3)]
    assert not set(rest) & set(skipped)
    assert [grade_next(desk, 1), grade_next(desk, 1)] == [skipped[0], skipped[2]]
    assert desk.view().pair is None
    desk.journal.close()


def test_a_desk_that_opens_again_goes_on(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    grades = {grade_next(desk, 2): 2 for _ in range(5)}
    desk.journal.close()
    again = open_desk(tmp_path)
    assert again.journal.assessment.grades == grades
    assert again.view().progress.decided == 5
    assert grade_next(again, 1) not in grades
    again.journal.close()


@pytest.mark.parametrize(
    ("pair", "grade", "message"), [(("q0", "nowhere"), 1, "not in the pool"), (("q0", "d3"), 4, "outside the scale")]
)
def test_a_wrong_request_changes_nothing(tmp_path: Path, pair: tuple[str, str], grade: int, message: str) -> None:
    desk = open_desk(tmp_path)
    with pytest.raises(DeskError, match=message):
        desk.decide("grade", pair, grade, "a note")
    assert desk.journal.file.read_bytes() == b""
    desk.journal.close()


def test_the_scale_is_that_of_the_dataset_or_from_0_to_3() -> None:
    assert build_pool().greatest == 3
    assert build_pool(judged=judgments((0, 0, 1))).greatest == 1
    assert build_pool(judged=judgments((0, 0, 0))).greatest == 3


def test_a_goal_ends_the_session_until_it_is_raised(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, goal=2)
    grade_next(desk, 1)
    grade_next(desk, 1)
    assert desk.view().pair is None
    assert desk.view().progress.beyond == len(desk.pool) - 2
    desk.extend_goal(1)
    grade_next(desk, 1)
    assert desk.view().pair is None
    desk.journal.close()


def test_the_time_left_follows_from_the_median_time_of_a_graded_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durations = [4, 4, 4, 4, 8, 8, 8, 8, 8, 9999]
    clock = iter(np.cumsum([0, 0.1, *(step for duration in durations for step in (0, duration))]).tolist())
    desk = open_desk(tmp_path)
    monkeypatch.setattr("runner.features.judge.desk.desk.time.monotonic", lambda: next(clock))
    for action, grade in [("skip", None), *[("grade", 0)] * len(durations)]:
        view = desk.view()
        assert view.pair is not None and view.progress.seconds_left is None
        desk.decide(action, view.pair.ids, grade)
    assert [entry.seconds for entry in desk.journal.assessment.order] == [0.1, *durations[:-1], 300]
    assert desk._measure_progress().seconds_left == 8 * (len(desk.pool) - len(durations))
    desk.journal.close()


def test_assessors_share_some_pairs_and_split_the_rest(tmp_path: Path) -> None:
    anna = open_desk(tmp_path, overlap=0.3)
    first = [grade_next(anna, 1) for _ in range(len(anna.pool))]
    ben = open_desk(tmp_path, assessor="ben", overlap=0.3)
    shared = {pair for pair in first if is_shared(pair, 0, 0.3)}
    assert 0 < len(shared) < len(first)
    assert {grade_next(ben, 0) for _ in range(len(shared))} == shared
    assert ben.view().pair is None
    anna.journal.close()
    ben.journal.close()
    assert load_journals(tmp_path / "journals", 3)["anna"].grades == dict.fromkeys(first, 1)


def test_differing_grades_are_settled_and_the_settled_grade_counts(tmp_path: Path) -> None:
    anna, ben = open_desk(tmp_path, overlap=1), open_desk(tmp_path, assessor="ben", overlap=1)
    for pair, (one, other) in zip(anna.pool.ids, [(3, 0), (2, 3), (1, 1)], strict=False):
        anna.decide("grade", pair, one)
        ben.decide("grade", pair, other, "really?")
    ben.decide("unsure", anna.pool.ids[3])
    disputes = anna.list_disputes()
    assert [dispute.pair for dispute in disputes] == [anna.pool.ids[place] for place in (0, 1, 3)]
    assert [(name, entry.grade, note) for name, entry, note in disputes[0].opinions] == [
        ("anna", 3, ""), ("ben", 0, "really?"),
    ]  # fmt: skip
    assert [(final.grade, final.assessors) for final in merge_grades(anna.assessments)] == [
        (final.grade, final.assessors) for final in sorted(merge_grades(anna.assessments), key=lambda final: final.pair)
    ]
    grades = {final.pair: final.grade for final in merge_grades(anna.assessments)}
    assert [grades[pair] for pair in anna.pool.ids[:3]] == [2, 3, 1]  # means, 0.5 rounded up
    anna.decide("settle", anna.pool.ids[0], 0)
    settled = {final.pair: final for final in merge_grades(ben.assessments)}
    assert (settled[anna.pool.ids[0]].grade, settled[anna.pool.ids[0]].is_settled) == (0, True)
    assert len(list_disputes(ben.assessments)) == 2
    anna.undo()
    assert len(list_disputes(anna.assessments)) == 3
    anna.journal.close()
    ben.journal.close()


@pytest.mark.parametrize("order", ["random", *ORDERS])
def test_every_order_shows_each_pair_once(tmp_path: Path, order: str) -> None:
    desk = open_desk(tmp_path, build_pool(documents=20), order=order)
    seen = [grade_next(desk, place % 4) for place in range(len(desk.pool))]
    assert sorted(seen) == sorted(desk.pool.ids)
    assert desk.view().pair is None
    desk.journal.close()


@pytest.mark.parametrize(
    ("query", "marked"),
    [("what must the flow of air be", ["flows", "air"]), ("what is the", ["the", "What", "the", "is"])],
)
def test_content_words_are_highlighted_and_stop_words_only_without_any(query: str, marked: list[str]) -> None:
    text = "the flows: What must be of the air is clear"
    segments = list(iter_segments(text, query))
    assert "".join(piece for piece, _ in segments) == text
    assert [piece for piece, hit in segments if hit] == marked


@pytest.mark.parametrize("greatest", range(1, 10))
def test_the_ends_of_every_scale_have_words(greatest: int) -> None:
    names = [name_grade(grade, greatest) for grade in range(greatest + 1)]
    assert names[0] and names[-1] and "best" not in names
    assert greatest > 4 or all(names)


def test_the_printed_setting_keeps_the_grades_that_results_already_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("by_hand")
    assert format_setting(folder, ()) == "dataset.extra_qrels=by_hand/judgments.tsv"
    assert format_setting(folder, ["by_hand/judgments.tsv"]) == "dataset.extra_qrels=by_hand/judgments.tsv"
    both = format_setting(folder, ["first round.tsv", str(tmp_path / folder / "judgments.tsv")])
    assert shlex.split(both) == ['dataset.extra_qrels=["first round.tsv",by_hand/judgments.tsv]']
