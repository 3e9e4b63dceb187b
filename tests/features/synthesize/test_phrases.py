from __future__ import annotations

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.phrases import Phrasing, is_identifier
from runner.features.synthesize.usage import count_usage
from tests.features.synthesize.pages import harbour_chunks


def _phrasing(language: str = "english", chunks: Chunks | None = None) -> Phrasing:
    chunks = chunks or harbour_chunks()
    return Phrasing(language, count_usage(chunks, Analyzer()), Analyzer())


def _phrases(text: str, language: str = "english", chunks: Chunks | None = None) -> list[str]:
    return [" ".join(phrase) for phrase in _phrasing(language, chunks).phrases(text)]


def test_english_phrases_end_with_a_noun_and_have_no_verb() -> None:
    assert _phrases("We inspect the northern pier, and the risk of a storm can replace the red boats.") == [
        "northern pier", "risk", "storm", "red boats",
    ]  # fmt: skip
    assert _phrases("a deep vessel quickly reaches its own safe and quiet berth")[0] == "deep vessel"


def test_a_phrase_has_letters_and_begins_with_no_number() -> None:
    assert _phrases("at 18:30 and in 40 ferries x of 7") == ["ferries"]


def test_identifiers_are_kept_as_they_are_written() -> None:
    assert "RiskEngine service" in _phrases("chosen by the RiskEngine service")
    assert [is_identifier(word) for word in ("TideTable", "a.b", "TLS", "p53", "tide", "Tide")] == [True] * 4 + [
        False
    ] * 2


def test_german_phrases_end_with_a_capital() -> None:
    text = "Die Schleuse öffnet um sechs Uhr. Wir sehen die alte Schleuse und eine hohe Gebühr bei der Schleuse."
    chunks = Chunks(["a", "b"], ["0", "0"], [text, text.replace("sechs", "acht")])
    found = _phrases("für die alte Schleuse und eine hohe Gebühr, die wir zahlen", "german", chunks)
    assert found == ["alte schleuse", "hohe gebühr"]
    assert _phrasing("german", chunks).restore_case("alte schleuse") == "alte Schleuse"


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("灯塔和码头的历史", "chinese", ["灯塔", "码头", "历史"]),
        ("古い灯台は港の北にある", "japanese", ["古い灯台"]),
    ],
)
def test_where_no_spaces_tell_words_function_words_do(text: str, language: str, found: list[str]) -> None:
    phrases = _phrases(text, language)
    assert set(found) <= set(phrases)
    assert all(phrase in text for phrase in phrases)


def test_what_is_too_long_between_function_words_is_no_phrase() -> None:
    assert _phrases("阿波罗登月计划指令舱驾驶员", "chinese") == []


def test_capitals_are_left_to_names() -> None:
    chunks = Chunks(
        ["a", "b"], ["0", "0"], ["We go to Pell. The Gate is in Pell.", "Boats of Pell pass the gate there."]
    )
    assert _phrasing("english", chunks).restore_case("Old Gate Of pell and TLS") == "old gate of Pell and TLS"
