from __future__ import annotations

import pytest

from runner.features.synthesize.base import Chunks
from runner.features.synthesize.usage import WordUsage, count_usage, is_identifier

TEXTS = (
    "# Overview\n\nThe harbour has a gate. Ships have to enter, and can wait for the gate of the harbour in Pell.",
    "# Overview\n\nA ship can enter the harbour with `openGate`. It should report to the keeper of the gate near Pell.",
    "# Fees of the harbour\n\nThe fee of a ship is due at the gate, for openGate and for `my_lamp`.",
)


def _usage(texts: tuple[str, ...] = TEXTS) -> WordUsage:
    n = len(texts)
    return count_usage(Chunks([f"d{at}" for at in range(n)], ["0"] * n, texts))


def test_verbs_follow_to_and_can_and_nouns_follow_articles() -> None:
    usage = _usage()
    assert all(map(usage.is_verb, ("wait", "report", "enter")))
    assert not any(map(usage.is_verb, ("gate", "harbour", "submarine")))


def test_a_heading_of_several_documents_is_common_however_it_is_written() -> None:
    usage = _usage()
    assert usage.is_common("Overview")
    assert usage.is_common("## overview:")
    assert not usage.is_common("Fees of the harbour")


def test_the_title_of_a_document_is_what_all_its_chunks_begin_with() -> None:
    titles = ["Guide > Install", "Guide > Run", "Cranes", "Lamps"]
    usage = count_usage(Chunks(["a", "a", "b", "b"], ["0", "1", "0", "1"], ["One.", "Two.", "Three.", "Four."], titles))
    assert usage.titles == {"a": "Guide"}


def test_a_name_from_code_of_one_document_is_not_shared() -> None:
    usage = _usage()
    assert usage.is_shared("openGate")
    assert not usage.is_shared("my_lamp")


@pytest.mark.parametrize("word", ["maxSize", "max_size", "app.run", "--verbose"])
def test_a_name_from_code_has_capitals_dots_or_underscores(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize("word", ["size", "Size", "e.g", "127.0.0.1", "well-known", "a_b"])
def test_an_ordinary_word_is_not_a_name_from_code(word: str) -> None:
    assert not is_identifier(word)


def test_verbs_are_counted_in_english_chunks_only() -> None:
    german = "Die Schleuse öffnet um sechs Uhr, can wait, und jedes Schiff zahlt eine Gebühr an die Hafenmeisterei."
    assert not _usage((german, german.replace("sechs", "acht"))).verbs
