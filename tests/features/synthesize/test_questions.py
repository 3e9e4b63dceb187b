"""Headings and sentences of plain patterns become the questions that they answer; others do not."""

from __future__ import annotations

import pytest

from runner.features.synthesize.questions import iter_questions
from tests.features.synthesize.manual import write_material


@pytest.mark.parametrize(
    ("text", "heading", "question"),
    [
        ("A beacon is a light that guides ships into the harbour.", "Beacons", "what is a beacon"),
        ("Beacons are the lights of a harbour.", "Beacons", "what are beacons"),
        ("To configure the beacon of your harbour, turn the wheel.", "", "how do I configure the beacon of my harbour"),
        ("If you want to store a wet cargo, ask.", "Holds", "how do I store a wet cargo"),
        ("Text.", "Configuring the Beacon Signal", "how do I configure the beacon signal"),
        ("Text.", "Why do beacons blink?", "why do beacons blink"),
    ],
)
def test_a_heading_or_a_sentence_answers_a_question(text: str, heading: str, question: str) -> None:
    assert question in list(iter_questions(write_material(text, heading)))


@pytest.mark.parametrize(
    "text",
    [
        "This is a beacon.",
        "The following beacon is a light that guides ships.",
        "The reason for a beacon is the dark.",
        "A tug is a ship.",
        "To see it, turn the wheel.",
        "To configure the beacon below, turn the wheel.",
        "To learn more about beacons, read on.",
    ],
)
def test_a_sentence_that_needs_its_page_gives_no_question(text: str) -> None:
    assert list(iter_questions(write_material(text, "Beacon"))) == []
