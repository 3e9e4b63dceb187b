from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import NOTHING, create_empty_rankings
from retrievers.runs.trec_tokens import encode_token
from retrievers.work import Cost
from runner.evaluation.records import load_record, save_record, write_trec
from runner.evaluation.result import Hits, ResultError
from tests.pages.factory import result


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("d1", "d1"),
        ("a b", "a%20b"),
        ("a  b", "a%20%20b"),
        (" a b", "%20a%20b"),
        ("a%20b", "a%2520b"),
        ("a\tb\n", "a%09b%0A"),
        ("a\u3000b", "a%E3%80%80b"),
        ("Gr\u00f6\u00dfe/x-1", "Gr\u00f6\u00dfe/x-1"),
        ("", "%"),
        ("a\0b", "a%00b"),
        ("\ufeffa", "%EF%BB%BFa"),
    ],
)
def test_an_id_is_one_field_of_a_run(text: str, token: str) -> None:
    assert encode_token(text) == token


@given(st.text())
def test_an_encoded_id_is_one_field_and_can_be_decoded(text: str) -> None:
    assert len(encode_token(text).split()) == 1
    assert unquote(encode_token(text)) == (text or "%")


@given(st.text(" %20ab", max_size=4), st.text(" %20ab", max_size=4))
def test_distinct_ids_stay_distinct(one: str, other: str) -> None:
    assert (encode_token(one) == encode_token(other)) == (one == other)


def test_a_run_has_six_fields_a_line(tmp_path: Path) -> None:
    found = result("a name", queries=3)
    assert found.hits is not None
    spaced = replace(found.hits, documents=[f"d {i}" for i in range(300)])
    write_trec(replace(found, hits=spaced), tmp_path / "run.gz")
    lines = [line.split() for line in gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()]
    assert all(len(fields) == 6 for fields in lines)
    assert lines[0][0] == "q000"
    assert lines[0][2].startswith("d%20")
    assert {fields[5] for fields in lines} == {"percent-encoded:a%20name"}


def test_the_tag_of_a_run_says_only_of_encoded_ids_that_they_are(tmp_path: Path) -> None:
    write_trec(result("a name", queries=3), tmp_path / "run.gz")
    lines = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()
    assert {line.split()[5] for line in lines} == {"a%20name"}


def test_a_run_needs_rankings(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="without its rankings"):
        write_trec(result(hits=False), tmp_path / "run.gz")


def test_hits_of_a_large_corpus_are_pickled_without_its_other_documents() -> None:
    whole = result("bm25", queries=3).hits
    assert whole is not None
    large = replace(whole, documents=[*whole.documents, *(f"other {i}" for i in range(10_000))])
    here, there = pickle.dumps(whole), pickle.dumps(large)
    assert len(there) < len(here) + 1000
    sent = pickle.loads(there)
    assert [sent.ids(query) for query in range(3)] == [whole.ids(query) for query in range(3)]
    assert sent.rankings.scores.tolist() == whole.rankings.scores.tolist()
    assert sent.grades.tolist() == whole.grades.tolist()


def test_results_on_the_same_queries_share_their_columns_in_another_process(tmp_path: Path) -> None:
    first, other = result("a", quality=0.9), result("b", quality=0.2)
    second = replace(other, queries=replace(first.queries, statuses=other.queries.statuses))
    read = [pickle.loads(pickle.dumps(one)).queries for one in (first, second, other)]
    assert [vars(table) for table in read] == [vars(one.queries) for one in (first, second, other)]
    assert read[0].expected is read[1].expected
    for one in (first, second, other, first):
        save_record(one, tmp_path)
        assert vars(load_record(tmp_path).queries) == vars(one.queries)


def test_a_record_keeps_grades_times_and_what_is_shown_of_documents(tmp_path: Path) -> None:
    made = result(queries=3, no_result=1)
    assert made.hits is not None
    metadata = [{"headline": f"Item {i}", "themes": ["a", "b"]} if i % 2 else {} for i in range(300)]
    made = replace(
        made,
        queries=replace(made.queries, expected_grades=[[3, 1], [2, 2], [1, 1], []]),
        timings=replace(made.timings, each_ms=[1.5, None, 2.5]),
        hits=replace(made.hits, metadata=metadata),
    )
    save_record(made, tmp_path)
    again = load_record(tmp_path)
    assert again.queries.expected_grades == made.queries.expected_grades
    assert again.timings.each_ms == made.timings.each_ms
    assert again.hits is not None
    shown = dict(zip(again.hits.documents, again.hits.metadata, strict=True))
    assert {item: shown[item] for item in again.hits.ids(0)} == {
        item: metadata[int(item[1:])] for item in made.hits.ids(0)
    }


