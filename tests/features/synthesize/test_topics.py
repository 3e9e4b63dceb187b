"""A chunk's topic is what its headings name, as people type it."""

from __future__ import annotations

import pytest

from runner.features.synthesize.topics import clean_heading
from tests.features.synthesize.manual import SPEECH, write_material


@pytest.mark.parametrize(
    ("heading", "cleaned"),
    [
        ("2.1 Tide Windows", "tide windows"),
        ("Step 3: Open the Gate", "open the gate"),
        ("Example: opening two gates", "opening two gates"),
        ("Opening gates (since 2.0) ✨", "opening gates"),
        ("The `openGate` call", "the `openGate` call"),
        ("Mooring with LNG", "mooring with LNG"),
    ],
)
def test_a_heading_loses_its_number_and_asides_but_keeps_names(heading: str, cleaned: str) -> None:
    assert clean_heading(heading) == cleaned


@pytest.mark.parametrize(
    "heading",
    [
        "v2.4.0",
        "a => {b}",
        "1.",
        "tugs, cranes and pilots",
        "a heading that goes on for longer than anybody would type",
    ],
)
def test_a_heading_unlike_a_query_is_left_out(heading: str) -> None:
    assert clean_heading(heading) == ""


def test_the_topic_is_the_innermost_heading_if_that_says_enough() -> None:
    assert write_material("Text.", "Harbour > Beacon signals").topic == "beacon signals"


def test_a_heading_of_one_word_is_a_topic_only_without_a_title_or_from_code() -> None:
    assert write_material("Text.", "Beacon manual > Options").topic == ""
    assert write_material("Text.", "Beacon manual > openGate").topic == "openGate"
    assert write_material("Text.", "Beacons").topic == "beacons"


def test_a_heading_of_several_documents_is_replaced_by_the_title_of_its_page() -> None:
    material = write_material("Text.", "Beacon manual > See also", [("Tug manual > See also", "More text.")])
    assert material.topic == "beacon manual"


def test_a_heading_that_points_elsewhere_is_not_a_topic() -> None:
    assert write_material("Text.", "What you get from this").topic == ""


@pytest.mark.parametrize(
    ("heading", "action"),
    [
        ("Configure beacons", "configure beacons"),
        ("Configuring the beacon", "configure the beacon"),
        ("Storing a cargo", "store a cargo"),
        ("Beacon signals", ""),
        ("Configured beacons", ""),
        ("How to configure beacons", ""),
    ],
)
def test_an_action_begins_with_a_verb_of_the_corpus(heading: str, action: str) -> None:
    assert write_material("Text.", heading).action == action


def test_identifiers_are_in_a_heading_or_in_other_documents() -> None:
    text = "Call openGate, then closeGate. Again openGate, again closeGate, and local_lamp, local_lamp."
    material = write_material(text, "Using tideTable", [("", "The call openGate opens a gate.")])
    assert set(material.identifiers) == {"tideTable", "openGate"}


def test_without_headings_repeated_words_are_characteristic() -> None:
    text = "The tide window is short. A tide window opens twice."
    assert write_material(text).characteristic[0] == "tide window"
    assert write_material(text, more=[("Cranes", SPEECH)]).characteristic == []
