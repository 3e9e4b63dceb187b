"""Exported spans of searches become queries, served rankings and, if so declared, judgments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import RetrieverError
from retrievers.store import NoStore
from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.traffic.queries import hash_query
from runner.datasets.traffic.served import Served
from runner.datasets.traffic.telemetry import Telemetry
from runner.testing.datasets import check_source
from tests.datasets.otlp import START, retrieval, span, thumb, write_spans

WEEK_S = 7 * 24 * 3600


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """Return a file with four searches: the first text twice, a week apart, and one that failed."""
    return write_spans(
        tmp_path / "spans.jsonl",
        span(1, {**retrieval("Opening hours", "d1", "d2"), "user.id": "ada", **thumb(1)}, ms=20),
        span(2, retrieval("parking", "d3", "d1"), seconds=10, ms=40),
        span(3, retrieval("refund"), seconds=20, error="time-out"),
        span(4, {**retrieval("opening  hours", "d2", "d3"), "user.id": "bob"}, seconds=WEEK_S, ms=60),
        **{"service.version": "1.4"},
    )


def test_texts_are_queries_with_the_newest_ranking_and_what_is_known_of_their_searches(traces: str) -> None:
    dataset = Telemetry(path=traces, unjudged_queries="keep").load()
    assert list(dataset.queries.texts) == ["opening  hours", "parking", "refund"]
    first, parking, refund = dataset.queries.metadata
    assert first == {
        "week": "2026-W49", "first": "2026-11-28T01:52:58+00:00", "last": "2026-12-05T01:52:58+00:00", "searches": 2,
        "failed": 0, "latency_ms": 40.0, "feedback": "good", "service.version": "1.4",
    }  # fmt: skip
    assert (parking["week"], parking["latency_ms"]) == ("2026-W48", 40.0)
    assert (refund["failed"], "feedback" in refund) == (1, False)
    assert list(dataset.corpus.ids) == ["d1", "d2", "d3"]
    assert dataset.corpus.texts[2] == "text of d3"
    assert dataset.reading.endswith(
        "spans.jsonl: 4 spans (used 3, failed 1); ids of served documents from id 6; feedback from person 1"
    )


def test_searches_of_one_text_are_a_cluster_and_share_the_judgments_of_people(traces: str, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("query_id\tdocument_id\tgrade\nopening hours\td3\t2\nparking\td1\t1\n")
    dataset = check_source(Telemetry(path=traces, unit="search", qrels=str(qrels)))
    assert list(dataset.queries.texts) == ["Opening hours", "opening  hours", "parking"]
    one, other, parking = dataset.queries.clusters
    assert one == other != parking
    assert dataset.judgments.list_rows() == [(0, 2, 2), (1, 2, 2), (2, 0, 1)]
    users = [row.get("user", "") for row in dataset.queries.metadata]
    assert len(users[0]) == 12 and users[0] != users[1] and users[2] == ""
    again = Telemetry(path=traces, unit="search", qrels=str(qrels), salt="k").load()
    assert again.queries.metadata[0]["user"] != users[0]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"feedback": "first"}, {"d1": 1}),
        ({"feedback": "all"}, {"d1": 1, "d2": 1}),
        ({"feedback": "first", "feedback_threshold": 2}, {"d1": 0}),
    ],
)
def test_feedback_judges_documents_only_as_declared(
    traces: str, settings: dict[str, Any], rows: dict[str, int]
) -> None:
    dataset = Telemetry(path=traces, **settings).load()
    ids = dataset.corpus.ids
    assert {ids[document]: grade for _, document, grade in dataset.judgments.list_rows()} == rows
    assert f"judgments from feedback of person, api: {len(rows)}, as if" in dataset.reading


@pytest.mark.parametrize("settings", [{}, {"feedback": "first", "feedback_kinds": ["model"]}])
def test_without_declared_feedback_of_its_kind_there_are_no_judgments(traces: str, settings: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match=r"contains no judgments.*unjudged_queries=keep"):
        Telemetry(path=traces, **settings).load()


def test_people_replace_feedback_and_the_announcement_counts_it(traces: str, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("query_id\tdocument_id\tgrade\nopening hours\td1\t0\nparking\td3\t1\n")
    dataset = Telemetry(path=traces, feedback="all", qrels=str(qrels)).load()
    assert dataset.judgments.list_rows() == [(0, 0, 0), (0, 1, 1), (1, 2, 1)]
    assert dataset.reading.endswith("documents; 2 by people replace 1 of them")


def test_a_window_has_the_searches_in_it_and_counts_the_others(traces: str) -> None:
    source = Telemetry(path=traces, since="2026-11-29", unjudged_queries="keep")
    assert list(source.load().queries.texts) == ["opening  hours"]
    assert source.read_traffic().describe().startswith("4 spans (outside the window 3, used 1)")
    assert [s.query for s in Telemetry(path=traces, until="2026-11-29").read_traffic().searches] == [
        "Opening hours", "parking", "refund",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="yesterday is not a time"):
        Telemetry(path=traces, since="yesterday")


def test_a_tenant_is_hashed_and_named_attributes_are_slices(tmp_path: Path) -> None:
    about = json.dumps({"tenant": "acme", "plan": "pro"})
    path = write_spans(tmp_path / "s.jsonl", span(1, {**retrieval("q", "d"), "metadata": about}))
    source = Telemetry(path=path, tenant="tenant", attributes=("plan",), unjudged_queries="keep")
    metadata = source.load().queries.metadata[0]
    assert metadata["plan"] == "pro"
    assert len(metadata["tenant"]) == 12 and "acme" not in str(metadata)


def test_a_sampled_search_stands_for_several_unless_its_span_says_so(tmp_path: Path) -> None:
    spans = [span(1, retrieval("q", "a")), span(2, retrieval("q", "a"), traceState="ot=th:8")]
    source = Telemetry(path=write_spans(tmp_path / "s.jsonl", *spans), sampling=0.1, unjudged_queries="keep")
    dataset = source.load()
    assert dataset.queries.metadata[0]["searches"] == 12
    assert "2 spans (used 2); 2 sampled searches stand for 12; ids" in dataset.reading


def test_personal_data_in_queries_is_masked_in_the_same_way_for_data_and_rankings(tmp_path: Path) -> None:
    spans = [span(i, retrieval(f"mail {name}@example.org", "a")) for i, name in enumerate(("ada", "eve"), start=1)]
    source = Telemetry(
        path=write_spans(tmp_path / "s.jsonl", *spans), mask={"email": r"\S+@\S+"}, unjudged_queries="keep"
    )
    dataset = source.load()
    assert (list(dataset.queries.texts), dataset.queries.ids) == (["mail <email>"], [hash_query("mail <email>")])
    rankings = source.served.index(dataset.corpus, NoStore()).search(dataset.queries.inputs, 1)
    assert rankings.documents.tolist() == [[0]]


def test_a_trace_without_queries_is_refused_with_the_counts(tmp_path: Path) -> None:
    content = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.top_k": 3}
    path = write_spans(tmp_path / "s.jsonl", span(1, content), span(2, {"name": "other"}))
    with pytest.raises(DatasetError, match=r"no span of a search has a query; 2 spans \(other kind 1, no query 1\)"):
        Telemetry(path=path).load()


def test_documents_of_the_collection_replace_those_that_were_served(traces: str, tmp_path: Path) -> None:
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(json.dumps({"_id": f"d{i}", "text": "now"}) + "\n" for i in (1, 2)))
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("query_id\tdocument_id\tgrade\nparking\td3\t1\nparking\td1\t1\n")
    source = {"path": traces, "documents": str(documents), "qrels": str(qrels)}
    with pytest.raises(DatasetError, match=r"qrels\.tsv:2: .*d3"):
        Telemetry(**source).load()
    dataset = Telemetry(**source, unknown_judged="keep").load()
    assert list(dataset.corpus.texts) == ["now", "now"]
    assert list(dataset.judgments.unknown_documents) == ["d3"]


def test_served_rankings_are_found_by_the_ids_of_queries_with_their_latency(traces: str) -> None:
    searches = Telemetry(path=traces, unit="search", unjudged_queries="keep").load()
    rankings = Served(path=traces).index(searches.corpus, NoStore()).search(searches.queries.inputs, 1)
    assert [searches.corpus.ids[row[0]] if row[0] >= 0 else "" for row in rankings.documents] == ["d1", "d2", "d3", ""]
    assert rankings.seconds is not None
    assert rankings.seconds[:3].tolist() == pytest.approx([0.02, 0.06, 0.04])
    assert rankings.errors == {3: "time-out"}
    texts = Telemetry(path=traces, unjudged_queries="keep").load()
    newest = Served(path=traces).index(texts.corpus, NoStore()).search(texts.queries.inputs, 10)
    assert [texts.corpus.ids[d] for d in newest.documents[0]] == ["d2", "d3"]
    with pytest.raises(RetrieverError, match=r"contains none of the 1 queries, such as 'other'"):
        Served(path=traces).index(texts.corpus, NoStore()).search(["other"], 10)


def test_the_served_ranking_is_scored_from_the_command_line(
    traces: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("query_id\tdocument_id\tgrade\nopening hours\td3\t1\nparking\td3\t1\n")
    data = ["dataset=telemetry", f"dataset.path={traces}", f"dataset.qrels={qrels}", "store.path=store"]
    assert main([*data, "retriever=served", "tracking=none"]) == 0
    printed = capsys.readouterr()
    assert "4 spans (used 3, failed 1)" in printed.err
    assert "RR 0.750" in printed.out
    assert main(["inspect", *data]) == 0
    assert "4 spans (used 3, failed 1)" in " ".join(capsys.readouterr().out.split())


def test_files_that_have_not_changed_are_read_once(traces: str) -> None:
    source = Telemetry(path=traces)
    assert source.read_traffic() is source.read_traffic()
    before = source.read_traffic()
    Path(traces).write_text(Path(traces).read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert source.read_traffic() is not before
    assert source.read_traffic().outcomes["duplicate"] == 4
    assert before.searches[0].start_ns == START


def test_random_ids_of_documents_are_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ids = [f"0b9e2f5{number}-3c1d-4a6b-9f00-123456789abc" for number in range(3)]
    path = write_spans(tmp_path / "s.jsonl", span(1, retrieval("q", *ids, "d1")))
    Telemetry(path=path, unjudged_queries="keep").load()
    assert "3 of 4 served documents have random ids" in caplog.text
