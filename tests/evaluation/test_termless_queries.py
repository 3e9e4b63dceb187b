"""Queries without a term to search by are counted and named, by evaluation and by inspect."""

from __future__ import annotations

import runner
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from runner.datasets.dataset import Dataset
from runner.evaluation.termless_queries import describe_termless_queries, find_termless_queries
from runner.features.inspect.findings import InspectionSettings, _of_terms

TEXTS = {"s": "to be or not to be", "c": "茶", "w": "green tea", "p": "绿茶", "e": "", "m": "茶 tea"}
DATA = Dataset.of(
    {"d": "green tea 绿茶", "x": "black coffee"}, TEXTS, {query: {"d": 1} for query in TEXTS}, name="teas"
)
ENGLISH, PLAIN = Analyzer(), Analyzer(stemmer=None, stopwords=None)


def test_queries_of_only_stop_words_or_one_character_are_listed() -> None:
    assert [list(kind.queries) for kind in find_termless_queries(DATA.queries, ENGLISH)] == [[0], [1]]
    assert [list(kind.queries) for kind in find_termless_queries(DATA.queries, PLAIN)] == [[1]]
    assert find_termless_queries(DATA.queries, Analyzer(stopwords=None, bigrams=False)) == []


def test_a_retriever_without_an_analyzer_has_no_such_queries() -> None:
    assert describe_termless_queries(DATA.queries, object()) == []


def test_an_evaluation_warns_of_them_with_their_number_and_an_example() -> None:
    warnings = runner.evaluate(BM25(analyzer=ENGLISH), DATA).warnings
    assert any(
        "1 of 6 queries have only stop words or signs" in w and "'to be or not to be' (s)" in w for w in warnings
    )
    assert any("1 of 6 queries are single characters" in w and "'茶' (c)" in w for w in warnings)


def test_inspect_reports_them() -> None:
    findings = list(_of_terms(DATA, ENGLISH, InspectionSettings()))
    assert [(f.name, f.count, f.of) for f in findings] == [("queries without terms", 1, 6)] * 2
