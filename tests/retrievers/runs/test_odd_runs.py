"""Odd tables and JSON of rankings are read as the standard library reads them, or refused with their place."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from retrievers.base import Corpus, RetrieverError
from retrievers.runs.run_file import RunFile
from retrievers.store import NoStore
from tests.oracles_of_files import Odd, field, id_of, json_of, json_rows, refuse, table_rows, text_of
from tests.strategies.odd_files import IDS, SCORES, json_files, json_line_files, table_files, type_columns

Hits = Mapping[str, Mapping[str, float]]
odd = settings(max_examples=30)


def read(path: Path) -> Hits:
    """Return the scores of each query and document, of which the best counts."""
    searcher = RunFile(path=str(path)).index(Corpus([], []), NoStore())
    numbers, names = searcher.documents.number(np.arange(len(searcher.scores)))
    hits: dict[str, dict[str, float]] = {}
    for query, place in searcher.queries.items():
        for row in range(searcher.starts[place], searcher.ends[place]):
            best = hits.setdefault(query, {})
            name, score = names[numbers[row]], float(searcher.scores[row])
            best[name] = max(score, best.get(name, -math.inf))
    return hits


def score_of(value: object, written: bool) -> float:
    """Return a score; in a table, numbers are `written` as text."""
    if (
        written
        and isinstance(value, str)
        and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", value, re.I)
    ):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 3.4e38:
        refuse()
    return float(np.float32(value))


def best_of(rows: Iterable[tuple[object, object, object]], written: bool = False) -> Hits:
    hits: dict[str, dict[str, float]] = {}
    for query, document, score in rows:
        of, name, value = hits.setdefault(id_of(query), {}), id_of(document), score_of(score, written)
        of[name] = max(value, of.get(name, -math.inf))
    return hits


def compare(path: Path, oracle: Callable[[], Hits]) -> None:
    try:
        expected = oracle()
    except Odd:
        with pytest.raises(RetrieverError, match=re.escape(str(path))) as refused:
            read(path)
        assert "\n" not in str(refused.value)
    else:
        assert read(path) == expected


def draw_hits(data: st.DataObject) -> list[dict[str, Any]]:
    columns = {"qid": IDS, "docno": IDS.filter(lambda value: not isinstance(value, list)), "score": SCORES}
    return data.draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=5))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[object, object, object]]:
    return ((field(row, "qid"), field(row, "docno"), field(row, "score")) for row in rows)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@odd
@given(data=st.data())
def test_tables_of_hits(tmp_path_factory: pytest.TempPathFactory, ending: str, data: st.DataObject) -> None:
    path, delimiter = tmp_path_factory.mktemp("runs") / f"x.{ending}", "," if ending == "csv" else "\t"
    path.write_bytes(data.draw(table_files(draw_hits(data), delimiter)))
    compare(path, lambda: best_of(columns_of(table_rows(path.read_bytes(), delimiter)), written=True))


@odd
@given(data=st.data())
def test_lines_of_json_of_hits(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("runs") / "x.jsonl"
    path.write_bytes(data.draw(json_line_files(draw_hits(data))))
    compare(path, lambda: best_of(columns_of(json_rows(path.read_bytes()))))


@odd
@given(data=st.data())
def test_lists_of_hits_in_json(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("runs") / "x.json"
    path.write_bytes(data.draw(json_files(draw_hits(data))))
    compare(path, lambda: best_of(columns_of(json_of(text_of(path.read_bytes())))))


@odd
@given(data=st.data())
def test_mappings_of_queries_in_json(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("runs") / "x.json"
    texts = IDS.filter(lambda value: isinstance(value, str))
    hits = st.dictionaries(texts, st.dictionaries(texts, SCORES, min_size=1, max_size=3), min_size=1, max_size=3)
    path.write_bytes(data.draw(json_files(data.draw(hits))))

    def oracle() -> Hits:
        queries = json_of(text_of(path.read_bytes()))
        return best_of((query, *hit) for query, of in queries.items() for hit in of.items())

    compare(path, oracle)


def test_a_table_that_is_not_utf_8_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("qid,docno,score\nq,d,1\n".encode("utf-16"))
    with pytest.raises(RetrieverError, match=r"x\.csv: the file is UTF-16 text; save it as UTF-8"):
        read(path)
    path.write_bytes("qid,docno,score,größe\nq,d,1,2\n".encode("latin-1"))
    with pytest.raises(RetrieverError, match=r"x\.csv:1: not UTF-8 text"):
        read(path)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_list_of_documents_has_the_scores_of_the_list_beside_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    row = {"qid": "q", "docno": ["a", "b", "c"], "score": [1.5, 3.0, 2.0]}
    if ending == "jsonl":
        path.write_text(json.dumps(row))
    else:
        parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    assert read(path) == {"q": {"a": 1.5, "b": 3.0, "c": 2.0}}


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_single_score_of_a_list_of_documents_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    row = {"qid": "q", "docno": ["a", "b"], "score": 0.5}
    if ending == "jsonl":
        path.write_text(json.dumps(row))
    else:
        parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    with pytest.raises(RetrieverError, match=r"'score' .*documents .* list.*give a list of scores"):
        read(path)


@odd
@given(data=st.data())
def test_hits_in_parquet(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path, rows = tmp_path_factory.mktemp("runs") / "x.parquet", type_columns(draw_hits(data))
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    compare(path, lambda: best_of(columns_of(rows)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["x.trec", "x.trec.gz", "x.trec.bz2", "x.trec.xz"])
def test_the_first_bytes_of_a_run_say_how_it_is_compressed(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(pack(b"q Q0 d 1 2.5 t\n"))
    assert read(tmp_path / name) == {"q": {"d": 2.5}}
