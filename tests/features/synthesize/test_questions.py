"""Sentences of plain patterns are turned into the questions that they answer; others into none."""

from __future__ import annotations

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.material import Material
from runner.features.synthesize.questions import iter_heading_questions, iter_questions
from runner.features.synthesize.terms import count_terms

TEXTS = [
    "You can configure the beacon to set a signal. They store the cargo in a hold, and we inspect the cargo. "
    "A pilot can refuse a ship. The pilots may refuse the ships of a harbour. It can reject a vessel in it.",
    "The harbour has a beacon. The beacon of the harbour can signal to a pilot, and you must configure it.",
    "A customs officer inspects the ships, and they reject cargo without a declaration.",
    *(f"Page {number} says nothing of all that." for number in range(20)),
]
NAMES = [str(number) for number in range(len(TEXTS))]
CHUNKS = Chunks(NAMES, NAMES, TEXTS)
MATERIAL = Material(CHUNKS, Bundle((0,), (1, 2)), count_terms(CHUNKS, Analyzer()))


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("A beacon is a light that guides ships into the harbour.", "what is a beacon"),
        ("A beacon is used to guide ships at night.", "what is a beacon used for"),
        ("To configure the beacon of your harbour, turn the wheel.", "how do I configure the beacon of my harbour"),
        ("You can configure the beacon from the tower.", "how do I configure the beacon from the tower"),
        ("A pilot can refuse a ship if the wind is strong.", "when can a pilot refuse a ship"),
        ("A pilot can refuse a ship because the wind is strong.", "why can a pilot refuse a ship"),
        ("The cargo is stored in a dry hold.", "where is the cargo stored"),
        ("The beacon defaults to red.", "what does the beacon default to"),
        ("The harbour has four beacons on its mole.", "how many beacons does the harbour have"),
        ("The beacon was introduced in 1901.", "when was the beacon introduced"),
    ],
)
def test_a_sentence_answers_a_question(sentence: str, question: str) -> None:
    assert question in list(iter_questions(sentence, MATERIAL))


@pytest.mark.parametrize(
    "sentence",
    [
        "This is a beacon.",
        "It can refuse a ship if the wind is strong.",
        "The following beacon is a light that guides ships.",
        "When the wind is strong is a time for pilots.",
        "`beacon` is a | of <lights>.",
    ],
)
def test_a_sentence_that_needs_its_page_is_not_turned_round(sentence: str) -> None:
    assert list(iter_questions(sentence, MATERIAL)) == []


def test_a_heading_that_tells_to_do_something_is_a_question_how() -> None:
    assert (
        next(iter_heading_questions("Configuring the Beacon Signal", MATERIAL))
        == "how do I configure the beacon signal"
    )
    assert "what is customs officer" in list(iter_heading_questions("Customs officer", MATERIAL))


@pytest.mark.parametrize(
    "sentence",
    [
        "The beacon can signal ships in a light-inspired, simple and cheap way.",
        "The beacon uses a customs-inspired, multi-harbour form.",
        "The cargo can help you.",
        "FINDINGS The beacon is used to guide ships.",
        "A pilot can use the beacon of the harbour to see if a vessel comes.",
    ],
)
def test_a_question_lacks_neither_its_object_nor_its_subject(sentence: str) -> None:
    assert list(iter_questions(sentence, MATERIAL)) == []
