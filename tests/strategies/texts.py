"""Texts: of any characters, or joined from a few words or signs, so that texts share some."""

from __future__ import annotations

from hypothesis import strategies as st

TEXTS = st.text()
"""Texts that UTF-8 can encode."""

STRIPPED_TEXTS = TEXTS.map(str.strip)
ONE_LINE_TEXTS = TEXTS.map(lambda text: " ".join(text.split()))
NON_BLANK_TEXTS = TEXTS.filter(lambda text: bool(text.strip()))

WORDS = st.sampled_from(["red", "boat", "boats", "blue", "house", "tree", "sea", "the"])
"""A few words, with a plural and a stop word."""

LETTERS = st.sampled_from("abcdefg")


def texts_of(
    parts: st.SearchStrategy[str], max_size: int, *, min_size: int = 0, separator: str = " "
) -> st.SearchStrategy[str]:
    """Draw texts that join a few parts."""
    return st.lists(parts, min_size=min_size, max_size=max_size).map(separator.join)


WORD_TEXTS = texts_of(WORDS, 6, min_size=1)
LETTER_TEXTS = texts_of(LETTERS, 12)
MIXED_TEXTS = texts_of(WORDS | st.sampled_from(["café", "小船"]), 8)
"""Texts of words, some of which are not ASCII."""

SENTENCE_TEXTS = texts_of(
    st.sampled_from(
        [*"ab1_ \n\t.,'’\"()-。！」ั港あក។ំ៛é", "\u0301", "\u200d", "\x1c", "\u2028", "it's ", "Dr. ", "ab. "]
    )
    | st.characters(exclude_categories=["Cs"]),
    30,
    separator="",
)
"""Texts in which the ends of words and sentences are hard to find."""

TRICKY_TEXTS = st.one_of(
    st.text("aAbIZ09_'’.<=>\u0338\u0301\u200dıİΣσéÅ\u212bﬁＡ＇東京ー\u00a0—“\0\n\r\t \x1f-:^`\ud800", max_size=12),
    st.text(max_size=12),
    st.sampled_from(["the", "", "Don't run os.path"]),
)
"""Texts of characters that normalisation, lower case, identifiers and stop words change."""
