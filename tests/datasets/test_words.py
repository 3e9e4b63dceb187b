"""Words and sentences begin and end where one expression for each says so."""

from __future__ import annotations

import regex
from hypothesis import given

from runner.datasets.words import sentence_ends, word_starts
from tests.strategies.texts import SENTENCE_TEXTS

SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = regex.compile(
    rf"(?:(?<!\S)[^\s\w]++)?(?:[{SPACELESS}]\p{{M}}*|[\w--{SPACELESS}]++(?:['’][\w--{SPACELESS}]++)*)",
    regex.VERSION1,
)


@given(SENTENCE_TEXTS)
def test_words_begin_where_an_expression_finds_them_one_by_one(text: str) -> None:
    assert word_starts(text).tolist() == [word.start() for word in WORD.finditer(text)]


@given(SENTENCE_TEXTS)
def test_sentences_end_in_rising_order_behind_white_space_or_a_full_stop_of_asia(text: str) -> None:
    ends = list(sentence_ends(text))
    assert ends == sorted({*ends})
    assert all(regex.fullmatch(r"[\s。！？｡」』”’）】]", text[end - 1]) for end in ends)


def test_a_sentence_does_not_end_within_an_abbreviation_or_before_a_small_letter() -> None:
    text = "Dr. No met J. Smith, e.g. there. He left.\n- one\n- two\n\nlast"
    begins = [0, *sentence_ends(text)]
    assert [text[one:other] for one, other in zip(begins, [*begins[1:], len(text)], strict=True)] == [
        "Dr. No met J. Smith, e.g. there. ", "He left.\n", "- one\n", "- two\n\n", "last",
    ]  # fmt: skip
