"""Queries that are documents themselves leave their own results."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from retrievers.base import NOTHING, Rankings
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.runs.run_file import RunFile
from retrievers.search import deepen, search_cached
from retrievers.store import MemoryStore
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.chunking import Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.judged import JudgedFiles
from runner.datasets.own_documents import EXCLUDED, ExcludeSelf, OwnIdRule, exclude_own, leave_room, search_others

DOCUMENTS = {
    "q1": "How do I learn to sail?",
    "d2": "What is the best way to learn sailing?",
    "q3": "Where does the ferry stop?",
    "7": "Ferries stop at the pier.",
}
QUERIES = {"q1": "How do I learn to  sail?", "q3": "where does the ferry stop?", "7": "learn sailing ferry"}
QRELS = [("q1", "d2", 1), ("q3", "7", 1), ("7", "d2", 1)]


def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    for name, rows in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        lines = [orjson.dumps({"_id": i, "text": text}) for i, text in rows.items()]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in QRELS)
    (tmp_path / "qrels" / "test.tsv").write_text(rows)
    return tmp_path


def ids_of(dataset: Dataset, k: int) -> list[list[str]]:
    retriever, depth = leave_room(BM25(), dataset, k)
    rankings = search_cached(retriever, dataset.corpus, dataset.queries.texts, depth, MemoryStore())
    kept = exclude_own(dataset, rankings, k)
    assert kept.documents.shape[1] <= k
    return [[dataset.corpus.ids[i] for i in row if i != NOTHING] for row in kept.documents.tolist()]


def test_a_query_with_the_id_and_the_text_of_a_document_does_not_find_itself(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load()
    assert dataset.own_documents.tolist() == [[0], [2], [NOTHING]]
    assert ids_of(dataset, 1)[:2] == [["d2"], ["7"]]


def test_a_query_can_retrieve_its_own_document_if_exclude_self_is_false(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path)), exclude_self="false").load()
    assert ids_of(dataset, 1)[:2] == [["q1"], ["q3"]]


def test_the_id_alone_decides_with_true(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path)), exclude_self="true").load()
    assert dataset.own_documents.tolist() == [[0], [2], [3]]
    assert "7" not in ids_of(dataset, 4)[2]


def test_a_query_whose_gold_is_itself_keeps_it(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "qrels" / "test.tsv").write_text("q1\tq1\t1\nq3\t7\t1\n")
    assert Beir(path=str(path)).load().own_documents.tolist() == [[NOTHING], [2]]


def test_excluding_by_id_where_no_id_is_shared_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "queries.jsonl").write_text('{"_id": "x", "text": "sail"}')
    (path / "qrels" / "test.tsv").write_text("x\td2\t1\n")
    with pytest.raises(DatasetError, match="exclude_self=true excludes nothing"):
        Beir(path=str(path), exclude_self="true").load()


def test_all_chunks_of_the_own_document_leave(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load().split_documents(Tokens(size=2, overlap=0))
    assert len(dataset.corpus) > len(dataset.documents)
    for row, own in zip(ids_of(dataset, 5), ("q1", "q3"), strict=False):
        assert row and not any(chunk.startswith(own) for chunk in row)


def test_what_follows_moves_up_and_the_rest_is_unchanged(tmp_path: Path) -> None:
    dataset = Beir(path=str(folder(tmp_path))).load()
    documents = np.array([[0, 1, 2], [3, 2, -1], [3, 1, -1]], dtype=np.int32)
    scores = np.array([[3, 2, 1], [3, 2, -np.inf], [3, 2, -np.inf]], dtype=np.float32)
    kept = exclude_own(dataset, Rankings(documents, scores), 2)
    assert kept.documents.tolist() == [[1, 2], [3, -1], [3, 1]]
    assert kept.scores.tolist() == [[2, 1], [3, -np.inf], [3, 2]]
    assert kept.diagnostics == {EXCLUDED: 2.0}


def test_only_what_is_left_out_changes_the_fingerprint(tmp_path: Path) -> None:
    path = str(folder(tmp_path))
    fingerprints = {mode: Beir(path=path, exclude_self=mode).load().fingerprint for mode in ("auto", "true", "false")}
    assert len(set(fingerprints.values())) == 3
    dataset = Beir(path=path).load()
    without = replace(dataset, queries=replace(dataset.queries, ids=["a", "b", "c"]))
    assert without.fingerprint == replace(without, exclude_self="false").fingerprint


def test_more_documents_than_max_documents_are_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runner.datasets"):
        assert len(Beir(path=str(folder(tmp_path)), max_documents=1).load().corpus) == 2
    (message,) = caplog.messages
    assert message.startswith("dataset.max_documents=1: kept 2 documents, because judged documents are never dropped")


RUN = {"q1": ["q1", "d2", "q3"], "q3": ["q3", "7"], "7": ["d2", "7", "q3"]}


def hits_of_run(dataset: Dataset, tmp_path: Path, run: dict[str, list[str]], depth: int = 10) -> dict[str, list[str]]:
    file = tmp_path / "run.tsv"
    rows = [f"{q}\t{d}\t{9 - rank}" for q, hits in run.items() for rank, d in enumerate(hits)]
    file.write_text("query_id\tdocument_id\tscore\n" + "\n".join(rows))
    kept = search_others(
        dataset,
        RunFile(str(file)),
        depth,
        lambda retriever, k: search_cached(retriever, dataset.corpus, dataset.queries.inputs, k, MemoryStore()),
    )
    names = [*dataset.corpus.ids, *kept.unknown_ids]
    rows_of_ids = [[names[i] for i in row if i != NOTHING] for row in kept.documents.tolist()]
    return dict(zip(dataset.queries.ids, rows_of_ids, strict=True))


@pytest.mark.parametrize("documents", ["corpus.jsonl", "judged.jsonl", None])
@pytest.mark.parametrize(("mode", "seventh"), [("auto", ["d2", "7"]), ("true", ["d2", "q3"]), ("false", ["d2", "7"])])
def test_a_run_is_the_same_with_all_with_judged_and_without_documents(
    tmp_path: Path, documents: str | None, mode: ExcludeSelf, seventh: list[str]
) -> None:
    path = folder(tmp_path)
    judged = [line for line in (path / "corpus.jsonl").read_text().splitlines() if '"d2"' in line or '"7"' in line]
    (path / "judged.jsonl").write_text("\n".join(judged))
    dataset = Beir(path=str(path), documents=documents, exclude_self=mode).load()
    hits = hits_of_run(dataset, tmp_path, RUN, depth=2)
    with_own, without = (["q1", "d2"], ["q3", "7"]), (["d2", "q3"], ["7"])
    assert list(hits.values()) == [*(with_own if mode == "false" else without), seventh]


@pytest.mark.parametrize(
    ("run", "first"),
    [
        ({"1": ["1", "3"], "2": ["2", "3"]}, {"1": ["3"], "2": ["3"]}),  # numbers that find themselves
        ({"1": ["3", "1"], "2": ["2", "3"]}, {"1": ["3", "1"], "2": ["2", "3"]}),  # numbers of two lists
    ],
)
def test_numbers_alone_are_own_documents_only_if_most_find_themselves(
    tmp_path: Path, run: dict[str, list[str]], first: dict[str, list[str]]
) -> None:
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\t3\t1\n2\t3\t1\n")
    assert hits_of_run(JudgedFiles(qrels=str(tmp_path / "qrels.tsv")).load(), tmp_path, run) == first


def test_a_judged_own_document_stays_in_a_run_without_documents(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tq1\t1\nq3\t7\t1\n")
    hits = hits_of_run(JudgedFiles(qrels=str(tmp_path / "qrels.tsv"), exclude_self="true").load(), tmp_path, RUN)
    assert hits == {"q1": ["q1", "d2", "q3"], "q3": ["7"]}


RULES = [{"pattern": "-query[0-9]*$"}, {"pattern": "^(.+?)(-query[0-9]*|#[0-9]+)$"}, {"field": "source"}]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("documents", ["corpus.jsonl", None])
def test_a_rule_finds_own_documents_of_ids_that_differ(
    tmp_path: Path, rule: dict[str, str], documents: str | None
) -> None:
    path = folder(tmp_path)
    rows = [{"_id": f"{i}-query{n}", "text": text, "source": i} for n, (i, text) in enumerate(QUERIES.items())]
    (path / "queries.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (path / "qrels" / "test.tsv").write_text("q1-query0\td2\t1\nq3-query1\t7\t1\n7-query2\td2\t1\n")
    dataset = Beir(path=str(path), documents=documents, exclude_self=OwnIdRule(**rule)).load()
    run = {f"{name}-query{n}": hits for n, (name, hits) in enumerate(RUN.items())}
    assert list(hits_of_run(dataset, tmp_path, run).values()) == [["d2", "q3"], ["7"], ["d2", "q3"]]
    plain = Beir(path=str(path), documents=documents).load()
    assert hits_of_run(plain, tmp_path, run)["q1-query0"] == RUN["q1"]


def test_all_passages_of_the_own_document_leave_by_a_rule(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2#0\t1\n")
    source = JudgedFiles(qrels=str(tmp_path / "qrels.tsv"), exclude_self=OwnIdRule(pattern="#[0-9]+$"))
    assert hits_of_run(source.load(), tmp_path, {"q1": ["q1#0", "q1#12", "d2#0"]}) == {"q1": ["d2#0"]}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"pattern": "-q$", "field": "x"}, "either pattern or field"),
        ({}, "either pattern or field"),
        ({"pattern": "("}, r"pattern=\(: not a regular expression"),
        ({"field": "nowhere"}, "dataset.exclude_self.field=nowhere: no query has this field"),
        (
            {"pattern": "^q"},
            r"exclude_self=\{pattern: \^q\} excludes nothing, because no query has the id of a",
        ),
    ],
)
def test_a_rule_that_cannot_work_is_refused(tmp_path: Path, rule: dict[str, str], message: str) -> None:
    path = folder(tmp_path)
    (path / "queries.jsonl").write_text('{"_id": "qd", "text": "sail"}')
    (path / "qrels" / "test.tsv").write_text("qd\td2\t1\n")
    with pytest.raises(ValueError, match=message):
        Beir(path=str(path), exclude_self=OwnIdRule(**rule)).load()


def test_the_parts_of_a_hybrid_do_not_lose_a_candidate_to_the_own_document(tmp_path: Path) -> None:
    """With a depth of 1, each part would return the query itself alone."""
    dataset = Beir(path=str(folder(tmp_path))).load()
    hybrid = Hybrid({"a": BM25(), "b": BM25(k1=2.0)}, depth=1)
    retriever, depth = leave_room(hybrid, dataset, 1)
    rankings = search_cached(retriever, dataset.corpus, dataset.queries.inputs, depth, MemoryStore())
    kept = exclude_own(dataset, rankings, 1)
    assert [dataset.corpus.ids[i] for i in kept.documents[:2, 0]] == ["d2", "7"]


def test_nested_depths_leave_room_and_others_stay(tmp_path: Path) -> None:
    inner = Hybrid({"a": BM25(), "b": BM25(k1=2.0)}, depth=7, alpha=0.3)
    outer = Hybrid({"c": inner, "d": BM25(b=0.1)})
    deeper = deepen(outer, 2)
    assert deeper == Hybrid({"c": Hybrid(inner.parts, depth=9, alpha=0.3), "d": BM25(b=0.1)})
    assert deepen(BM25(), 2) == BM25()
