"""FTS5 as a retriever, against FTS5 itself."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, RetrieverError
from retrievers.lexical.sqlite_fts import SqliteFts, _fill
from retrievers.store import MemoryStore
from tests.strategies.settings import at_most
from tests.strategies.texts import WORD_TEXTS, WORDS


def search_ids(retriever: SqliteFts, corpus: Corpus, query: str, k: int = 10) -> list[str]:
    documents = retriever.index(corpus, MemoryStore()).search([query], k).documents[0]
    return [corpus.ids[document] for document in documents if document != NOTHING]


@contextmanager
def plain_table(corpus: Corpus, tokenize: str) -> Iterator[sqlite3.Connection]:
    """Yield a database whose rows are in the order of descending ids, so that rowid is the tie rule."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE d USING fts5(id UNINDEXED, title, text, tokenize='{tokenize}')")
        titles = corpus.titles or [""] * len(corpus)
        rows = sorted(zip(corpus.ids, titles, corpus.texts, strict=True), reverse=True)
        connection.executemany("INSERT INTO d VALUES (?, ?, ?)", rows)
        yield connection


@pytest.mark.parametrize(("tokenizer", "tokenize"), [("unicode61", "unicode61"), ("porter", "porter unicode61")])
@settings(max_examples=at_most(40))
@given(
    texts=st.lists(st.tuples(WORD_TEXTS, WORD_TEXTS), min_size=1, max_size=8),
    query=st.lists(WORDS, min_size=1, max_size=2),
    k=st.integers(1, 8),
    weight=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_the_order_and_scores_are_those_of_plain_sql(
    tokenizer: str, tokenize: str, texts: list[tuple[str, str]], query: list[str], k: int, weight: float
) -> None:
    corpus = Corpus([f"d{i}" for i in range(len(texts))], [text for _, text in texts], [title for title, _ in texts])
    retriever = SqliteFts(tokenizer=tokenizer, title_weight=weight)  # type: ignore[arg-type]  # any value, as from YAML
    rankings = retriever.index(corpus, MemoryStore()).search([" ".join(query)], k)
    with plain_table(corpus, tokenize) as connection:
        sql = "SELECT id, -bm25(d, 0, ?, 1) FROM d WHERE d MATCH ? ORDER BY bm25(d, 0, ?, 1), rowid LIMIT ?"
        expected = connection.execute(sql, (weight, " OR ".join(query), weight, k)).fetchall()
    places = rankings.documents[0][rankings.documents[0] != NOTHING]
    assert [corpus.ids[place] for place in places] == [name for name, _ in expected]
    assert rankings.scores[0, : len(places)].tolist() == [np.float32(score) for _, score in expected]


def test_a_tie_of_float32_at_the_cut_is_decided_by_id() -> None:
    """Sums of the same three numbers in another order differ in their last bit, which SQLite sorts by."""
    counts = list(permutations((1, 2, 3)))
    words = ("red", "boat", "sea")
    texts = [" ".join(" ".join([word] * n) for word, n in zip(words, c, strict=True)) for c in counts]
    corpus = Corpus([f"d{i}" for i in range(6)], texts)
    for k in range(1, 8):
        assert search_ids(SqliteFts(), corpus, "red boat sea", k) == ["d5", "d4", "d3", "d2", "d1", "d0"][:k]


def test_field_weights_change_the_ranking(harbour: Corpus) -> None:
    assert search_ids(SqliteFts(title_weight=5), harbour, "ferry museum")[0] == "d2"
    assert search_ids(SqliteFts(text_weight=5), harbour, "ferry museum")[0] == "d3"


def test_tokenizers_differ_in_what_a_word_is(harbour: Corpus) -> None:
    assert search_ids(SqliteFts(), harbour, "ship") == []
    assert (
        search_ids(SqliteFts(tokenizer="porter"), harbour, "shipping")
        == search_ids(SqliteFts(), harbour, "ships")
        != []
    )
    assert (
        search_ids(SqliteFts(tokenizer="trigram"), harbour, "ghthou")
        == search_ids(SqliteFts(), harbour, "lighthouse")
        != []
    )


def test_words_shorter_than_a_trigram_are_left_out(harbour: Corpus) -> None:
    for match in ("any", "all"):
        trigram = SqliteFts(tokenizer="trigram", match=match)
        assert search_ids(trigram, harbour, "on a museum") == ["d3"]
        assert search_ids(trigram, harbour, "on a") == []


def test_all_words_or_any(harbour: Corpus) -> None:
    assert set(search_ids(SqliteFts(), harbour, "museum, market")) == {"d3", "d4"}
    assert search_ids(SqliteFts(match="all"), harbour, "museum, market") == []
    assert search_ids(SqliteFts(match="all"), harbour, "a museum & its ships? ferries") == []
    assert search_ids(SqliteFts(match="all"), harbour, "museum & ships & ferries") == ["d3"]


def test_a_word_said_twice_counts_twice(harbour: Corpus) -> None:
    searcher = SqliteFts().index(harbour, MemoryStore())
    once, twice = searcher.search(["museum", "museum museum"], 1).scores[:, 0]
    assert twice == pytest.approx(2 * once)


def test_diacritics_are_removed_unless_disabled(harbour: Corpus) -> None:
    assert search_ids(SqliteFts(), harbour, "cafe") == ["d5"]
    assert search_ids(SqliteFts(), harbour, "cafe\N{COMBINING ACUTE ACCENT}") == ["d5"]
    assert search_ids(SqliteFts(remove_diacritics=0), harbour, "cafe") == []


def test_a_tokenizer_that_sqlite_lacks_is_named(harbour: Corpus) -> None:
    with pytest.raises(RetrieverError, match=r"tokenizer=trigrams: .* newer SQLite"):
        _fill(harbour, ("title", "text"), "trigrams")


@pytest.mark.parametrize("wrong", [{"tokenizer": "icu"}, {"title_weight": -1}, {"match": "some"}, {"wieght": 1}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        SqliteFts(**wrong)  # type: ignore[arg-type]  # any value, as from YAML


@pytest.mark.parametrize("name", ["title_weight", "text_weight"])
@pytest.mark.parametrize("value", [math.inf, math.nan, 1e308])
def test_weights_that_give_no_number_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        SqliteFts(**{name: value})  # type: ignore[arg-type]  # any value, as from YAML


@pytest.mark.parametrize("weights", [(1e6, 1e6), (0, 1e6), (0, 0)])
def test_the_largest_and_smallest_weights_give_numbers(harbour: Corpus, weights: tuple[float, float]) -> None:
    searcher = SqliteFts(title_weight=weights[0], text_weight=weights[1]).index(harbour, MemoryStore())
    rankings = searcher.search(["lighthouse ships"], 6)
    assert np.isfinite(rankings.scores[rankings.documents >= 0]).all()


def test_weights_and_matching_share_a_database(harbour: Corpus) -> None:
    store = MemoryStore()
    searchers = [s.index(harbour, store) for s in (SqliteFts(), SqliteFts(title_weight=2), SqliteFts(match="all"))]
    assert len({id(searcher.database) for searcher in searchers}) == 1
    assert SqliteFts(tokenizer="porter").index(harbour, store).database is not searchers[0].database


def test_every_query_is_timed(harbour: Corpus) -> None:
    seconds = SqliteFts().index(harbour, MemoryStore()).search(["ships", "", "fish"], 3).seconds
    assert seconds is not None
    assert (seconds >= 0).all()


def test_columns_of_other_fields_have_weights_of_their_own() -> None:
    """A column for a field of the metadata counts as one for titles does."""
    titles, texts = ["sea", "boat boat", ""], ["boat", "sea", "sea boat"]
    rows = [{"tags": title.split(), "other": "boat"} for title in titles]
    tagged = Corpus(["a", "b", "c"], texts, metadata=rows, search_fields=("tags",))
    titled = Corpus(["a", "b", "c"], texts, titles)
    store = MemoryStore()
    for weight in (0.0, 1.0, 5.0):
        rankings = SqliteFts(field_weights={"tags": weight}).index(tagged, store).search(["boat", "sea"], 3)
        expected = SqliteFts(title_weight=weight).index(titled, store).search(["boat", "sea"], 3)
        assert rankings.documents.tolist() == expected.documents.tolist()
        np.testing.assert_allclose(rankings.scores, expected.scores, rtol=1e-6)
