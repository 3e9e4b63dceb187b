"""Languages of chunks, their function words, and near-copies of questions."""

from __future__ import annotations

import pytest

from runner.features.synthesize.base import Chunks
from runner.features.synthesize.language import ENGLISH, detect_languages, fold_question, function_words

ENGLISH_TEXT = "The keeper replaces the lamp of the lighthouse and writes this down in the journal."
GERMAN_TEXT = "Die Schleuse öffnet um sechs Uhr, und jedes Schiff zahlt eine Gebühr an die Hafenmeisterei."
CHINESE_TEXT = "港口每天接待很多船只和旅客。码头旁边有一座古老的灯塔，游客可以登上灯塔观看大海和港口。"


def _create_chunks(texts: list[str]) -> Chunks:
    return Chunks([str(n) for n in range(len(texts))], ["0"] * len(texts), texts)


def test_each_chunk_of_a_mixed_corpus_has_its_own_language() -> None:
    texts = [ENGLISH_TEXT, GERMAN_TEXT, CHINESE_TEXT] * 6
    assert detect_languages(_create_chunks(texts)) == ["en", "de", "zh"] * 6


def test_a_chunk_that_is_too_short_is_in_the_language_of_most() -> None:
    assert detect_languages(_create_chunks([GERMAN_TEXT] * 5 + ["kubectl get pods", "42"])) == ["de"] * 7


def test_chunks_without_a_clear_language_are_taken_for_english() -> None:
    assert detect_languages(_create_chunks(["", "42"])) == [ENGLISH, ENGLISH]


def test_function_words_are_those_of_the_language() -> None:
    assert {"the", "of", "such"} <= function_words(ENGLISH)
    assert not {"system", "value", "group"} & function_words(ENGLISH)
    assert {"的", "和"} <= function_words("zh")
    assert function_words("th") == frozenset()


@pytest.mark.parametrize(
    "query",
    ["How do I write a plugin for databases?", "how can I write plugins for a database", "database plugin writing"],
)
def test_near_copies_of_a_question_have_the_same_terms(query: str) -> None:
    assert fold_question(query) == fold_question("write plugin for database")


@pytest.mark.parametrize("query", ["write plugin for router", "plugin", "how is it"])
def test_other_questions_have_other_terms(query: str) -> None:
    assert fold_question(query) not in ("", fold_question("write plugin for database"))
