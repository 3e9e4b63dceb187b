from __future__ import annotations

import Stemmer

from runner.config import CONF
from runner.evaluation.language import ANALYZERS, detect_language, label_languages

GERMAN = "Der alte Leuchtturm steht am nördlichen Pier und leuchtet für die Schiffe in der Nacht."
GREEK = "Ο παλιός φάρος στέκεται στη βόρεια προβλήτα και φωτίζει τα πλοία τη νύχτα."
JAPANESE = "古い灯台は北の桟橋に立ち、夜に船を照らしています。港には毎時間フェリーがあります。"


def test_the_language_of_most_texts_is_named_with_its_analyzer() -> None:
    language = detect_language([GERMAN] * 3 + [GREEK])
    assert language is not None
    assert (language.code, language.analyzer, language.share, language.texts) == ("de", "german", 0.75, 4)


def test_a_language_without_a_stemmer_takes_plain() -> None:
    language = detect_language([JAPANESE])
    assert language is not None and (language.code, language.analyzer) == ("ja", "plain")


def test_mixed_or_very_short_texts_have_no_language() -> None:
    assert detect_language([GERMAN, GREEK]) is None
    assert detect_language(["ships", ""]) is None
    assert detect_language([]) is None


def test_every_analyzer_that_is_suggested_exists() -> None:
    for name in ANALYZERS.values():
        assert name in Stemmer.algorithms() and (CONF / "analyzer" / f"{name}.yaml").is_file()


def test_texts_of_a_mixed_collection_are_labelled_one_by_one() -> None:
    english = "Where does the ferry to the island leave from in the morning"
    labels = label_languages([english] * 6 + [GERMAN] * 6 + [GREEK] * 6 + ["x1"])
    assert labels == ["en"] * 6 + ["de"] * 6 + ["el"] * 6 + [""]


def test_texts_in_one_language_are_not_labelled() -> None:
    assert label_languages([GERMAN] * 30 + [GREEK]) == []
    assert label_languages([]) == []


def test_the_languages_of_a_collection_do_not_depend_on_those_of_the_one_before() -> None:
    french = "Le gardien du phare remplace la lampe chaque soir et note tout cela dans son journal de bord."
    assert label_languages([GERMAN] * 6 + [GREEK] * 6) == ["de"] * 6 + ["el"] * 6
    assert label_languages([french] * 6 + [GREEK] * 6) == ["fr"] * 6 + ["el"] * 6
