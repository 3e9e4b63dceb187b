from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.synthesize.language import ENGLISH, detect_language, fold_question, function_words

TEXTS = {
    "english": "The keeper replaces the lamp of the lighthouse and writes this down in the journal.",
    "german": "Die Schleuse öffnet um sechs Uhr, und jedes Schiff zahlt eine Gebühr an die Hafenmeisterei.",
    "french": "Le phare est au bout de la jetée, et les bateaux y passent dans la nuit avec une lampe.",
    "chinese": "港口每天接待很多船只和旅客。码头旁边有一座古老的灯塔。",
    "japanese": "港には毎日たくさんの船が来ます。古い灯台のとなりに店があります。",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_is_told_by_its_function_words_or_its_script(language: str) -> None:
    assert detect_language(TEXTS[language]) == language
    assert detect_language(TEXTS[language], "turkish") == language


@pytest.mark.parametrize("text", ["", "kubectl get pods", "42", "tsc -p ."])
def test_what_says_too_little_is_in_the_language_that_is_expected(text: str) -> None:
    assert detect_language(text, "german") == "german"


def test_a_script_without_a_list_has_no_language() -> None:
    assert detect_language("ท่าเรือเปิดทุกวันตอนเช้า") == ""
    assert function_words("") == frozenset()


def test_function_words_are_those_of_the_language() -> None:
    assert {"the", "of", "such"} <= function_words(ENGLISH)
    assert not {"system", "value", "group"} & function_words(ENGLISH)
    assert {"的", "和"} <= function_words("chinese")


@given(st.text(max_size=200))
def test_any_text_has_some_answer(text: str) -> None:
    assert isinstance(detect_language(text), str)


@pytest.mark.parametrize(
    "query",
    ["How do I write a plugin for databases?", "how can I write plugins for a database", "database plugin writing"],
)
def test_near_copies_of_a_question_have_the_same_terms(query: str) -> None:
    assert fold_question(query) == fold_question("write plugin for database")


@pytest.mark.parametrize("query", ["write plugin for router", "plugin", "how is it"])
def test_other_questions_have_other_terms(query: str) -> None:
    assert fold_question(query) not in ("", fold_question("write plugin for database"))
