"""Which ranking of a trace was served, what its spans lack, and where the ids of documents come from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from runner.datasets.traffic.reading import read_traffic
from runner.datasets.traffic.searches import Traffic, TrafficCollector
from runner.datasets.traffic.spans import IdRule, ServedDocuments, normalise_id, parse_time
from tests.datasets.otlp import documents, reranking, retrieval, span, thumb, write_spans

RULES: tuple[IdRule, ...] = ("id", "metadata", "source", "text")
TOOL = {"openinference.span.kind": "TOOL", "input.value": "q", "output.value": '[{"id": "a"}]'}


def read(folder: Path, *spans: dict[str, Any], rules: tuple[IdRule, ...] = RULES) -> Traffic:
    collector = TrafficCollector(ServedDocuments(rules), lambda _: {}, str.upper)
    return read_traffic([Path(write_spans(folder / "s.jsonl", *spans))], collector)


def list_served(traffic: Traffic) -> list[tuple[str, list[str]]]:
    return [(search.query, [name for name, _ in traffic.list_hits(search)]) for search in traffic.searches]


CASES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]] = {
    "a reranker within a retriever": (
        [span(1, retrieval("q", "a", "b"), trace=9), span(2, reranking("q", "ab", "ba"), parent=1, trace=9)],
        [("q", ["b", "a"])],
    ),
    "a retriever that returns a part of what its reranker ranked": (
        [span(1, retrieval("q", "b"), trace=9), span(2, reranking("q", "ac", "bac"), parent=1, trace=9)],
        [("q", ["b"])],
    ),
    "a reranker after a retriever, and one after it": (
        [
            span(5, {}, trace=9),
            span(1, retrieval("q", "a", "b", "c"), parent=5, trace=9),
            span(2, reranking("q", "abc", "cba"), parent=5, trace=9, seconds=1),
            span(3, reranking("q", "cba", "bc"), parent=5, trace=9, seconds=2),
        ],
        [("q", ["b", "c"])],
    ),
    "a reranker of two retrievers": (
        [
            span(1, retrieval("q", "a", "b"), parent=5, trace=9),
            span(2, retrieval("q", "c"), parent=5, trace=9, seconds=1),
            span(3, reranking("q", "abc", "cab"), parent=5, trace=9, seconds=2),
        ],
        [("q", ["c", "a", "b"])],
    ),
    "a retriever within a retriever, below a tool": (
        [
            span(4, TOOL, trace=9),
            span(1, retrieval("q", "a"), parent=4, trace=9),
            span(2, {}, parent=1, trace=9),
            span(3, retrieval("q", "a", "b"), parent=2, trace=9),
        ],
        [("q", ["a"])],
    ),
    "sub-queries and a retry": (
        [
            span(1, retrieval("q1", "a"), trace=9),
            span(2, retrieval("q2"), trace=9, seconds=1, error="x"),
            span(3, retrieval("q2", "b"), trace=9, seconds=2),
        ],
        [("q1", ["a"]), ("q2", []), ("q2", ["b"])],
    ),
    "a reranker alone": ([span(2, reranking("q", "ab", "ba"))], [("q", ["b", "a"])]),
    "parents in a circle": (
        [span(1, retrieval("q", "a"), parent=2, trace=9), span(2, {}, parent=1, trace=9)], [("q", ["a"])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_search_has_the_ranking_that_was_served(tmp_path: Path, case: str) -> None:
    spans, expected = CASES[case]
    assert list_served(read(tmp_path, *spans)) == expected
    assert list_served(read(tmp_path, *reversed(spans))) == expected


def test_a_search_takes_as_long_as_its_last_step(tmp_path: Path) -> None:
    spans = [span(1, retrieval("q", "a"), trace=9, ms=30), span(2, reranking("q", "a", "a"), trace=9, seconds=1, ms=50)]
    (search,) = read(tmp_path, *spans).searches
    assert search.latency_ms == 1050


OUTCOMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "used": (retrieval("q", "a"), {}),
    "failed": (retrieval("q"), {"error": "x"}),
    "no query": (documents("retrieval.documents", "a") | {"openinference.span.kind": "RETRIEVER"}, {}),
    "no documents": (retrieval("q"), {}),
    "redacted": (retrieval("__REDACTED__", "a"), {}),
    "truncated": (retrieval("q") | {"output.value": '{"documents": [{"id": "a"'}, {}),
    "dropped attributes": (retrieval("q", "a"), {"droppedAttributesCount": 3}),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_a_span_lacks_is_its_outcome(tmp_path: Path, outcome: str) -> None:
    content, more = OUTCOMES[outcome]
    traffic = read(tmp_path, span(1, content, **more), span(2, {}))
    assert traffic.outcomes == {outcome: 1, "other kind": 1}


def test_an_empty_list_was_served_and_is_not_missing(tmp_path: Path) -> None:
    traffic = read(tmp_path, span(1, retrieval("q") | {"output.value": "[]"}))
    assert traffic.outcomes == {"used": 1}
    assert traffic.searches[0].hits == b""


def test_documents_keep_their_rank_where_others_were_dropped(tmp_path: Path) -> None:
    content = {key: value for key, value in retrieval("q", *"abcdefghijk").items() if ".0." not in key}
    traffic = read(tmp_path, span(1, dict(reversed(content.items()))))
    ids = [name for name, _ in traffic.list_hits(traffic.searches[0])]
    assert ids == ["unrecorded:0", *"bcdefghijk"]
    assert traffic.outcomes == {"dropped attributes": 1}


TEXT = "Opening  Hours"
HASH = f"text:{hashlib.sha256(b'opening hours').hexdigest()[:16]}"


@pytest.mark.parametrize(
    ("document", "rules", "expected"),
    [
        ({"id": 7, "content": TEXT}, RULES, ("7", "id")),
        ({"metadata": '{"chunk_id": "c1", "source": "s"}'}, RULES, ("c1", "metadata")),
        ({"metadata": {"source": "kb.md", "chunk": 0}}, RULES, ("kb.md#0", "source")),
        ({"metadata": {"url": "http://x"}, "content": TEXT}, RULES, ("http://x", "source")),
        ({"page_content": TEXT}, RULES, (HASH, "text")),
        (TEXT, RULES, (HASH, "text")),
        ({"id": "u", "metadata": {"source": "kb.md"}}, ("source", "id"), ("kb.md", "source")),
        ({"id": "bad\nid", "content": TEXT}, RULES, (HASH, "text")),
        ({"node": {"id_": "n", "text": "t"}, "score": 0.5}, RULES, ("n", "id")),
        ([{"id": "p"}, 0.25], RULES, ("p", "id")),
        ({}, RULES, ("unrecorded:0", "unrecorded")),
    ],
)
def test_the_id_of_a_document_comes_from_the_first_rule_that_applies(
    tmp_path: Path, document: object, rules: tuple[IdRule, ...], expected: tuple[str, str]
) -> None:
    content = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "q"}
    traffic = read(tmp_path, span(1, content | {"gen_ai.retrieval.documents": [document]}), rules=rules)
    ((name, _),) = traffic.list_hits(traffic.searches[0])
    assert (name, *traffic.rules) == expected


def test_both_vocabularies_on_one_span_are_one_ranking(tmp_path: Path) -> None:
    content = retrieval("q", "a") | {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": '[{"id": "a"}]',
    }
    assert list_served(read(tmp_path, span(1, content))) == [("q", ["a"])]


def test_ids_that_are_only_in_the_output_are_used(tmp_path: Path) -> None:
    content = {key: value for key, value in retrieval("q", "a", "b").items() if "content" in key or "." not in key}
    content |= {"openinference.span.kind": "RETRIEVER", "input.value": '{"query": "q"}'}
    content["output.value"] = '{"documents": [{"id": "a", "metadata": {"score": 2}}, {"id": "b"}]}'
    traffic = read(tmp_path, span(1, content))
    assert traffic.list_hits(traffic.searches[0]) == [("a", 2.0), ("b", None)]
    assert traffic.texts == ["text of a", "text of b"]


def test_hits_as_events_are_a_ranking(tmp_path: Path) -> None:
    hits = [
        {"name": "db.query.result", "attributes": [{"key": "db.query.result.id", "value": {"stringValue": name}}]}
        for name in "ab"
    ]
    content = {"db.system": "x", "db.vector.query.top_k": 2, "traceloop.entity.input": '{"query": "q"}'}
    assert list_served(read(tmp_path, span(1, content, events=hits))) == [("q", ["a", "b"])]


def test_a_repeated_span_counts_once_and_its_person_may_be_named_above(tmp_path: Path) -> None:
    once = span(1, retrieval("q", "a"), trace=9, parent=2)
    traffic = read(tmp_path, once, once, span(2, {"user.id": "ada", "session.id": "s"}, trace=9))
    assert traffic.outcomes == {"used": 1, "duplicate": 1, "other kind": 1}
    assert [(search.user, search.session) for search in traffic.searches] == [("ADA", "S")]


def test_feedback_concerns_a_span_or_the_only_search_that_succeeded(tmp_path: Path) -> None:
    link = {"links": [{"traceId": f"{9:032x}", "spanId": f"{2:016x}"}]}
    spans = [
        span(1, retrieval("q", "a"), trace=9, parent=5),
        span(2, retrieval("r", "b"), trace=9, parent=5),
        span(3, {"openinference.span.kind": "EVALUATOR", **thumb(0, "LLM")}, **link),
        span(5, thumb(1), trace=9),  # above two searches
        span(6, retrieval("s"), trace=8, parent=7, error="x"),
        span(7, thumb(1), trace=8),
        span(8, retrieval("s", "c"), trace=8, parent=7, seconds=1),
    ]
    traffic = read(tmp_path, *spans)
    given = {s.query: [(f.value, f.kind) for f in s.feedback] for s in traffic.searches if s.feedback}
    assert given == {"r": [(0.0, "model")], "s": [(1.0, "person")]}
    assert (traffic.feedback, traffic.unjoined) == ({"person": 2, "model": 1}, 1)


def test_a_sampled_span_stands_for_others(tmp_path: Path) -> None:
    traffic = read(tmp_path, span(1, retrieval("q", "a"), traceState="x=1,ot=th:c;rv:1"), span(2, retrieval("r", "a")))
    assert [search.weight for search in traffic.searches] == [4.0, 1.0]


@pytest.mark.parametrize(
    "text", ["e698ba5cf0e0e45eb1c6e87f3cfc5195", "0xE698BA5CF0E0E45EB1C6E87F3CFC5195", "5pi6XPDg5F6xxuh/PPxRlQ==",
             "tr-e698ba5cf0e0e45eb1c6e87f3cfc5195", "e698ba5c-f0e0-e45e-b1c6-e87f3cfc5195"]
)  # fmt: skip
def test_an_id_is_the_same_in_every_notation(text: str) -> None:
    assert normalise_id(text).hex() == "e698ba5cf0e0e45eb1c6e87f3cfc5195"


@pytest.mark.parametrize(
    "value", ["1795830778123456000", 1795830778123456000, "2026-11-28T01:52:58.123456Z", "2026-11-28 01:52:58.123456",
              "2026-11-28T02:52:58.123456+01:00", 1795830778123456]
)  # fmt: skip
def test_a_time_is_the_same_in_every_notation(value: object) -> None:
    assert parse_time(value) == 1795830778123456000
