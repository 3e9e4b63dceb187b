"""Write and read the files of a judged pool: judgments as qrels, verdicts with their reasons, and scores.

Each file is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import orjson

from retrievers.files import replace_texts
from retrievers.strict_values import fits_columns, show_value
from runner.datasets.base import DatasetError
from runner.evaluation.grades import verdict_columns, verdict_of
from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.judging import PairIds, Standing
from runner.features.judge.order import UNJUDGED, Ints
from runner.features.judge.people import JudgeReport

JUDGMENTS, VERDICTS, PEOPLE = "judgments.tsv", "verdicts.jsonl", "people.tsv"


def write_verdicts(folder: Path, ids: Sequence[PairIds], verdicts: Sequence[GradeVerdict]) -> None:
    """Write the judgments of the model as qrels, and its verdicts with their reasons."""
    pairs = list(zip(ids, verdicts, strict=True))
    records = [{"query_id": q, "document_id": d, **verdict_columns(v)} for (q, d), v in pairs]
    graded = ((pair, verdict.grade) for pair, verdict in pairs if verdict.grade is not None)
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    replace_texts(folder, {JUDGMENTS: format_qrels(graded), VERDICTS: lines.decode()})


def load_verdicts(folder: Path, ids: Sequence[PairIds]) -> list[GradeVerdict]:
    """Return the verdicts on pairs that were written into a folder; pairs without a verdict are unjudged."""
    file = folder / VERDICTS
    rows = [orjson.loads(line) for line in file.read_bytes().splitlines()] if file.is_file() else []
    earlier = {(row["query_id"], row["document_id"]): verdict_of(row) for row in rows}
    missing = GradeVerdict(None, "unasked", f"no grade in {VERDICTS}")
    return [earlier.get(pair, missing) for pair in ids]


def write_people(folder: Path, ids: Sequence[PairIds], people: Ints) -> None:
    """Write people's grades as qrels, if there are any."""
    graded = [(pair, grade) for pair, grade in zip(ids, people.tolist(), strict=True) if grade != UNJUDGED]
    if graded:
        replace_texts(folder, {PEOPLE: format_qrels(graded)})


def format_qrels(graded: Iterable[tuple[PairIds, float]]) -> str:
    """Return graded pairs as lines of qrels; raises `DatasetError` for an id that ends a column or a line."""
    rows = ["query-id\tcorpus-id\tscore\n"]
    for (query, document), grade in graded:
        for identifier in (query, document):
            if not fits_columns(identifier):
                raise DatasetError(f"the id {show_value(identifier)} is empty, or ends a column or a line; rename it")
        rows.append(f"{query}\t{document}\t{grade:.0f}\n")
    return "".join(rows)


def format_scores(
    figures: Mapping[str, float], warnings: Sequence[str], standings: Sequence[Standing]
) -> dict[str, str]:
    """Return the files of the scores, and of the counts of outcomes with the warnings."""
    return {
        "standings.json": _dump([asdict(standing) for standing in standings]),
        "summary.json": _dump({**figures, "warnings": list(warnings)}),
    }


def format_correction(report: JudgeReport) -> dict[str, str]:
    """Return the file of the estimates that people's grades correct."""
    return {"correction.json": _dump(asdict(report))}


def _dump(content: object) -> str:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()
