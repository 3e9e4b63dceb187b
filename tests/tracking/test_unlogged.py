"""Results that wait to be logged are data: they come back as they were, and a file of a stranger runs nothing."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.evaluation.records import save_record
from runner.evaluation.result import ChunkPlaces, Result
from runner.tracking import packing
from runner.tracking.record import Finished
from runner.tracking.unlogged import Unlogged, Waiting, waiting_in
from tests.evaluation.test_grading import make_grades
from tests.pages.factory import result

RUN = "a" * 32


def _graded() -> Result:
    return replace(result(queries=3, no_result=0), grades=make_grades([5, None, 7], [1, np.inf, np.nan]))


def _with_everything() -> Result:
    """Return a result with an error, a NaN, and every optional column of queries and documents."""
    made = result("k1=1.2 ü", queries=3, no_result=1, errors={1: "no reply"}, swept={"retriever.k1": 1.2})
    assert made.hits is not None
    metadata = [{"headline": f"Item {i}", "themes": ["a", "b"]} for i in range(len(made.hits.documents))]
    unknown = np.arange(len(made.hits.documents)) % 7 == 0
    starts = np.arange(len(metadata), dtype=np.int32)
    hits = replace(made.hits, metadata=metadata, parents=[f"p{i // 2}" for i in range(len(metadata))], unknown=unknown)
    hits = replace(hits, chunks=ChunkPlaces([f"Part {i}" for i in starts], starts, starts + 100))
    queries = replace(made.queries, expected_grades=[[3, 1], [2, 2], [1, 1], []], clusters=["a", "a", "", "b"])
    queries = replace(queries, fields=[{"language": of} for of in ("de", "", "en", "fr")], notes=["", "{}", "", ""])
    hashes = np.arange(2**63, 2**63 + made.dataset.documents, dtype=np.uint64)
    return replace(made, hits=hits, queries=queries, means={**made.means, "AP": float("nan")}, document_hashes=hashes)


def _read_all(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("make", [result, lambda: result(hits=False), _graded, _with_everything])
def test_the_record_of_a_waiting_result_equals_that_of_the_result(make: Callable[[], Result], tmp_path: Path) -> None:
    made = make()
    unlogged = Unlogged(tmp_path / "unlogged")
    reports = {"report.html": "<p>😀 é</p>"}
    read = unlogged.keep("c", Finished(made, {"k1": "1.2"}, reports, {"combination": "c"}, trec=False)).read()
    assert read is not None
    assert (read.parameters, read.reports, read.tags) == ({"k1": "1.2"}, reports, {"combination": "c"})
    assert read.trec is False
    save_record(made, tmp_path / "before")
    save_record(read.result, tmp_path / "after")
    assert _read_all(tmp_path / "after") == _read_all(tmp_path / "before")


class _Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def test_a_pickle_among_the_waiting_results_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = pickle.dumps(_Payload())
    for content in (made, b"retrieval-runner result 1\n" + zlib.crc32(made).to_bytes(4, "big") + made):
        file = tmp_path / f"c.{RUN}"
        file.write_bytes(content)
        assert Waiting(file, 0).read() is None
        assert not (tmp_path / "ran").exists()


def _forge(file: Path, arrays: dict[str, Any]) -> None:
    head, content = packing._split(file.read_bytes())
    file.write_bytes(packing._join({**head, **arrays.pop("head", {})}, {**content, **arrays}))


@pytest.mark.parametrize(
    "forged",
    [
        {"chunk_starts": np.zeros(3, np.int32), "chunk_ends": np.ones(3, np.int32), "head": {"chunk_titles": []}},
        {"documents": np.full((34, 10), 2**30, np.int32)},
        {"documents": np.full((34, 10), -7, np.int32)},
        {"documents": np.zeros((33, 10), np.int32)},
        {"document_scores": np.zeros((34, 9), np.float32)},
        {"scores": np.zeros((2, 34))},
        {"head": {"result": []}},
        {"documents": np.array([], dtype="V4")},
        {"shared": np.frombuffer(b'{"ids": 5}', np.uint8)},
        {"document_hashes": np.arange(120, 0, -1, dtype=np.uint64)},
    ],
)
def test_a_forged_waiting_result_is_refused(forged: dict[str, Any], tmp_path: Path) -> None:
    made = replace(result(), document_hashes=np.arange(120, dtype=np.uint64))
    waiting = Unlogged(tmp_path / "unlogged").keep("c", Finished(made, {}))
    assert waiting.read() is not None
    _forge(waiting.file, forged)
    assert waiting.read() is None


@pytest.mark.parametrize("name", ["report.html", "../outside.html", "/outside.html", "config.yaml", "result.json"])
def test_only_pages_that_this_process_wrote_are_used(name: str, tmp_path: Path) -> None:
    unlogged = Unlogged(tmp_path / "unlogged")
    own = unlogged.keep("c", Finished(result(), {"k1": "1.2"}, {name: "<script>"}))
    (again,) = unlogged.all()
    (other,) = Unlogged(tmp_path / "unlogged").all()
    for waiting, pages in ((own, {name: "<script>"}), (again, {name: "<script>"}), (other, {})):
        read = waiting.read()
        assert read is not None
        assert (read.reports, read.parameters) == (pages, {"k1": "1.2"})
    _forge(own.file, {"head": {"more": {**packing._split(own.file.read_bytes())[0]["more"], "trec": False}}})
    forged = own.read()
    assert forged is not None
    assert forged.reports == {}


def test_a_waiting_result_sets_no_tag_of_mlflow(tmp_path: Path) -> None:
    tags = {"mlflow.note.content": "[here](http://evil.example)"}
    assert Unlogged(tmp_path / "unlogged").keep("c", Finished(result(), {}, tags=tags)).read() is None


@pytest.mark.parametrize("name", ["c...", "c..", f"c.{RUN}x", "c", f".c.{RUN}"])
def test_a_file_without_a_run_id_in_its_name_is_not_a_waiting_result(name: str, tmp_path: Path) -> None:
    """The id becomes the name of a folder of artifacts."""
    (tmp_path / name).write_bytes(b"")
    (tmp_path / f"c.{RUN}").write_bytes(b"")
    assert [waiting.file.name for waiting in waiting_in(tmp_path)] == [f"c.{RUN}"]


def test_a_damaged_waiting_result_is_refused(tmp_path: Path) -> None:
    made = result(queries=2, no_result=0)
    waiting = Unlogged(tmp_path / "unlogged").keep("c", Finished(made, {}))
    intact, refused = waiting.file.read_bytes(), 0
    for place in range(0, len(intact), 97):
        for damaged in (intact[:place], intact[:place] + bytes([intact[place] ^ 255]) + intact[place + 1 :]):
            waiting.file.write_bytes(damaged)
            if (read := waiting.read()) is None:
                refused += 1
            else:
                assert np.array_equal(read.result.scores, made.scores, equal_nan=True)
    assert refused == 2 * len(range(0, len(intact), 97))
