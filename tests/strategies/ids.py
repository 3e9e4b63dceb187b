"""Ids of documents and queries."""

from __future__ import annotations

from hypothesis import strategies as st

LINE_BREAKING = "\t\n\v\f\r\0\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a column or a line in some reader: a tab, NUL and all that `str.splitlines` splits at."""

PRINTABLE = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=LINE_BREAKING)
PRINTABLE_IDS = st.text(PRINTABLE, max_size=6)
STRIPPED_IDS = st.text(PRINTABLE, min_size=1, max_size=6).map(str.strip).filter(bool)
"""Ids that can stand in columns: not empty, without tabs, line ends, and white space around them."""

COLUMN_IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=LINE_BREAKING), min_size=1, max_size=5)
TOKEN_IDS = COLUMN_IDS.map(lambda text: "".join(text.split()).replace("\ufeff", "")).filter(bool)
"""Ids without white space, as TREC files have them."""

ID_LISTS = st.lists(st.text("ab\n é\U0001f6a2\0", max_size=9), max_size=20)
"""Ids of one to four bytes a character, some of them repeated, empty or of several lines."""

QUOTED_IDS = st.text(" \"'=+-@%,;#:\\|\ufeffa1\u00e9\u00a0", max_size=4)
"""Ids made of what formats use for themselves within a line: separators, quotes and marks of formulas."""

SPOILED_IDS = QUOTED_IDS | st.text(LINE_BREAKING + "a ", max_size=3)
"""The same, and ids with what ends a column or a line."""

GRADED_PAIRS = st.one_of(
    st.dictionaries(st.tuples(ids, ids), st.integers(1, 3), min_size=1, max_size=4) for ids in (QUOTED_IDS, SPOILED_IDS)
)
"""Grades by the ids of a query and a document."""
