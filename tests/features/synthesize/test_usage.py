from __future__ import annotations

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.usage import WordUsage, count_usage

TEXTS = (
    "# Overview\n\nThe harbour has a gate. Ships wait to enter, and we wait for the gate of the harbour in Pell.",
    "# Overview\n\nA ship can enter the harbour. It should report to the keeper of the gate near Pell.",
    "# Overview\n\nThe keeper may report a ship to the harbour, and wait. Every keeper in Pell has a lamp.",
    "# Fees of the harbour\n\nThe fee of a ship is due at the gate. They report each fee to Pell.",
)


def _usage(texts: tuple[str, ...] = TEXTS) -> WordUsage:
    n = len(texts)
    return count_usage(Chunks([f"d{at}" for at in range(n)], ["0"] * n, texts), Analyzer())


def test_nouns_stand_after_articles_and_verbs_after_pronouns_and_to() -> None:
    usage = _usage()
    assert all(map(usage.is_noun, ("gate", "harbour", "keeper", "fees")))
    assert all(map(usage.is_verb, ("wait", "report", "reports", "enter")))
    assert not any(map(usage.is_noun, ("wait", "report", "reports")))
    assert not any(map(usage.is_verb, ("gate", "lamp", "submarine")))


def test_of_a_word_that_is_never_seen_the_ending_decides() -> None:
    usage = _usage()
    assert usage.is_noun("submarine")
    assert not usage.is_noun("slowly")
    assert not usage.is_noun("dangerous")


def test_a_name_has_its_capital_within_a_sentence() -> None:
    usage = _usage()
    assert usage.is_name("Pell")
    assert not usage.is_name("Ships")
    assert _usage(("by Ada, Gorm, and the mate, with lamps", "by Ada, Gorm and others")).is_name("Gorm"), "in a list"
    assert not usage.is_name("keeper")


def test_a_heading_of_many_documents_is_common_however_it_is_written() -> None:
    usage = _usage()
    assert usage.is_common("Overview")
    assert usage.is_common("## overview:")
    assert not usage.is_common("Fees of the harbour")


def test_the_language_is_that_of_most_chunks() -> None:
    german = "Die Schleuse öffnet um sechs Uhr und jedes Schiff zahlt eine Gebühr an die Hafenmeisterei."
    usage = _usage((german, german.replace("sechs", "acht"), "nginx 1.2"))
    assert usage.language == "german"
    assert usage.is_noun("Gebühr") and not usage.is_noun("zahlt")
