"""Rankings in files of other programs are read as they mean them."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from pathlib import Path

import ir_measures
import pandas as pd
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.runs.run_file import RunFile
from retrievers.runs.trec_tokens import decode_token, encode_token
from retrievers.store import MemoryStore, NoStore
from tests.strategies.ids import PRINTABLE_IDS

CORPUS = Corpus(["a", "b", "pier 3"], ["red boat", "blue boat", "pier"])
HITS = {"q1": {"b": 2.5, "a": 1.5, "new": 0.5}, "q 2": {"pier 3": 1.0}}
"""What each file of the formats says."""
RANKED = [[("b", 2.5), ("a", 1.5), ("new", 0.5)], [("pier 3", 1.0)], []]
QUERIES = [QueryText("boats", "q1"), QueryText("piers", "q 2"), QueryText("nothing", "q3")]


def hits(rankings: Rankings, corpus: Corpus = CORPUS) -> list[list[tuple[str, float]]]:
    names = [*corpus.ids, *rankings.unknown_ids]
    rows = zip(rankings.documents.tolist(), rankings.scores.tolist(), strict=True)
    return [[(names[d], s) for d, s in zip(*row, strict=True) if d != NOTHING] for row in rows]


def read(path: Path, k: int = 5, **settings: object) -> Rankings:
    run = RunFile(str(path), **settings)  # type: ignore[arg-type]  # any settings
    return run.index(CORPUS, NoStore()).search(QUERIES, k)


def frame(query: str, document: str, **more: object) -> pd.DataFrame:
    rows = [(q, d, s) for q, of in HITS.items() for d, s in of.items()]
    return pd.DataFrame(rows, columns=[query, document, "score"]).assign(**more)


def write_lz4(path: Path) -> None:
    with pyarrow.output_stream(path, compression="lz4") as file:
        file.write(json.dumps(HITS).encode())


def write_lists(path: Path) -> None:
    rows = {
        "query_id": list(HITS),
        "docnos": [list(h) for h in HITS.values()],
        "scores": [[*h.values()] for h in HITS.values()],
    }
    pd.DataFrame(rows).to_parquet(path)


TREC = "".join(
    f"{line} percent-encoded:t\n"
    for line in ("q1 Q0 b 1 2.5", "q1 Q0 a 2 1.5", "q1 Q0 new 3 0.5", "q%202 Q0 pier%203 1 1.0")
)
TABS = "q1\tQ0\tb\t1\t2.5\tt\nq1\tQ0\ta\t2\t1.5\tt\nq1\tQ0\tnew\t3\t0.5\tt\nq 2\tQ0\tpier 3\t1\t1.0\tt\n"
RECORDS = [{"qid": q, "docno": d, "score": s} for q, of in HITS.items() for d, s in of.items()]
WRITERS: dict[str, Callable[[Path], object]] = {
    "ours.trec": lambda path: path.write_text(TREC),
    "tabs.run": lambda path: path.write_text(TABS),
    "encoded-tabs.run": lambda path: path.write_text(TREC.replace(" ", "\t")),
    "aligned.txt": lambda path: path.write_text(TREC.replace(" ", "   ").replace("1.0", "1.0 \v")),
    "old-mac.trec": lambda path: path.write_bytes(TABS.replace("\n", "\r").encode()),
    "old-mac.jsonl": lambda path: path.write_bytes("\r".join(map(json.dumps, RECORDS)).encode()),
    "old-mac.csv": lambda path: frame("qid", "docno").to_csv(path, index=False, lineterminator="\r"),
    "marked.json": lambda path: path.write_text("\ufeff" + json.dumps(HITS), encoding="utf-8"),
    "marked.csv": lambda path: frame("qid", "docno").to_csv(path, index=False, encoding="utf-8-sig"),
    "packed-without-suffix.trec": lambda path: path.write_bytes(gzip.compress(TABS.encode())),
    "packed-as-another.json.bz2": lambda path: path.write_bytes(gzip.compress(json.dumps(HITS).encode())),
    "not-packed.trec.gz": lambda path: path.write_text(TABS),
    "windows.trec": lambda path: path.write_bytes(b"\xef\xbb\xbf" + TREC.replace("\n", "\r\n").encode()),
    "no newline.res": lambda path: path.write_text("\n" + TREC.strip()),
    "packed.trec.gz": lambda path: path.write_bytes(gzip.compress(TREC.encode())),
    "ranx.json": lambda path: path.write_text(json.dumps(HITS)),
    "ranx.lz4.json.lz4": write_lz4,
    "ranx.parquet": lambda path: frame("q_id", "doc_id").to_parquet(path),
    "pyterrier.csv": lambda path: frame("qid", "docno", rank=0).assign(query="boats").to_csv(path, index=False),
    "pyterrier.tsv.gz": lambda path: frame("qid", "docno", rank=0).to_csv(path, index=False, sep="\t"),
    "pyterrier.parquet": lambda path: frame("qid", "docno", docid=7, rank=0).to_parquet(path),
    "lists.parquet": write_lists,
    "pairs.json": lambda path: path.write_text(json.dumps({q: list(of.items()) for q, of in HITS.items()})),
    "objects.json": lambda path: path.write_text(
        json.dumps({q: [{"id": d, "score": s} for d, s in of.items()] for q, of in HITS.items()})
    ),
    "records.json": lambda path: path.write_text(json.dumps(RECORDS)),
    "records.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, RECORDS))),
    "queries.jsonl": lambda path: path.write_text(
        "".join(json.dumps({"query_id": q, "results": of}) + "\n" for q, of in HITS.items())
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_says_the_same(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    rankings = read(tmp_path / name)
    assert hits(rankings) == RANKED
    assert list(rankings.unknown_ids) == ["new"]
    assert rankings.diagnostics == {"unknown_items": 1, "repeated_items": 0, "missing_queries": 1}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", json.dumps({"q1": ["b", "a"]})),
        ("ranks.csv", "qid,docno,rank\nq1,a,2\nq1,b,1\n"),
        ("ranks.jsonl", '{"qid": "q1", "docno": "a", "rank": 2}\n{"qid": "q1", "docno": "b", "rank": 1}\n'),
        ("from-0.csv", "qid,docno,rank\nq1,a,1\nq1,b,0\n"),
        ("from-0.jsonl", '{"qid": "q1", "docno": "a", "rank": 1}\n{"qid": "q1", "docno": "b", "rank": 0}\n'),
        ("from-0.json", json.dumps({"q1": [{"id": "b", "rank": 0}, {"id": "a", "rank": 1}]})),
    ],
)
def test_without_scores_a_document_scores_the_reciprocal_of_its_rank(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert hits(read(tmp_path / name))[0] == [("b", 1.0), ("a", 0.5)]


def test_hits_are_ranked_by_score_then_id_whatever_the_order_of_lines(tmp_path: Path) -> None:
    lines = [
        "q1 Q0 a 1 1 t",
        "q 2 x",
        "q1 Q0 new 2 1 t",
        "q1 Q0 b 9 1 t",
        "q1 Q0 c 3 7 t",
        "q2 Q0 a 1 -2 t",
        "q1 Q0 z 5 1e0 t",
    ]
    (tmp_path / "x.trec").write_text("\n".join(line for line in lines if len(line.split()) == 6))
    expected = [("c", 7.0), ("z", 1.0), ("new", 1.0), ("b", 1.0), ("a", 1.0)]
    assert hits(read(tmp_path / "x.trec"))[0] == expected
    assert hits(read(tmp_path / "x.trec", k=2))[0] == expected[:2]


def test_a_document_listed_twice_counts_once_with_its_best_score(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\nq2 Q0 a 1 1 t\n")
    rankings = read(tmp_path / "x.trec")
    assert hits(rankings)[0] == [("a", 3.0), ("b", 2.0)]
    assert rankings.diagnostics["repeated_items"] == 1


@given(PRINTABLE_IDS)
def test_an_id_in_a_run_of_this_program_is_read_back(name: str) -> None:
    assert decode_token(encode_token(name)) == name


@pytest.mark.parametrize("documents", [["http://x/a%20b"], []])
def test_an_id_with_percent_signs_of_another_program_stays_as_it_is(documents: list[str], tmp_path: Path) -> None:
    for token in ("100%", "a%2Fb", "a%20b%2", "%zz"):
        assert decode_token(token) == token
    (tmp_path / "x.trec").write_text("q1 Q0 http://x/a%20b 1 1 t\n")
    corpus = Corpus(documents, ["text"] * len(documents))
    rankings = RunFile(str(tmp_path / "x.trec")).index(corpus, NoStore()).search(QUERIES[:1], 1)
    assert hits(rankings, corpus) == [[("http://x/a%20b", 1.0)]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.trec", "q1 Q0 a 1 3 t\nq1 a 3\n", "x.trec:2: expected 6 columns"),
        ("x.trec", "q1 Q0 a 1 high t\n", "x.trec:1: the score 'high' is not a finite number"),
        ("x.trec", "q1 Q0 a 1 nan t\n", "x.trec:1: the score 'nan' is not a finite number"),
        ("x.trec", "q1 Q0 a 1 1_0 t\n", "x.trec:1: the score '1_0' is not a finite number"),
        ("x.trec", "q1 Q0 a 1 \u0661 t\n", "x.trec:1: the score '\u0661' is not a finite number"),
        ("x.trec", "q1 Q0 a 1 2 t\nq1 Q0 pier 3 1 2 t\n", "x.trec:2: expected 6 columns (query, Q0, document, rank,"),
        (
            "x.trec",
            "q1\tQ0\ta 1 2 t\n",
            "x.trec:1: expected 6 columns (query, Q0, document, rank, score, tag), found 3",
        ),
        ("x.trec", "q1\tQ0\t\t1\t2\tt\n", "x.trec:1: the id of the document is empty"),
        ("x.trec", "q1\tQ0\ta\rb\t1\t2\tt\n", "x.trec:1: a carriage return within the line"),
        ("x.trec", "q1 Q0 a 1 1e99 t\n", "the score 1e+99 is not a finite 32-bit number"),
        ("x.trec", "", "x.trec: the file is empty"),
        (
            "x.trec",
            "PLAIN-1 Q0 a 1 1 t\n",
            "contains none of the 3 queries; the ids in the file look like 'PLAIN-1', those of the",
        ),
        ("x.trec.gz", "\x1f\x8b damaged", "x.trec.gz: cannot be read"),
        (
            "x.csv",
            "qid,text\nq1,x\n",
            "no column contains document ids; name the column document_id or docno; the columns are",
        ),
        ("x.csv", "qid,docno\nq1,x\n", "has neither a score column nor a rank column; its columns are qid, docno"),
        ("x.json", "{", "x.json: invalid JSON"),
        ("x.json", '{"q1": 3}', "the hits of query 'q1' should be a mapping or a list"),
        ("x.json", '{"q1": {"a": 1, "b": "high"}}', "x.json: query 'q1', hit 2: the score 'high' is not a number"),
        ("x.json", '{"q1": {"a": true}}', "query 'q1', hit 1: the score True is not a number"),
        ("x.json", '{"q1": {"a": 1, "a": 2}}', "x.json: the key 'a' occurs twice in an object; keep one"),
        ("x.json", '{"q1": {"a": 1}, "q1": {"b": 2}}', "x.json: the key 'q1' occurs twice in an object; keep one"),
        ("x.json", '{"q1": [[{"id": "a"}, 3]]}', "query 'q1', hit 1: {'id': 'a'} is not an id; an id must be text or"),
        (
            "x.json",
            '{"q1": ["a", {"id": "b", "score": 3}]}',
            "hit 2: has a score, but an earlier hit of query 'q1' a place",
        ),
        ("x.json", '{"q1": [{"id": "b", "rank": -1}]}', "query 'q1', hit 1: the rank -1 is negative"),
        ("x.json", '[{"qid": "q1", "docno": null, "score": 3}]', "record 1: the document id null is not an id"),
        ("x.json", '[{"qid": true, "docno": "a", "score": 3}]', "x.json, record 1: the query id True is not an id"),
        ("x.jsonl", '{"qid": "q1", "docno": 0.5, "score": 3}', "x.jsonl:1: the document id 0.5 is not an id"),
        (
            "x.jsonl",
            '{"qid": "q1", "docno": "a"}',
            "x.jsonl:1: has neither a score nor a rank; the fields are qid, docno",
        ),
        ("x.jsonl", '{"qid": "q1", "results": ["a", "b"], "scores": [1]}', "x.jsonl:1: has 1 scores, but 2 documents"),
        ("x.csv", "qid,docno,score\nq1,a,1_0\n", "x.csv:2: CSV conversion error to double: invalid value '1_0'"),
        ("x.csv", "qid,docno,score\nq1,a,1\nq1,a\n", "x.csv:3: Expected 3 columns, got 2"),
        ("x.csv", "qid,docno,score\nq1,,1\n", "x.csv, row 1: the document id is empty"),
        ("x.csv", "qid,docno,score,score\nq1,a,1,2\n", "x.csv: the column 'score' occurs twice; keep one"),
        ("x.csv", "qid,docno,rank\nq1,a,1.5\n", "x.csv, row 1: the rank 1.5 is not a whole number"),
        ("x.csv", "qid,docno,rank\nq1,a,-1\n", "x.csv, row 1: the rank -1 is not a whole number"),
        ("x.parquet", "PAR", "x.parquet: cannot be read"),
        ("x.bin", "x", "the extension is not one of"),
    ],
)
def test_a_mistake_in_a_file_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1" if "\x8b" in content else "utf-8"))
    with pytest.raises(RetrieverError) as error:
        read(tmp_path / name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RetrieverError, match="no such file"):
        read(tmp_path / "x.trec")


def test_a_file_that_is_read_ahead_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "x.trec"
    path.write_text("q1 0 b 1 2.5 t\n")
    run = RunFile(str(path))
    run.start_reading()
    assert hits(run.index(CORPUS, NoStore()).search(QUERIES, 5))[0] == [("b", 2.5)]
    path.unlink()
    with pytest.raises(RetrieverError, match="no such file"):
        run.index(CORPUS, NoStore())
    run.start_reading()
    with pytest.raises(RetrieverError, match="no such file"):
        run.index(CORPUS, NoStore())
    assert run == RunFile(str(path))


def test_the_format_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "output").write_text(TREC)
    assert hits(read(tmp_path / "output", format="trec")) == RANKED


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0.5], "row 1: the document ids are of type double"),
        ([True], "the document ids are of type bool"),
        ([b"a"], "the document ids are of type binary"),
        ([None], "1 of 1 hits have no document id"),
    ],
)
def test_ids_in_parquet_are_text_or_whole_numbers(column: list[object], message: str, tmp_path: Path) -> None:
    table = pyarrow.table({"qid": ["q1"], "docno": column, "score": [1.0]})
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(RetrieverError, match=message.removeprefix("row 1: ")):
        read(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["x.json", "x.parquet"])
def test_a_whole_number_stored_as_a_float_is_an_id(name: str, tmp_path: Path) -> None:
    """A column of integers with one missing value has been one of floats."""
    rows = [{"qid": 7.0, "docno": 1.0, "score": 1}, {"qid": 7.0, "docno": 12.0, "score": 2}]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    rankings = RunFile(str(tmp_path / name)).index(CORPUS, NoStore()).search([QueryText("", "7")], 5)
    assert hits(rankings)[0] == [("12", 2.0), ("1", 1.0)]


def test_scores_in_lists_are_as_many_as_the_documents_of_each_query(tmp_path: Path) -> None:
    rows = {"query_id": ["q1", "q2"], "docnos": [["a", "b"], ["c"]], "scores": [[1.0], [2.0, 3.0]]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "x.parquet")
    with pytest.raises(RetrieverError, match="row 1: scores has 1 numbers, but there are 2 documents"):
        read(tmp_path / "x.parquet")


def test_a_run_whose_documents_are_all_unknown_is_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.trec").write_text("q1 Q0 0007 1 3 t\n")
    with caplog.at_level(logging.WARNING, "retrievers"):
        read(tmp_path / "x.trec")
    assert (
        "the corpus contains none of its 1 documents; the ids in the file look like '0007', those of the "
        "corpus like 'a'"
    ) in caplog.text


def test_runs_are_parts_of_a_hybrid_beside_each_other_and_a_retriever(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_text(TREC)
    (tmp_path / "y.json").write_text(json.dumps({"q1": {"a": 9, "new": 1}}))
    runs = {"one": RunFile(str(tmp_path / "x.trec")), "two": RunFile(str(tmp_path / "y.json"))}
    fused = Hybrid({**runs, "bm25": BM25()}, method="rrf", weights=[1, 1, 0]).index(CORPUS, MemoryStore())
    first = hits(fused.search(QUERIES, 3, MemoryStore()))[0]
    assert [name for name, _ in first] == ["a", "new", "b"]
    assert first[0][1] == pytest.approx(1 / 62 + 1 / 61)
    assert first[1][1] == pytest.approx(1 / 63 + 1 / 62)


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 1.0, 1.0000001, 3e-7, -5.0]), max_size=8), min_size=1, max_size=4))
def test_measures_equal_those_of_trec_eval_with_ties(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]]
) -> None:
    """ir_measures breaks ties as trec_eval does."""
    if not any(rows):
        return
    file = tmp_path_factory.mktemp("run") / "x.trec"
    scored = {f"q{q}": {f"d{d}": s for d, s in enumerate(row)} for q, row in enumerate(rows)}
    file.write_text("".join(f"{q} Q0 {d} 0 {s!r} t\n" for q, of in scored.items() for d, s in of.items()))
    corpus = Corpus([f"d{d}" for d in range(8)], ["x"] * 8)
    rankings = RunFile(str(file)).index(corpus, NoStore()).search([QueryText("x", q) for q in scored], 8)
    qrels = {q: {"d1": 1, "d4": 1} for q in scored}
    read_run = {q: {d: float(s) for d, s in of.items()} for q, of in scored.items()}
    expected = {
        m.query_id: m.value
        for m in ir_measures.iter_calc([ir_measures.RR], qrels, {q: of for q, of in read_run.items() if of})
    }
    for position, query in enumerate(scored):
        row = rankings.documents[position].tolist()
        first = next((place for place, d in enumerate(row, start=1) if d in (1, 4)), None)
        assert (1 / first if first else 0) == pytest.approx(expected.get(query, 0))


def test_the_memory_of_rankings_follows_the_hits_not_the_depth(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\nq2 Q0 b 1 3.0 x\n")
    corpus, queries = Corpus(["a", "b"], ["one", "two"]), [QueryText("q1", "q1"), QueryText("q2", "q2")]
    run = RunFile(path=str(tmp_path / "run.trec"))
    alone = run.index(corpus, NoStore()).search(queries, 10**7)
    assert alone.documents.tolist() == [[0, 1], [1, -1]]
