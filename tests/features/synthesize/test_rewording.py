from __future__ import annotations

import random

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.lexicon import Synonyms
from runner.features.synthesize.limits import QueryLimits
from runner.features.synthesize.material import Material
from runner.features.synthesize.rewording import (
    ENOUGH_CHUNKS,
    Task,
    fill_frame,
    find_clause,
    find_synonym,
    has_synonym,
)
from runner.features.synthesize.terms import compute_share, count_terms

LEXICON = {"boat": ("craft", "ship", "vessel", "sail away", "enter", "tram"), "officer": ("clerk",), "berth": ("quay",)}
TEXTS = (
    "# Quay\n\nThe boat waits at a berth for an officer with the customs stamp. The quay is long.",
    "A ship is seen from the tower, as every boat is. The ship of the pilot has lamps.",
    "The ship has a mate, the craft has none, and they enter. No craft is a boat.",
    "They enter the harbour with the boat of the pilot. You can enter at noon.",
    "The tram stops at the tower. The tram of the town is red.",
)


def _task(synonyms: Synonyms = lambda word: LEXICON.get(word, ()), seed: int = 0, n: int = ENOUGH_CHUNKS) -> Task:
    texts = [*TEXTS, *(f"The tower number {at} stands in the town." for at in range(n - len(TEXTS)))]
    chunks = Chunks([str(at) for at in range(len(texts))], ["0"] * len(texts), texts)
    return Task(
        Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer())),
        random.Random(seed), QueryLimits(), synonyms, (0.3, 0.7), 0.35,
    )  # fmt: skip


def test_another_word_is_said_often_as_the_same_part_of_speech_and_in_the_same_company() -> None:
    found = {find_synonym("boat", _task(seed=seed)) for seed in range(20)}
    assert found == {"ship"}  # one chunk has a craft, none a vessel; enter is a verb; a tram goes with no boat
    assert find_synonym("berth", _task()) == "", "the golden has the quay"
    assert find_synonym("officer", _task()) == "", "nobody says clerk"
    assert find_synonym("lamps", _task()) == ""


def test_what_few_chunks_do_not_say_might_be_said_all_the_same() -> None:
    assert find_synonym("officer", _task(n=len(TEXTS))) == "clerk"


def test_a_form_that_nobody_says_may_be_no_word() -> None:
    assert find_synonym("officer", _task(lambda word: ("clerked", "clerking", "clerk"), n=len(TEXTS))) == "clerk"


def test_a_phrase_has_another_word_only_where_one_is_said() -> None:
    task = _task(seed=1)
    assert task.material.usage.is_noun("boat")
    assert has_synonym("long boat", task)
    assert fill_frame(task, "{}", ["long boat"], 1.0) == "long ship"
    assert not has_synonym("boat stamp", task), "a name"
    assert fill_frame(task, "{}", ["boat stamp"], 1.0) == "boat stamp"


def test_no_word_is_said_twice() -> None:
    task = _task(seed=1)
    assert find_synonym("boat", task) == "ship"
    assert fill_frame(task, "what has a {} to do with a {}", ("boat", "ship"), 1.0) == ""
    assert fill_frame(task, "what has a {} to do with a {}", ("stamp", "stamps"), 1.0) == ""
    assert (
        fill_frame(task, "what has a {} to do with a {}", ("boat", "stamp"), 1.0)
        == "what has a ship to do with a stamp"
    )


def test_of_a_long_sentence_the_clause_around_a_word_is_taken() -> None:
    pieces = ["the", "gate", "has", "4", "locks,", "of", "which", "2", "are", "old,", "and", "a", "lamp"]
    assert find_clause(pieces, 7, len(pieces)) == (0, len(pieces))
    assert " ".join(pieces[slice(*find_clause(pieces, 7, 8))]) == "of which 2 are old,"
    assert " ".join(pieces[slice(*find_clause(pieces, 3, 8))]) == "the gate has 4 locks,"
    assert " ".join(pieces[slice(*find_clause(pieces, 11, 8))]) == "and a lamp"


def test_phrases_lose_words_from_the_front_as_far_as_the_share_asks() -> None:
    analyzer, task = Analyzer(), _task(lambda word: ())
    phrases = ("long customs stamp", "quay officer")
    there = analyzer.tokens(TEXTS[0])
    assert fill_frame(task, "does {} follow {}", phrases, 1.0) == "does long customs stamp follow quay officer"
    query = fill_frame(task, "does {} follow {}", phrases, 0.5, fewest=1)
    assert query == "does stamp follow officer"
    assert compute_share(analyzer.tokens(query), there) == 0.5
    assert fill_frame(task, "does {} follow {}", phrases, 0.0) == "does customs stamp follow quay officer"


@pytest.mark.parametrize("word", ["ship", "tower"])
def test_a_noun_is_said_in_another_number_only_where_the_chunks_do(word: str) -> None:
    said = {fill_frame(_task(seed=seed), "{}", [word], 1.0) for seed in range(20)}
    assert said == {word}
    assert {fill_frame(_task(seed=seed), "{}", ["lamp"], 1.0) for seed in range(20)} == {"lamp"}


def test_statements_are_long_headings_and_the_sentences_that_say_most() -> None:
    chunks = Chunks(
        ["a", "b"],
        ["0", "0"],
        ["# How pilots confirm late arrivals after winter storms\n\n" + " ".join(TEXTS[:2]).replace("# Quay", ""), "x"],
    )
    statements = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer())).statements
    material = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
    assert set(material.topic.split()) < {"pilots", "confirm", "late", "arrivals", "winter", "storms"}, "in few words"
    assert statements[0] == "How pilots confirm late arrivals after winter storms"
    assert len(statements) == 4
    assert "Quay" not in _task().material.statements
