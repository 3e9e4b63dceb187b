from __future__ import annotations

import random

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks, Request
from runner.features.synthesize.frames import about
from runner.features.synthesize.generators import Deterministic
from runner.features.synthesize.limits import QueryLimits
from runner.features.synthesize.material import Material
from runner.features.synthesize.rewording import Task
from runner.features.synthesize.terms import count_terms

TEXTS = (
    "You can lock the gate. To lock it takes a key, and it changes the tide tables of the harbour.",
    "They embed a clock in the tower. We changed the lamps, as you can when they fail.",
)


def _task(seed: int = 0, heading: str = "Gate") -> Task:
    chunks = Chunks(["a1", "b2"], ["0", "0"], [f"# {heading}\n\n{TEXTS[0]}", TEXTS[1]])
    material = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
    return Task(material, random.Random(seed), QueryLimits(), lambda word: (), (0.3, 0.7), 0.35)


def _list_queries(subject: str) -> set[str]:
    return {about(_task(seed), subject) for seed in range(40)}


def test_a_verb_is_asked_how_it_is_done_and_only_without_an_ending() -> None:
    assert _list_queries("lock the gate") == {
        "how to lock the gate", "how can I lock the gate", "when should I lock the gate",
        "what does it take to lock the gate",
    }  # fmt: skip
    assert "how to embed a clock" in _list_queries("embed a clock")
    for subject in ("changes in harbour 4.3", "changed lamps"):
        assert not any(query.startswith(("how to", "what does it take to")) for query in _list_queries(subject))


@pytest.mark.parametrize(
    ("subject", "is_"),
    [
        ("tide tables of the harbour", "are"),
        ("key for the tables", "is"),
        ("keys, old and new", "are"),
        ("locks and keys", "are"),
        ("harbour class", "is"),
        ("gate status", "is"),
    ],
)
def test_what_is_asked_for_is_one_or_several_as_its_noun_says(subject: str, is_: str) -> None:
    assert f"what {is_} {subject}" in _list_queries(subject)
    assert f"what {'is' if is_ == 'are' else 'are'} {subject}" not in _list_queries(subject)


def test_what_has_to_do_with_a_subject_is_one_or_several() -> None:
    asked = {query for query in _list_queries("old bell") if query.endswith("to do with old bell")}
    assert "what have tide tables to do with old bell" in asked
    assert not any(query.startswith(("what has tide tables", "what have key ")) for query in asked)


def test_what_a_heading_says_aside_is_no_part_of_its_subject() -> None:
    assert _task(heading="Tide gate (9 May 2012)").material.subject == "Tide gate"
    assert _task(heading="tidegate(1)").material.subject == "tidegate"


def test_other_words_are_looked_for_beyond_what_a_chunk_says_above_all() -> None:
    names = ("Alva", "Berg", "Croy", "Dell")
    said = [f"The lock gate of basin {name} has the gate keeper and basin lock {name}." for name in names]
    chunks = Chunks(
        ["a1", "b2", "c3"],
        ["0", "0", "0"],
        [" ".join((*said, "In frost the mole has a boat.")), "The ship is at the long pier.", "The ship is a red one."],
    )
    material = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
    assert set(material.statements) == set(said)
    wants = [Request(Bundle((0,), (1,)), "low_overlap", seed) for seed in range(4)]
    drafts = [draft for _, draft in Deterministic(most_overlap=0.7).drafts(chunks, wants)]
    assert all({"vessel", "ship"} & set(draft.query.split()) for draft in drafts)
