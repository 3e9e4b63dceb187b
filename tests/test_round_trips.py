"""An id of any characters is refused by a writer or a reader, or read back as it was."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, RetrieverError
from retrievers.runs.run_file import RunFile
from retrievers.store import NoStore
from retrievers.strict_values import find_line_break
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import WRITERS, Format
from runner.datasets.exporting import export
from runner.datasets.qrels import read_qrels
from runner.evaluation.records import load_record, save_record, write_trec
from runner.evaluation.result import Hits, Result
from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.desk.export import QRELS, write_grades
from runner.features.judge.desk.journal import AssessorJournal, load_journals
from runner.features.judge.judged_files import JUDGMENTS, PEOPLE, load_verdicts, write_people, write_verdicts
from runner.features.judge.sheet import SheetRow, load_sheet, save_sheet
from tests.datasets.rows import make_dataset
from tests.datasets.test_exporting import read
from tests.pages.factory import result
from tests.strategies.ids import GRADED_PAIRS
from tests.strategies.settings import at_most

Pairs = Mapping[tuple[str, str], int]
"""Grades, or scores, by the ids of a query and a document."""


def list_pairs(dataset: Dataset) -> Pairs:
    """Return the grades of a dataset by ids."""
    queries, documents = dataset.queries.ids, [*dataset.corpus.ids, *dataset.judgments.unknown_documents]
    return {(queries[q], documents[d]): grade for q, d, grade in dataset.judgments.list_rows()}


@pytest.mark.parametrize("format", [name for name in WRITERS if name != "spans"])
@settings(max_examples=at_most(30))
@given(pairs=GRADED_PAIRS)
def test_an_exported_dataset_has_the_same_ids(format: Format, pairs: Pairs) -> None:
    grade = {"synthetic": 1, "mined": 2}.get(format)
    pairs = {pair: grade or each for pair, each in pairs.items()}
    queries = dict.fromkeys(query for query, _ in pairs)
    documents = dict.fromkeys(document for _, document in pairs)
    judged = {query: {d: grade for (q, d), grade in pairs.items() if q == query} for query in queries}
    asked = {query: (f"text {place}", "", "") for place, query in enumerate(queries)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            dataset = make_dataset({name: ("", "text") for name in documents}, asked, judged)
            exported = export(dataset, format, Path(folder))
        except DatasetError:
            return
        assert list_pairs(read(exported)) == list_pairs(dataset) == pairs


def make_result(pairs: Pairs) -> Result:
    """Return a result whose hits are these pairs, scored by their values."""
    queries = list(dict.fromkeys(query for query, _ in pairs))
    documents = list(dict.fromkeys(document for _, document in pairs))
    shape = (len(queries), len(documents))
    places, scores = np.full(shape, NOTHING, np.int32), np.zeros(shape, np.float32)
    for row, query in enumerate(queries):
        hits = sorted(((score, d) for (q, d), score in pairs.items() if q == query), reverse=True)
        places[row, : len(hits)] = [documents.index(document) for _, document in hits]
        scores[row, : len(hits)] = [score for score, _ in hits]
    same = result(queries=len(queries), no_result=0)
    hits = Hits(Rankings(places, scores, 0.0), documents, np.full(shape, -1, np.int32))
    return replace(same, queries=replace(same.queries, ids=queries), hits=hits)


def list_hits(documents: Sequence[str], rankings: Rankings, queries: Sequence[str]) -> Pairs:
    """Return the scores of rankings by ids."""
    return {
        (query, documents[place]): int(score)
        for query, places, scores in zip(queries, rankings.documents, rankings.scores, strict=True)
        for place, score in zip(places, scores, strict=True)
        if place != NOTHING
    }


@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_the_record_of_a_result_has_the_same_ids(pairs: Pairs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_record(make_result(pairs), Path(folder))
        again = load_record(Path(folder))
    assert again.hits is not None
    assert list_hits(again.hits.documents, again.hits.rankings, again.queries.ids) == pairs


def read_run(file: Path, queries: Sequence[str]) -> Pairs:
    """Return the hits of a file of rankings by ids."""
    run = RunFile(str(file)).index(Corpus([], []), NoStore())
    rankings = run.search([QueryText("text", query) for query in queries], 9)
    return list_hits(rankings.unknown_ids, rankings, queries)


@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_the_trec_run_of_a_result_has_the_same_ids(pairs: Pairs) -> None:
    made = make_result(pairs)
    with tempfile.TemporaryDirectory() as folder:
        write_trec(made, Path(folder, "run.trec.gz"))
        assert read_run(Path(folder, "run.trec.gz"), made.queries.ids) == pairs


def write_rows(file: Path, pairs: Pairs) -> None:
    """Write pairs as a table in the format of the file's extension, with a program that is not ours."""
    names = ("query_id", "document_id", "score")
    rows = [dict(zip(names, (*pair, score), strict=True)) for pair, score in pairs.items()]
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix in (".csv", ".tsv"):
        with file.open("w", encoding="utf-8", newline="") as text:
            table = csv.DictWriter(text, names, delimiter="," if file.suffix == ".csv" else "\t")
            table.writeheader()
            table.writerows(rows)
    elif file.suffix == ".jsonl":
        file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    else:
        file.write_text(json.dumps(rows), encoding="utf-8")


@pytest.mark.parametrize("name", ["run.csv", "run.tsv", "run.parquet", "run.json", "run.jsonl"])
@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_rankings_of_other_programs_have_the_same_ids(name: str, pairs: Pairs) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(RetrieverError):
        write_rows(Path(folder, name), pairs)
        assert read_run(Path(folder, name), list(dict.fromkeys(query for query, _ in pairs))) == pairs


@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_grades_of_the_desk_have_the_same_ids(pairs: Pairs) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with AssessorJournal(folder, "anna", 3) as journal:
            for pair, grade in pairs.items():
                journal.append("grade", pair, grade)
        finals = write_grades(folder / "out", load_journals(folder, 3), {})
        kept = {pair: grade for pair, grade in pairs.items() if pair in {final.pair for final in finals}}
        assert kept == {pair: grade for pair, grade in pairs.items() if all(map(is_valid, pair))}
        if kept:
            assert {(q, d): grade for q, d, grade in read_qrels(folder / "out" / QRELS)} == kept


def is_valid(name: str) -> bool:
    """Return whether an id can be judged."""
    return bool(name) and find_line_break(name) is None


@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_a_sheet_has_the_same_ids(pairs: Pairs) -> None:
    rows = [SheetRow(pair, "query", "document", grade) for pair, grade in pairs.items()]
    with tempfile.TemporaryDirectory() as folder:
        save_sheet(Path(folder, "sheet.csv"), rows)
        assert load_sheet(Path(folder, "sheet.csv")) == rows


@settings(max_examples=at_most(50))
@given(pairs=GRADED_PAIRS)
def test_the_verdicts_of_a_judge_have_the_same_ids(pairs: Pairs) -> None:
    ids, verdicts = list(pairs), [GradeVerdict(grade, "graded") for grade in pairs.values()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            write_verdicts(folder, ids, verdicts)
            write_people(folder, ids, np.array([*pairs.values()]))
        except DatasetError:
            return
        for file in (JUDGMENTS, PEOPLE):
            assert {(q, d): grade for q, d, grade in read_qrels(folder / file)} == pairs
        assert [verdict.grade for verdict in load_verdicts(folder, ids)] == [*pairs.values()]
