"""Two versions of a dataset: which parts differ, and what a mixture contains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrievers.base import Corpus
from runner.datasets.anchoring import Quote
from runner.datasets.base import Judgments
from runner.datasets.dataset import Dataset
from runner.datasets.mixing import DatasetPair
from runner.datasets.overlap import attach_spans
from runner.datasets.spans import GoldSpan, anchor_spans

DOCUMENTS = {"a": "apple", "b": "banana", "c": "cherry", "d": "date"}
QUERIES = {"q1": "one", "q2": "two"}
QRELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1, "d": 0}}


def build(
    documents: dict[str, str] = DOCUMENTS,
    queries: dict[str, str] = QUERIES,
    qrels: dict[str, dict[str, int]] = QRELS,
) -> Dataset:
    return Dataset.of(documents, queries, qrels)


def read(data: Dataset) -> dict[str, dict[str, int]]:
    """Return the judgments of a dataset by query and document."""
    names = [*data.corpus.ids, *data.judgments.unknown_documents]
    table: dict[str, dict[str, int]] = {query: {} for query in data.queries.ids}
    for query, document, grade in data.judgments.list_rows():
        table[data.queries.ids[query]][names[document]] = grade
    return table


def test_equal_versions_have_no_changed_part_whatever_the_order_of_documents() -> None:
    turned = build(dict(reversed(DOCUMENTS.items())))
    pair = DatasetPair(build(), turned)
    assert pair.changed == []
    assert pair.mix(1, 1, 1) is turned


@pytest.mark.parametrize(
    ("other", "changed"),
    [
        (build({**DOCUMENTS, "e": "elder"}), ["documents"]),
        (build({**DOCUMENTS, "d": "dates"}), ["documents"]),
        (build(qrels={**QRELS, "q1": {"a": 1}}), ["judgments"]),
        (build(queries={**QUERIES, "q3": "three"}, qrels={**QRELS, "q3": {"d": 1}}), ["queries"]),
        (build(queries={**QUERIES, "q2": "2"}, qrels={**QRELS, "q2": {"a": 1}}), ["queries"]),
        (build({**DOCUMENTS, "e": "elder"}, qrels={"q1": {**QRELS["q1"], "e": 1}, "q2": QRELS["q2"]}), ["documents"]),
    ],
)
def test_a_document_and_a_query_bring_their_judgments(other: Dataset, changed: list[str]) -> None:
    for pair in (DatasetPair(build(), other), DatasetPair(other, build())):
        assert pair.changed == changed


def test_a_mixture_takes_each_part_from_its_side() -> None:
    new = build(
        {"a": "apple", "b": "bananas", "c": "cherry", "e": "elder"},
        {"q1": "one", "q3": "three"},
        {"q1": {"a": 2, "e": 1}, "q3": {"c": 1, "e": 2}},
    )
    pair = DatasetPair(build(), new)
    assert pair.changed == ["documents", "judgments", "queries"]
    assert pair.shared_queries == {"q1"}
    assert pair.list_grade_changes() == [("q1", "a", 1, 2), ("q1", "b", 2, None)]
    assert read(pair.mix(1, 0, 0)) == {"q1": {"a": 1, "b": 2, "e": 1}, "q2": {"c": 1}}, "d took its judgment along"
    assert read(pair.mix(0, 1, 0)) == {"q1": {"a": 2}, "q2": {"c": 1, "d": 0}}
    assert read(pair.mix(0, 0, 1)) == {"q1": {"a": 1, "b": 2}, "q3": {"c": 1}}
    assert read(pair.mix(0, 1, 1)) == {"q1": {"a": 2}, "q3": {"c": 1}}
    assert list(pair.mix(1, 0, 0).corpus.texts) == ["apple", "bananas", "cherry", "elder"]


def test_unmixed_sides_and_mixtures_without_a_change_are_the_versions() -> None:
    new = build({**DOCUMENTS, "e": "elder"})
    pair = DatasetPair(build(), new)
    assert pair.mix(0, 0, 0) is pair.first
    assert read(pair.mix(1, 0, 1)) == read(new)
    assert pair.mix(1, 0, 1).fingerprint == new.fingerprint


def test_judgments_of_documents_in_neither_version_remain() -> None:
    first, second = (replace(build(), judgments=judge_unknown(grade)) for grade in (1, 2))
    pair = DatasetPair(first, second)
    assert pair.changed == ["judgments"]
    assert read(pair.mix(0, 1, 0))["q2"] == {"c": 1, "d": 0, "x": 2}


def judge_unknown(grade: int) -> Judgments:
    """Return judgments with one of a document beyond the corpus."""
    own = build().judgments
    return replace(Judgments.of([*own.list_rows(), (1, len(DOCUMENTS), grade)]), unknown_documents=("x",))


def test_judgments_by_search_type_are_mixed_as_well() -> None:
    first, second = (build(qrels={"q1": {"a": grade}, "q2": {"c": 1}}).judgments for grade in (1, 2))
    both = build()
    pair = DatasetPair(
        *(replace(both, judgments=replace(both.judgments, by_search_type={"bm25": own})) for own in (first, second))
    )
    assert pair.changed == ["judgments"]
    assert pair.list_grade_changes("bm25") == [("q1", "a", 1, 2)]
    mixed = pair.mix(0, 1, 0)
    assert read(replace(mixed, judgments=mixed.judgments.select("bm25"))) == {"q1": {"a": 2}, "q2": {"c": 1}}
    assert read(mixed) == QRELS


def spans_version(texts: dict[str, str], quotes: dict[str, tuple[str, str]]) -> Dataset:
    """Return documents and queries of the same names, each with a quote of a document as its gold."""
    spans = [GoldSpan(query, document, quote=Quote(quote)) for query, (document, quote) in quotes.items()]
    qrels = {query: [document] for query, (document, _) in quotes.items()}
    whole = Dataset.of(Corpus(list(texts), list(texts.values())), {query: query for query in quotes}, qrels)
    placed = anchor_spans(spans, whole.corpus, 0.8)
    lost = [anchored.span.name for anchored in placed if anchored.anchor.is_lost]
    return attach_spans(whole, placed, lost, 0.5)


OLD = {"d1": "one two three four five six", "d2": "ten eleven twelve thirteen fourteen"}
SHUFFLED = {**OLD, "d2": "thirteen ten fourteen twelve eleven"}
QUOTES = {"q1": ("d1", "two three"), "q2": ("d2", "eleven twelve thirteen")}


def test_spans_are_located_again_in_the_documents_of_the_other_version() -> None:
    moved = {**QUOTES, "q1": ("d1", "five six")}
    first, second = spans_version(OLD, QUOTES), spans_version(SHUFFLED, moved)
    pair = DatasetPair(first, second)
    assert pair.changed == ["documents", "judgments"]
    assert DatasetPair(first, spans_version(SHUFFLED, QUOTES)).changed == ["documents"]
    only_documents = pair.mix(1, 0, 0)
    assert only_documents.judgments.unknown_documents == ("d2['eleven twelve thirteen']",)
    spans = only_documents.judgments.spans
    assert spans is not None and spans.documents.tolist() == [0, -1]
    assert only_documents.fingerprint == spans_version(SHUFFLED, QUOTES).fingerprint
    only_judgments = pair.mix(0, 1, 0)
    assert only_judgments.fingerprint == spans_version(OLD, moved).fingerprint
    assert not only_judgments.judgments.unknown_documents
    assert pair.mix(1, 1, 1) is second


def test_the_judgment_of_a_span_that_the_documents_lose_has_not_changed() -> None:
    first, second = spans_version(OLD, QUOTES), spans_version(SHUFFLED, QUOTES)
    assert DatasetPair(first, second).list_grade_changes() == []
    moved = spans_version(SHUFFLED, {**QUOTES, "q1": ("d2", "ten fourteen")})
    assert DatasetPair(first, moved).list_grade_changes() == [("q1", "d1", 1, None), ("q1", "d2", None, 1)]


def test_a_removed_document_takes_its_spans_with_it() -> None:
    first = spans_version(OLD, {**QUOTES, "q1": ("d2", "ten eleven")})
    pair = DatasetPair(first, spans_version({"d1": OLD["d1"], "d3": "new"}, {"q1": ("d3", "new"), "q2": ("d1", "six")}))
    spans = pair.mix(1, 0, 0).judgments.spans
    assert spans is not None and [anchored.span.document for anchored in spans.anchored] == ["d3"]
