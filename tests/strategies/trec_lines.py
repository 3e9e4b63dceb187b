"""Lines of TREC runs, valid or not."""

from __future__ import annotations

from hypothesis import strategies as st

BLANKS = st.sampled_from([" ", " ", "\t", "   ", " \t ", "\x0b", "\x0c"])
TOKENS = st.one_of(
    st.sampled_from(["q1", "q2", "d1", "é", "\U0001f6a2", "a%20b", "-", "\x00"]), st.text("abc", min_size=1)
)
SUFFIXES = st.sampled_from(["", "", " 3", " ", "\u00a0b", "\u2028", "\r", "\x0b"])
"""Ends of ids in columns between tabs."""
NUMBERS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers().map(str),
    st.from_regex(r"[-+]?[0-9]{0,20}\.?[0-9]{0,24}([eE][-+]?[0-9]{0,3})?", fullmatch=True),
    st.sampled_from(["nan", "-inf", "1_0", "１", "16777217", "1e99", "-0", ".", "1e-50", "3.4028236e38", "x"]),
).filter(bool)


@st.composite
def trec_lines(draw: st.DrawFn) -> str:
    """Draw a line, whose last words may be missing."""
    words = [
        draw(TOKENS),
        "Q0",
        draw(TOKENS),
        str(draw(st.integers(0, 9))),
        draw(NUMBERS),
        draw(st.sampled_from(["", "t", "a b"])),
    ]
    if draw(st.integers(0, 40)) == 0:
        del words[draw(st.integers(0, 4)) :]
    if draw(st.booleans()):
        return "\t".join(word + (draw(SUFFIXES) if place in (0, 2) else "") for place, word in enumerate(words))
    return draw(st.sampled_from(["", "", " "])) + "".join(word + draw(BLANKS) for word in words).rstrip(" ")


GAPS = st.sampled_from([" ", " ", " ", "\t", "\t", "  ", "\x0b", "\x01"])
SIMILAR_LINES = st.tuples(
    st.sampled_from(["q Q0 ", "q Q0 ", "q Q0 ", "q\tQ0\t", "q\tQ0\t", "a query\t0\t", "q  Q0\t"]),
    st.one_of(st.sampled_from(["d", "document-12", "\x02", ""]), st.text("abé\U0001f6a2\x7f\x01", max_size=20)),
    GAPS,
    st.one_of(st.integers(0, 10**9).map(str), st.sampled_from(["", "x"])),
    GAPS,
    st.one_of(NUMBERS, st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{0,19})?", fullmatch=True)),
    st.sampled_from([" t", " t", "\tt", "\tt", "\ta tag", " another-tag", "", "\t", "x", " t\r", " a b", "  "]),
).map("".join)
"""Lines that are alike but for what separates their columns, and mistakes."""
