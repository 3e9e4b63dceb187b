"""Measure how far a judge can be trusted: its agreement with grades of others, and with itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrievers.strict_values import parse_number
from runner.datasets import files
from runner.datasets.delimited import iter_csv
from runner.datasets.files import SourceRecord
from runner.datasets.rows import iter_parquet
from runner.statistics.coefficients import compute_spearman

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgeAgreement:
    """The agreement of a judge's grades with those of a reference, over the questions that both graded.

    `kappa` is Cohen's, with quadratic weights; `spearman` is the rank correlation; `mean_error` is how much higher the
    judge grades, `mean_absolute_error` how far off it is. None where it cannot be computed.
    """

    questions: int
    kappa: float | None
    spearman: float | None
    mean_error: float | None
    mean_absolute_error: float | None


def agreement(judge: Floats, reference: Floats) -> JudgeAgreement:
    """Compare two columns of grades; NaN marks a missing grade."""
    both = ~(np.isnan(judge) | np.isnan(reference))
    judge, reference = judge[both], reference[both]
    if not len(judge):
        return JudgeAgreement(0, None, None, None, None)
    varied = np.ptp(judge) > 0 and np.ptp(reference) > 0
    return JudgeAgreement(
        len(judge),
        compute_weighted_kappa(judge, reference),
        compute_spearman(judge, reference) if varied else None,
        float(np.mean(judge - reference)),
        float(np.mean(np.abs(judge - reference))),
    )


def compute_weighted_kappa(one: Floats, other: Floats) -> float | None:
    """Return Cohen's kappa with quadratic weights, which needs no classes; None if all grades are the same.

    1 - (mean squared difference of the pairs) / (the same if any grade could meet any other) (Cohen 1968; Fleiss &
    Cohen 1973).
    """
    by_chance = one.var() + other.var() + (one.mean() - other.mean()) ** 2
    return float(1 - np.mean((one - other) ** 2) / by_chance) if by_chance > 0 else None


def spread(grades: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of the grades of one question, pooled over the questions that have several."""
    repeated = [np.asarray(group) for group in grades if len(group) > 1]
    if not repeated:
        return None
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in repeated)
    return float(np.sqrt(squares / sum(len(group) - 1 for group in repeated)))


def earlier_grades(path: str) -> dict[str, float]:
    """Read grades by question from a file with `query_id` and `grade`: JSONL, CSV, or an earlier `grades.parquet`.

    Several grades of a question are averaged; null grades are left out. Raises `ValueError` for an invalid file or one
    without any grade.
    """
    grades: dict[str, list[float]] = {}
    for record in _iter_rows(Path(path).expanduser()):
        if not {"query_id", "grade"} <= record.fields.keys():
            raise record.fault(f"needs query_id and grade; its fields are {', '.join(map(str, record.fields))}")
        if (value := record.fields["grade"]) not in (None, ""):
            try:
                grade = parse_number(value)
            except ValueError as error:
                raise record.fault(f"the grade {error}") from None
            grades.setdefault(record.identifier("query_id"), []).append(grade)
    if not grades:
        raise ValueError(f"{path}: contains no grades; check the content and the extension (JSONL, CSV or Parquet)")
    return {query: float(np.mean(values)) for query, values in grades.items()}


def _iter_rows(file: Path) -> Iterator[SourceRecord]:
    if file.suffix == ".parquet":
        return iter_parquet(file, ("query_id", "grade"))
    return files.json_lines(file) if file.suffix in (".jsonl", ".ndjson") else iter_csv(file)
