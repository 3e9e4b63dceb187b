"""The fast way to an analyzer's terms gives what the analyzer gives."""

from __future__ import annotations

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.lexical import term_ids
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.term_ids import iter_term_ids
from tests.strategies.settings import at_most
from tests.strategies.texts import TRICKY_TEXTS

ANALYZERS = (
    Analyzer(),
    Analyzer(identifiers=True),
    Analyzer(stemmer="german", stopwords="german"),
    Analyzer(stemmer=None, stopwords=None, nfkc=False),
    Analyzer(stemmer=None, stopwords=None, lowercase=False, bigrams=False),
    Analyzer(stemmer="turkish", stopwords="turkish"),
)
SEPARATORS = [chr(byte) for byte in range(128) if not chr(byte).isalnum() and chr(byte) not in "_'."]


def terms_of(contents: Sequence[str], analyzer: Analyzer) -> tuple[list[list[str]], list[str]]:
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    documents = []
    for chunk in iter_term_ids(contents, analyzer, numbers.__getitem__):
        assert chunk.lengths.dtype == chunk.terms.dtype == np.int32
        documents += np.split(chunk.terms, np.cumsum(chunk.lengths)[:-1])
    vocabulary = list(numbers)
    return [[vocabulary[number] for number in document] for document in documents], vocabulary


@pytest.mark.parametrize("analyzer", ANALYZERS)
@settings(max_examples=at_most(40))
@given(contents=st.lists(TRICKY_TEXTS, max_size=5))
def test_the_terms_are_those_of_the_analyzer_in_their_order(analyzer: Analyzer, contents: list[str]) -> None:
    documents, vocabulary = terms_of(contents, analyzer)
    assert documents == [analyzer.tokens(content) for content in contents]
    assert vocabulary == list(dict.fromkeys(chain.from_iterable(documents)))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_size_of_chunks_changes_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = ["Ferries, ships", "", "the ferry's café", "東京 ferries", "x" * 50, "ships"]
    expected = terms_of(contents, Analyzer())
    monkeypatch.setattr(term_ids, "CHUNK_CHARACTERS", size)
    assert terms_of(contents, Analyzer()) == expected


def test_hash_collisions_and_table_growth_do_not_merge_words() -> None:
    """Nine pairs of these words have the same 31 bits of hash."""
    different = [f"w{number:x}" for number in range(200_000)]
    documents, vocabulary = terms_of([" ".join(different), " ".join(reversed(different))], ANALYZERS[3])
    assert vocabulary == different
    assert documents == [different, different[::-1]]


def test_a_word_may_be_longer_than_there_was_room_for() -> None:
    long = "x" * 300_000
    assert terms_of([f"a {long} b {long}y"], ANALYZERS[3])[0] == [["a", long, "b", f"{long}y"]]


def test_of_what_separates_words_only_three_signs_are_normalised_with_what_follows() -> None:
    composed = (unicodedata.decomposition(chr(code)).split() for code in range(sys.maxunicode + 1))
    first = {chr(int(parts[0], 16)) for parts in composed if len(parts) == 2 and not parts[0].startswith("<")}
    assert sorted(first.intersection(SEPARATORS)) == ["<", "=", ">"]
    assert not first.intersection("_'.")


def test_no_ascii_character_is_normalised_with_what_is_before_it() -> None:
    composed = (unicodedata.decomposition(chr(code)).split() for code in range(sys.maxunicode + 1))
    last = {chr(int(parts[1], 16)) for parts in composed if len(parts) == 2 and not parts[0].startswith("<")}
    assert not any(character.isascii() for character in last)


def test_lower_case_stays_when_it_is_lowered_again() -> None:
    lowered = [chr(code).lower() for code in range(sys.maxunicode + 1)]
    assert [text.lower() for text in lowered] == lowered
