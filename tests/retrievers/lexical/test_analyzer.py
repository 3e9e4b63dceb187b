from __future__ import annotations

import pickle

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.lexical.analyzer import ENGLISH_STOP_WORDS, Analyzer

PLAIN = Analyzer(stemmer=None, stopwords=None)
CODE = Analyzer(identifiers=True, stemmer=None, stopwords=None)


def test_english_folds_case_drops_stop_words_and_stems() -> None:
    assert Analyzer().tokens("The Ferries were RUNNING to the islands") == ["ferri", "were", "run", "island"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("don't", ["don"]),
        ("the dog's bone", ["the", "dog", "bone"]),
        ("O'Brien", ["o", "brien"]),
        ("l’avion", ["l", "avion"]),
        ("snake_case", ["snake_case"]),
        ("a_ __ _", ["a_"]),
        ("ﬁne ｆｕｌｌ", ["fine", "full"]),
        ("naïve café", ["naïve", "café"]),
        ("", []),
        (" \n\t…—!", []),
    ],
)
def test_words_without_stemming(text: str, terms: list[str]) -> None:
    assert PLAIN.tokens(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("ParallelAgent", ["parallelagent", "parallel", "agent"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("__init__", ["__init__"]),
        ("plain words.", ["plain", "words"]),
        ("ÄpfelBaum", ["äpfelbaum", "äpfel", "baum"]),
    ],
)
def test_identifiers_are_indexed_whole_and_in_parts(text: str, terms: list[str]) -> None:
    assert CODE.tokens(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("ParallelAgents", ["parallelag", "parallel", "agent"]),
        ("running_totals", ["running_tot", "run", "total"]),
        ("os.path.joined", ["os.path.join", "os", "path", "join"]),
        ("inTo", []),
    ],
)
def test_identifiers_are_stemmed_like_any_word(text: str, terms: list[str]) -> None:
    assert Analyzer(identifiers=True).tokens(text) == terms


@pytest.mark.parametrize("name", ["ParallelAgent", "HTTPServers", "loadedModels", "ÄpfelBäume"])
@pytest.mark.parametrize("stemmer", [None, "english", "german"])
def test_a_lowercase_identifier_has_the_term_of_the_whole_identifier(name: str, stemmer: str | None) -> None:
    analyzer = Analyzer(identifiers=True, stemmer=stemmer)
    assert analyzer.tokens(name.lower()) == analyzer.tokens(name)[:1]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("字", ["字"]),
        ("iPhone手机很好", ["iphone", "手机", "机很", "很好"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("ที่นี่", ["ที่นี่"]),
        ("한국어", ["한국", "국어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("עִבְרִית", ["עִבְרִית"]),
    ],
)
def test_scripts_without_spaces_become_bigrams_and_marks_stay_with_their_letters(text: str, terms: list[str]) -> None:
    assert PLAIN.tokens(text) == terms


def test_bigrams_can_be_turned_off() -> None:
    assert Analyzer(stemmer=None, stopwords=None, bigrams=False).tokens("東京タワー") == ["東京タワー"]


def test_every_snowball_language_is_a_stemmer() -> None:
    for language in Stemmer.algorithms():
        assert Analyzer(stemmer=language, stopwords=None).tokens("word") != []


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("arabic", "كتاب", "الكتاب"),
        ("greek", "θαλασσα", "ΘΆΛΑΣΣΕΣ"),
        ("romanian", "oraşe", "Orașul"),
        ("turkish", "ışık", "IŞIKLAR"),
        ("turkish", "istanbul", "İSTANBUL"),
        ("turkish", "kız", "KIZLAR"),
    ],
)
def test_inflected_words_of_other_languages_become_one_term(language: str, query: str, text: str) -> None:
    analyzer = Analyzer(stemmer=language, stopwords=None)
    assert analyzer.tokens(query) == analyzer.tokens(text) != []


def test_stop_words_may_be_a_list() -> None:
    assert Analyzer(stemmer=None, stopwords=("ferry",)).tokens("the ferry") == ["the"]


@pytest.mark.parametrize("setting", [{"stemmer": "klingon"}, {"stopwords": "klingon"}, {"lowercase": "perhaps"}])
def test_settings_that_do_not_exist_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(setting))):
        Analyzer(**setting)  # type: ignore[arg-type]  # any value, as from YAML


def test_only_stop_words_leave_nothing() -> None:
    assert Analyzer().tokens(" ".join(ENGLISH_STOP_WORDS)) == []


@given(st.text(), st.booleans(), st.booleans())
def test_no_text_breaks_it_and_no_term_holds_white_space(text: str, identifiers: bool, bigrams: bool) -> None:
    for term in Analyzer(identifiers=identifiers, bigrams=bigrams).tokens(text):
        assert term
        assert not any(character.isspace() for character in term)


@given(st.text())
def test_the_two_steps_give_the_tokens(text: str) -> None:
    analyzer = Analyzer(identifiers=True)
    assert [t for word in analyzer.raw(text) for t in analyzer.terms(word)] == analyzer.tokens(text)


def test_settings_travel_and_their_repr_is_their_identity() -> None:
    analyzer = Analyzer(stopwords=("x",))
    analyzer.tokens("something")
    assert pickle.loads(pickle.dumps(analyzer)) == analyzer
    assert repr(analyzer) != repr(Analyzer())
