"""Arguments of the command line, and what they set."""

from __future__ import annotations

from hypothesis import strategies as st

GROUPS = st.sampled_from(
    [
        [],
        ["retriever=rank_bm25"],
        ["retriever=hybrid"],
        ["retriever=hybrid", "retriever@retriever.parts.lexical=sqlite_fts"],
        ["retriever=hybrid", "+retriever@retriever.parts.words=sqlite_fts"],
        ["analyzer=german", "encoder=lsa", "retriever=dense"],
        ["+analyzer@retriever.analyzer=french"],
        ["dataset=beir", "dataset.path='a b/ü'"],
        ["dataset=beir"],
        ["retriever=run"],
        ["retriever=run", "retriever.path='a b'"],
        ["retriever=dense", "encoder=sentence_transformer"],
        ["experiment=tour"],
        ["experiment=[bm25_grid,embedding_models]"],
        ["~encoder"],
    ]
)
KEYS = [
    "retriever.k1",
    "retriever.b",
    "retriever.alpha",
    "retriever.weights",
    "retriever.analyzer",
    "retriever.analyzer.stemmer",
    "retriever.parts.lexical.k1",
    "retriever.parts.lexical.analyzer.stemmer",
    "retriever.parts.lexical",
    "retriever._target_",
    "retriever.api_key",
    "retriever",
    "analyzer.stemmer",
    "analyzer.stop_words",
    "encoder.dimensions",
    "encoder.model",
    "dataset.path",
    "dataset.max_queries",
    "dataset",
    "metrics.depth",
    "metrics.k_values",
    "metrics.k_values.0",
    "metrics.primary",
    "tracking.uri",
    "store.path",
    "sweep.name",
    "sweep.fail_fast",
    "sweep.union",
    "plugins",
    "new.token.thing",
    "new.thing",
    "choices.retriever",
]
VALUES = [
    "0.9",
    "-3",
    "1e-3",
    "007",
    "true",
    "null",
    "word",
    "''",
    "'it''s'",
    '"a, b"',
    "'???'",
    "???",
    "${dataset.name}",
    "'x ${retriever.k1}'",
    "${oc.env:HOME}",
    "'oc.env'",
    "'http://me:hush@host/x?token=abc'",
    "[1,2,3]",
    "[0.5,[a,'b c']]",
    "['${metrics.depth}']",
    "[{token:x}]",
    "[]",
    "{k1:3}",
    "{a:1,b:[2,x]}",
    "{}",
]
SETTINGS = st.builds(
    lambda sign, key, text: f"~{key}" if sign == "~" else f"{sign}{key}={text}",
    st.sampled_from(["", "", "", "", "+", "++", "~"]),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
)
"""Settings as they are typed, which may be added, forced or removed."""

QUOTED_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\$"))
"""Texts that a line of the shell can hold in quotes."""

CONDITION_NUMBERS = st.integers(-9, 9) | st.floats(-9, 9).map(lambda x: round(x, 2))
"""Numbers in the conditions of a sweep."""