def test_a_record_of_chunks_of_the_same_documents_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    made = result(queries=30)
    assert made.hits is not None
    chunks = len(made.hits.documents)
    shown = {"parents": [f"p{i // 2}" for i in range(chunks)], "metadata": [{"page": i // 3} for i in range(chunks)]}
    made = replace(made, hits=replace(made.hits, **shown))
    written = set()
    for _ in range(30):
        save_record(made, tmp_path)
        written.add((tmp_path / "rankings.parquet").read_bytes())
    assert len(written) == 1
    again = load_record(tmp_path).hits
    assert again is not None
    pairs = dict(zip(again.documents, zip(again.parents, again.metadata, strict=True), strict=True))
    assert all(pairs[f"d{i}"] == (f"p{i // 2}", {"page": i // 3}) for i in map(int, (name[1:] for name in pairs)))


def test_a_record_keeps_the_fields_that_slice_queries_and_costs(tmp_path: Path) -> None:
    of = result(queries=3, no_result=0)
    fields = [{"language": "de"}, {"language": ""}, {"language": "en"}]
    stages = [Cost("postings", 1.0, True, 4_000_000, 0.25), Cost("lsa", 1.0, True, None)]
    timings = replace(of.timings, stages=stages, index_bytes=4_000_000, money=0.25)
    save_record(replace(of, queries=replace(of.queries, fields=fields), timings=timings), tmp_path)
    found = load_record(tmp_path)
    assert found.queries.fields == fields
    assert (found.timings.index_bytes, found.timings.money, found.timings.stages) == (4_000_000, 0.25, stages)


def test_a_record_from_before_there_were_grades_loads(tmp_path: Path) -> None:
    save_record(result(), tmp_path)
    again = load_record(tmp_path)
    assert again.queries.expected_grades == ()
    assert again.hits is not None
    assert not again.hits.metadata


def test_what_was_swept_keeps_its_order_on_disk_by_which_a_combination_is_named(tmp_path: Path) -> None:
    swept = {"retriever": "bm25", "retriever.k1": 0.9, "retriever.b": "0.75"}
    save_record(result(swept=swept), tmp_path)
    assert list(load_record(tmp_path).swept.items()) == list(swept.items())


def _edited(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    head = orjson.loads((folder / "result.json").read_bytes())
    edit(head)
    (folder / "result.json").write_bytes(orjson.dumps(head))


def test_a_record_says_whether_it_is_settled_and_what_was_searched(tmp_path: Path) -> None:
    save_record(replace(result(), settled=False, search_type="vector", own_gold=["q001"]), tmp_path)
    again = load_record(tmp_path)
    assert (again.settled, again.search_type, again.own_gold) == (False, "vector", ["q001"])
    assert "errors that may be temporary" in again.unfinished
    _edited(tmp_path, lambda head: (head.pop("settled"), head.pop("search_type"), head.pop("own_gold")))
    before = load_record(tmp_path)  # a record from before that was kept
    assert (before.settled, before.search_type, before.own_gold, before.unfinished) == (True, "", (), "")


def test_the_rankings_of_a_record_know_which_queries_failed(tmp_path: Path) -> None:
    save_record(result(queries=3, errors={1: "TimeoutError: no answer"}), tmp_path)
    found = load_record(tmp_path).hits
    assert found is not None
    assert found.rankings.errors == {1: "TimeoutError: no answer"}


@pytest.mark.parametrize("file", ["rankings.parquet", "per_query.parquet", "result.json"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_torn_record_is_one_line(file: str, left: int, tmp_path: Path) -> None:
    save_record(result(queries=3), tmp_path)
    (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:left])
    with pytest.raises(ResultError, match="record") as caught:
        load_record(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_hashes_of_documents_are_read_back_with_the_rankings(tmp_path: Path) -> None:
    made = result(queries=3)
    hashes = np.arange(2**63, 2**63 + made.dataset.documents, dtype=np.uint64)
    save_record(replace(made, document_hashes=hashes), tmp_path)
    again = load_record(tmp_path).document_hashes
    assert again is not None and np.array_equal(again, hashes)
    assert load_record(tmp_path, rankings=False).document_hashes is None


@pytest.mark.parametrize(
    "table",
    [
        {"hash": pa.array([3, 4, 5], pa.uint64())},
        {"hash": pa.array([None] * 120, pa.uint64())},
        {"hash": pa.array([str(i) for i in range(120)])},
        {"hash": pa.array(range(120, 0, -1), pa.uint64())},
        {"hash": pa.array(range(120), pa.uint64()), "more": pa.array(range(120))},
    ],
)
def test_forged_hashes_of_documents_are_one_line(table: dict[str, pa.Array], tmp_path: Path) -> None:
    save_record(result(queries=3), tmp_path)
    pq.write_table(pa.table(table), tmp_path / "documents.parquet")
    with pytest.raises(ResultError, match="the record is damaged") as caught:
        load_record(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda head: head.pop("timings"), "the record is damaged .*timings"),
        (lambda head: head.update(colour="red"), "the record is damaged .*colour"),
        (lambda head: head.update(dataset=None), "the record is damaged"),
        (lambda head: head.update(grades={"judge": "m"}), r"the folder has no grades\.parquet"),
    ],
)
def test_a_damaged_or_incomplete_record_is_refused(
    edit: Callable[[dict[str, Any]], object], said: str, tmp_path: Path
) -> None:
    save_record(result(queries=3), tmp_path)
    _edited(tmp_path, edit)
    for rankings in (True, False):
        with pytest.raises(ResultError, match=said):
            load_record(tmp_path, rankings)


def test_a_record_of_failed_queries_without_hits_is_read_back(tmp_path: Path) -> None:
    whole = result("http", queries=3, no_result=0)
    failed = replace(
        whole,
        hits=Hits(create_empty_rankings(3, 5), [], np.full((3, 5), NOTHING, dtype=np.int32)),
        queries=replace(whole.queries, errors=["no answer", "no answer", "no answer"]),
    )
    save_record(failed, tmp_path)
    again = load_record(tmp_path)
    assert again.hits is not None
    assert [again.hits.ids(query) for query in range(3)] == [[], [], []]
    assert again.hits.rankings.errors == dict.fromkeys(range(3), "no answer")
    assert set(again.failures) == set(whole.queries.ids)
    assert not whole.failures
