"""Write final grades: as qrels for an evaluation, as a table with who and when, and in formats of other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from retrievers.files import replace_texts
from runner.config.arguments import arguments
from runner.datasets.base import Judgments
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import Format
from runner.datasets.exporting import Exported, export
from runner.features.judge.desk.journal import Assessment
from runner.features.judge.desk.merging import FinalGrade, merge_grades
from runner.features.judge.desk.pairs import DeskPool
from runner.features.judge.judged_files import format_qrels
from runner.pages.cells import protect_row

QRELS, TABLE, BOOK = "judgments.tsv", "judgments.csv", "book.csv"


def write_grades(folder: Path, assessments: Mapping[str, Assessment], queries: Mapping[str, str]) -> list[FinalGrade]:
    """Write the final grades into a folder, each file replaced as a whole, and return them.

    `judgments.tsv` are qrels; `judgments.csv` also says who graded and when; `book.csv` has a column for each assessor,
    as Quepid exports a book; `queries` are the texts of queries by id.
    """
    finals = merge_grades(assessments)
    folder.mkdir(parents=True, exist_ok=True)
    columns = ("query_id", "document_id", "grade", "assessors", "judged_at", "settled", "note")
    rows = [
        (*final.pair, final.grade, ", ".join(final.assessors), final.at, final.is_settled, final.note)
        for final in finals
    ]
    grades = {name: own.grades for name, own in assessments.items()}
    opinions = [
        (
            queries.get(final.pair[0], final.pair[0]),
            final.pair[1],
            *(own.get(final.pair, "") for own in grades.values()),
        )
        for final in finals
    ]
    files = {
        QRELS: format_qrels((final.pair, final.grade) for final in finals),
        TABLE: _format_csv(columns, rows),
        BOOK: _format_csv(("query", "docid", *grades), opinions),
    }
    replace_texts(folder, files)
    return finals


def export_dataset(pool: DeskPool, finals: Sequence[FinalGrade], format: Format, folder: Path) -> Exported:
    """Write the dataset with its own judgments and the final grades in a format; raises `DatasetError`."""
    dataset = pool.runs[0].dataset
    whole = replace(dataset, corpus=dataset.documents, whole=None)
    return export(replace(whole, judgments=_add_grades(whole, finals)), format, folder, overwrite=True)


def format_setting(folder: Path, used: Sequence[str]) -> str:
    """Return the setting by which an evaluation uses the final grades, after the files that it already `used`."""
    path = (folder / QRELS).resolve()
    own = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    files = [*(file for file in used if Path(file).expanduser().resolve() != path), own]
    return arguments({"dataset.extra_qrels": files if len(files) > 1 else own})


def _add_grades(dataset: Dataset, finals: Sequence[FinalGrade]) -> Judgments:
    documents = {**dataset.corpus.positions, **dataset.judged_ids}
    queries = {name: place for place, name in enumerate(dataset.queries.ids)}
    judgments = dataset.judgments
    grades = {(query, document): grade for query, document, grade in judgments.list_rows()}
    for final in finals:
        query, document = final.pair
        if query in queries and document in documents:
            grades[queries[query], documents[document]] = final.grade
    merged = Judgments.of((*pair, grade) for pair, grade in grades.items())
    return replace(judgments, queries=merged.queries, documents=merged.documents, grades=merged.grades)


def _format_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerows(map(protect_row, [header, *rows]))
    return text.getvalue()
