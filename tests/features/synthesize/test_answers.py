"""The answer of a query is located in its chunk by the words of the query, or is the whole chunk."""

from __future__ import annotations

import pytest

from runner.features.synthesize.answers import locate_answer

CHUNK = (
    "The tower is old. It was built in 1850 by sailors.  It shines for\nships at night.\n\n"
    "Ships pass the tower often. The entry is free."
)


@pytest.mark.parametrize(
    ("query", "way", "passage"),
    [
        ("it shines for ships", "exact", "It shines for\nships at night."),
        ("at night. Ships pass", "exact", "It shines for\nships at night.\n\nShips pass the tower often."),
        ("What was built by sailors?", "words", "It was built in 1850 by sailors."),
        ("Is the entry free of charge?", "words", "The entry is free."),
        ("sailors' ships", "words", "It was built in 1850 by sailors.  It shines for\nships at night."),
        ("Who passes the tower?", "words", "Ships pass the tower often."),
        ("tower", "chunk", CHUNK),  # several sentences have it
        ("zebra crossing", "chunk", CHUNK),
        ("Is parking at the museum free?", "chunk", CHUNK),  # the chunk has less than half of the words
        ("old tower, free entry", "chunk", CHUNK),  # only the whole chunk has all words
        ("", "chunk", CHUNK),
    ],
)
def test_the_answer_is_the_sentences_with_the_words_of_the_query(query: str, way: str, passage: str) -> None:
    answer = locate_answer(query, CHUNK, "Tower", "en")
    assert (answer.way, CHUNK[answer.start : answer.end]) == (way, passage)


def test_a_sentence_without_spaces_between_words_is_located() -> None:
    chunk = "塔は古い。船のために夜に光る。入場は無料。"
    answer = locate_answer("夜に光る塔", chunk, "", "ja")
    assert (answer.way, chunk[answer.start : answer.end]) == ("words", "船のために夜に光る。")


@pytest.mark.parametrize(("title", "chunk"), [("Guide > Entry fees", ""), ("", "Intro.\n\n## Entry fees\n\n")])
def test_a_query_about_a_heading_is_answered_by_the_whole_section(title: str, chunk: str) -> None:
    chunk += "Tickets are sold here. The entry has two fees. Children pay nothing."
    assert locate_answer("what are the entry fees", chunk, title, "en") == (0, len(chunk), "chunk")
    assert locate_answer("do children pay entry fees", chunk, title, "en").way == "words"
