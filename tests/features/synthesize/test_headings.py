"""Headings name topics and actions as somebody types them; labels of operations and cut phrases are left out."""

from __future__ import annotations

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.headings import drop_label, find_action, is_cut, iter_topics
from runner.features.synthesize.material import Material
from runner.features.synthesize.terms import count_terms

TEXTS = [
    "# Reading a Crane Log Entry\n\nThe crane writes a log entry for the pilot. A vessel has a log in the tower.",
    "The interface of the crane reports to the pilot. The cargo of a vessel is in the hold for the pilot.",
    "They assign memory to the crane. A pilot can poll the interface, and you must read the log.",
    *(f"Page {number} is about the harbour." for number in range(20)),
]
NAMES = [str(number) for number in range(len(TEXTS))]
CHUNKS = Chunks(NAMES, NAMES, TEXTS)
MATERIAL = Material(CHUNKS, Bundle((0,), (1, 2)), count_terms(CHUNKS, Analyzer()))


@pytest.mark.parametrize(
    ("heading", "described"),
    [
        ("deletecollection delete collection of Crane", "delete collection of Crane"),
        ("get read the specified Crane", "read the specified Crane"),
        ("patch partially update the specified Crane", "update the specified Crane"),
        ("create create a Crane", "create a Crane"),
        ("Load balancing of cranes", "Load balancing of cranes"),
    ],
)
def test_a_label_before_a_description_is_left_out(heading: str, described: str) -> None:
    assert drop_label(heading) == described


def test_what_points_at_the_rest_of_its_page_is_no_action() -> None:
    assert find_action("get read the specified Crane", MATERIAL.usage) == ""
    assert find_action("deletecollection delete collection of Crane", MATERIAL.usage) == "delete collection of Crane"


@pytest.mark.parametrize("topic", ["polling to interface", "assigning memory", "crane running automated", "cargo's"])
def test_a_topic_cut_at_a_verb_is_dropped(topic: str) -> None:
    assert is_cut(topic, MATERIAL)
    assert not is_cut("crane interface", MATERIAL)


def test_a_topic_is_no_remnant_of_a_longer_name() -> None:
    assert list(iter_topics("Third-party cranes and other vessels", MATERIAL)) != ["vessels"]
    assert "vessel" not in list(iter_topics("Many large vessel", MATERIAL))


def test_capitals_of_headings_make_no_names() -> None:
    assert not MATERIAL.usage.is_name("entry")
