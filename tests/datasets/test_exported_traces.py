"""Traces that other programs export are read whole, and what is broken in them is named."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from runner.datasets.base import DatasetError
from runner.datasets.traffic.formats import read_record
from runner.datasets.traffic.reading import read_traffic
from runner.datasets.traffic.searches import Traffic, TrafficCollector
from runner.datasets.traffic.spans import ID_RULES, ServedDocuments, Span
from tests.datasets.otlp import batch, retrieval, span, thumb

OTLP, LANGFUSE = {"other kind": 2, "used": 2, "failed": 1}, {"other kind": 2, "used": 2, "failed": 1}
RERANKED = {"other kind": 3, "used": 2, "failed": 1, "nested": 1}
BY_ID, OF_CHUNK = {"id": 5, "source": 1}, {"id": 5, "metadata": 1}
EXAMPLES: dict[str, tuple[list[str], dict[str, int], dict[str, int], dict[str, int], int]] = {
    "OpenTelemetry": (["otlp_genai_traces.jsonl", "otlp_genai_logs.jsonl"], OTLP, BY_ID, {"api": 1}, 0),
    "OpenInference": (["openinference_traces.jsonl"], RERANKED, BY_ID, {"person": 1}, 0),
    "a request in protobuf": (["openinference_traces.pb"], RERANKED, BY_ID, {"person": 1}, 0),
    "requests in protobuf": (["openinference_traces.binpb"], RERANKED, BY_ID, {"person": 1}, 0),
    "MLflow": (["mlflow_traces.jsonl"], RERANKED | {"other kind": 2}, OF_CHUNK, {"person": 1}, 0),
    "Langfuse's SDK": (["langfuse_sdk_spans.jsonl", "langfuse_sdk_requests.jsonl"], LANGFUSE, BY_ID, {"api": 1}, 0),
    **{
        f"Langfuse's export in {name}": (
            [f"langfuse_export_observations_v2.{name}", f"langfuse_export_scores.{name.removesuffix('.gz')}"],
            LANGFUSE, BY_ID, {"api": 1}, 0,
        )
        for name in ("csv", "json", "jsonl", "jsonl.gz")
    },
    "Langfuse's interface": (["langfuse_ui_export_events.json"], LANGFUSE, BY_ID, {"api": 1}, 0),
    "LangSmith": (["langsmith_runs.jsonl", "langsmith_feedback.jsonl"], OTLP, BY_ID, {"api": 1}, 0),
    "LangSmith in Parquet": (["langsmith_bulk_export.parquet"], OTLP, BY_ID, {}, 0),
    "LangSmith's SDK": (["langsmith_sdk_requests.jsonl"], OTLP, BY_ID, {"api": 1}, 0),
    "Phoenix": (["phoenix_spans_dataframe.json", "phoenix_annotations.json"], RERANKED, BY_ID, {"person": 2}, 1),
    "Phoenix in Parquet": (["phoenix_spans.parquet"], RERANKED, BY_ID, {"person": 1}, 1),
    "Phoenix over REST": (["phoenix_rest_spans.json"], RERANKED, BY_ID, {"person": 1}, 1),
}  # fmt: skip
"""Files, and what they hold: the outcomes of spans, where ids come from, feedback, and how much concerns no search."""

FIRST = ("doc-1", "doc-2", "kb/unlock.md#1")
SECOND = ("doc-7", "doc-8", "doc-9")


def read(*paths: Path) -> Traffic:
    return read_traffic(paths, TrafficCollector(ServedDocuments(ID_RULES), lambda _: {}, str))


def check_content(traffic: Traffic, reranked: bool) -> None:
    """Check the three searches of every example: two texts, one of them asked again after an error."""
    texts = ["how do I reset my password", "refund after 30 days", "refund after 30 days"]
    assert [search.query for search in traffic.searches] == texts
    assert [bool(search.error) for search in traffic.searches] == [False, True, False]
    hits = [traffic.list_hits(search) for search in traffic.searches]
    assert [name for name, _ in hits[0]] == list(FIRST[::-1] if reranked else FIRST)
    assert hits[1] == []
    assert hits[2] == [(name, pytest.approx(score)) for name, score in zip(SECOND, (12.4, 9.8, 3.1), strict=True)]
    assert {(search.user, search.session) for search in traffic.searches} == {("user-17", "sess-4")}
    assert all(search.start_ns > 1_795_000_000 * 10**9 and search.latency_ms >= 0 for search in traffic.searches)
    assert traffic.texts[traffic.documents.index("doc-9")] == "Shipping takes three working days."


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_span_of_a_real_export_is_read(exported_traces: Path, name: str) -> None:
    files, outcomes, rules, feedback, unjoined = EXAMPLES[name]
    traffic = read(*(exported_traces / file for file in files))
    assert traffic.outcomes == outcomes
    assert traffic.spans == sum(outcomes.values())
    assert (traffic.rules, traffic.feedback, traffic.unjoined) == (rules, feedback, unjoined)
    assert (traffic.broken, traffic.unknown, traffic.damage) == (0, 0, [])
    check_content(traffic, "nested" in outcomes)
    judged = [search for search in traffic.searches if search.feedback]
    assert len(judged) == sum(feedback.values()) - unjoined


def make_store(path: Path, traces: Sequence[dict[str, Any]]) -> None:
    """Write traces into the tables of MLflow's store that hold them."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE trace_info (request_id, timestamp_ms); CREATE TABLE trace_tags (request_id, key, value);"
            "CREATE TABLE trace_request_metadata (request_id, key, value);"
            "CREATE TABLE spans (trace_id, start_time_unix_nano, content);"
            "CREATE TABLE assessments (assessment_id, trace_id, name, span_id, source_type, value, valid, "
            "assessment_type, created_timestamp);"
        )
        for trace in traces:
            info = trace["info"]
            database.execute("INSERT INTO trace_info VALUES (?, ?)", (info["trace_id"], len(traces)))
            for table, pairs in (("trace_tags", info["tags"]), ("trace_request_metadata", info["trace_metadata"])):
                rows = [(info["trace_id"], *pair) for pair in pairs.items()]
                database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
            for one in trace["data"]["spans"]:
                row = (info["trace_id"], one["start_time_unix_nano"], json.dumps(one))
                database.execute("INSERT INTO spans VALUES (?, ?, ?)", row)
            for one in info.get("assessments", []):
                row = (one["assessment_id"], info["trace_id"], one["assessment_name"], None)
                row += (one["source"]["source_type"], json.dumps(one["feedback"]["value"]), one["valid"], "feedback", 1)
                database.execute("INSERT INTO assessments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        database.commit()


def test_a_store_of_mlflow_is_read_and_not_changed(exported_traces: Path, tmp_path: Path) -> None:
    store = tmp_path / "mlflow.db"
    lines = (exported_traces / "mlflow_traces.jsonl").read_text(encoding="utf-8").splitlines()
    make_store(store, [json.loads(line) for line in lines])
    before = store.read_bytes()
    traffic = read(store)
    assert traffic.outcomes == RERANKED | {"other kind": 2}
    assert traffic.feedback == {"person": 1}
    check_content(traffic, reranked=True)
    assert store.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["mlflow.db"]


def test_what_is_only_in_the_log_of_a_store_is_read_too(exported_traces: Path, tmp_path: Path) -> None:
    store = tmp_path / "mlflow.db"
    first, second = (exported_traces / "mlflow_traces.jsonl").read_text(encoding="utf-8").splitlines()
    make_store(store, [json.loads(first)])
    with closing(sqlite3.connect(store)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        row = (json.loads(second)["info"]["trace_id"], 3)
        database.execute("INSERT INTO trace_info VALUES (?, ?)", row)
        database.commit()
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        traffic = read(store)
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert traffic.damage == [f"{store}, trace {row[0]}: damaged (ValueError: no spans; they are in another place)"]


def test_traces_in_a_folder_of_artifacts_are_read_alone_and_with_their_store(
    exported_traces: Path, tmp_path: Path
) -> None:
    store, folder = tmp_path / "mlflow.db", tmp_path / "artifacts"
    lines = (exported_traces / "mlflow_traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [json.loads(line) for line in lines]
    for number, trace in enumerate(traces):
        file = folder / str(number) / "traces.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(trace["data"]), encoding="utf-8")
        tags = {"mlflow.artifactLocation": file.parent.as_uri(), "mlflow.trace.spansLocation": "ARTIFACT_REPO"}
        trace["info"]["tags"], trace["data"] = tags, {"spans": []}
    make_store(store, traces)
    alone = read(*sorted(folder.rglob("*.json")))
    assert (alone.outcomes, alone.broken, alone.unknown) == (RERANKED | {"other kind": 2}, 0, 0)
    assert [search.query for search in alone.searches] == ["how do I reset my password", *["refund after 30 days"] * 2]
    check_content(read(store), reranked=True)


LINE = json.dumps(batch(span(1, retrieval("q", "a", "b") | thumb(1)), span(2, retrieval("r", "c"))))


def test_a_broken_line_is_named_and_the_others_count(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(f"{LINE}\n{LINE[:200]}\n[1]\n\n{LINE[:300]}\n", encoding="utf-8")
    traffic = read(path)
    (line,) = traffic.damage
    assert line.startswith(f"{path}:2: not JSON (") and line.endswith("); 1 more in this file")
    assert (traffic.outcomes, traffic.broken, traffic.unknown) == ({"used": 2}, 2, 1)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_spans_are_read_as_a_whole_and_by_request(tmp_path: Path, compression: str) -> None:
    def pack(content: bytes) -> bytes:
        stream = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(stream, compression) as file:
            file.write(content)
        packed: bytes = stream.getvalue().to_pybytes()
        return packed

    path, whole = tmp_path / "spans.json", pack(LINE.encode())
    path.write_bytes(whole)
    assert read(path).outcomes == {"used": 2}
    path.write_bytes(whole[:-9])
    with pytest.raises(DatasetError, match=r"spans\.json: cannot be read \("):
        read(path)
    requests = [pack(LINE.encode()), pack(LINE.replace("000001", "00000a").encode())]
    path.write_bytes(b"".join(len(request).to_bytes(4, "big") + request for request in requests))
    if compression == "zstd":  # as OpenTelemetry's Collector writes them
        assert read(path).outcomes == {"used": 3, "duplicate": 1}


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "no JSON", '{"resourceSpans": 7}', "a,b\n1,2\n"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv", "x.pb", "x.binpb", "x.parquet", "x.jsonl.gz"])
def test_a_file_without_spans_is_refused_in_one_line(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"^[^\n]+$") as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_store_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE t (a)")
        database.commit()
    with pytest.raises(DatasetError, match=r"x\.db: a SQLite database without traces of MLflow"):
        read(tmp_path / "x.db")


def test_protobuf_that_ends_early_keeps_what_came_before(exported_traces: Path, tmp_path: Path) -> None:
    content = (exported_traces / "openinference_traces.binpb").read_bytes()
    (tmp_path / "x.binpb").write_bytes(content + content[:100])
    traffic = read(tmp_path / "x.binpb")
    assert traffic.outcomes == RERANKED
    assert traffic.damage == [f"{tmp_path / 'x.binpb'}, request 2: not OTLP in protobuf (the file ends within it)"]


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value in JSON, as keys and positions."""
    yield place
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from list_places(value[key], (*place, key))


SAMPLES = [
    json.loads(LINE),
    {"info": {"trace_id": "tr-1", "assessments": [{"assessment_name": "x", "feedback": {"value": 1}}]},
     "data": {"spans": [
        {"span_id": "a", "start_time_unix_nano": 1, "attributes": {"mlflow.spanType": '"RETRIEVER"',
         "mlflow.spanInputs": '{"query": "q"}', "mlflow.spanOutputs": '[{"id": "a"}]'}, "status": {"code": "OK"}}]}},
    {"id": "a", "trace_id": "b", "type": "RETRIEVER", "input": "q", "output": '[{"id": "d"}]', "metadata": {"a": "b"}},
    {"id": "a", "traceId": "b", "type": "RETRIEVER", "input": "q", "output": [{"id": "d"}], "thumb": [1]},
    {"id": "a", "trace_id": "b", "name": "x", "value": 1, "data_type": "NUMERIC"},
    {"id": "a", "trace_id": "b", "run_type": "retriever", "inputs": {"query": "q"}, "outputs": {"documents": [
        {"page_content": "t", "metadata": {"source": "s"}}]}, "extra": {"metadata": {"user_id": "u"}}},
    {"key": "x", "run_id": "a", "score": 1, "feedback_source": {"type": "app"}},
    {"context": {"trace_id": "a", "span_id": "b"}, "start_time": "2026-11-28T01:52:58", "span_kind": "RETRIEVER",
     "attributes": {"input.value": "q", "retrieval.documents.0.document.metadata.source": "s"}, "events": []},
    {"span_id": "b", "annotation_name": "x", "result": {"score": 1}},
]  # fmt: skip
"""A record of each format."""
ODD = [None, "", "x", 7, -1.5, True, [], {}, [[]], {"a": None}, "9" * 400, "[", '{"a": ', "\ud800"]
DELETED = object()


@pytest.mark.parametrize("sample", range(len(SAMPLES)))
def test_damaged_records_are_counted_and_never_end_the_reading(sample: int) -> None:
    whole = json.dumps(SAMPLES[sample])
    for *above, last in filter(None, list_places(SAMPLES[sample])):
        for odd in (*ODD, DELETED):
            record = holder = json.loads(whole)
            for key in above:
                holder = holder[key]
            if odd is DELETED:
                del holder[last]
            else:
                holder[last] = odd
            collector = TrafficCollector(ServedDocuments(ID_RULES), lambda _: {}, str)
            items = list(read_record(record, collector.documents) or ())
            for item in items:
                if not isinstance(item, Exception):
                    collector.add(item)
            traffic = collector.join()
            assert traffic.spans == sum(isinstance(item, Span) for item in items) == sum(traffic.outcomes.values())
            assert all(isinstance(name, str) for search in traffic.searches for name, _ in traffic.list_hits(search))


def test_two_hundred_broken_files_have_a_line_each(tmp_path: Path) -> None:
    for number in range(200):
        cut = 1 + number * (len(LINE) - 2) // 200
        content = [LINE[:cut].encode(), LINE.encode()[cut:], b"\0" * number, b"{}"][number % 4]
        (tmp_path / f"{number:03}.jsonl").write_bytes(content)
    (tmp_path / "whole.jsonl").write_text(LINE, encoding="utf-8")
    traffic = read(*sorted(tmp_path.iterdir()))
    assert traffic.outcomes == {"used": 2}
    assert [line.count("\n") for line in traffic.damage] == [0] * 200
    assert all(f"{number:03}.jsonl" in line for number, line in enumerate(traffic.damage))
    assert traffic.broken + traffic.unknown == 200
