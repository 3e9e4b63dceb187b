"""Measure how far a judge can be trusted: its agreement with grades of others, and with itself."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.analysis.coefficients import compute_spearman

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
    file, grades = Path(path).expanduser(), dict[str, list[float]]()
    try:
        for number, row in enumerate(_rows(file), start=1):
            if not {"query_id", "grade"} <= row.keys():
                raise ValueError(f"row {number} needs query_id and grade; its fields are {', '.join(map(str, row))}")
            if row["grade"] not in (None, ""):
                grades.setdefault(str(row["query_id"]), []).append(float(str(row["grade"])))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: the grades cannot be read ({error})") from None
    if not grades:
        raise ValueError(f"{path}: contains no grades; check the content and the extension (JSONL, CSV or Parquet)")
    return {query: float(np.mean(values)) for query, values in grades.items()}


def _rows(file: Path) -> Sequence[Mapping[str, object]]:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: list[dict[str, object]] = pq.read_table(file, columns=["query_id", "grade"]).to_pylist()
        return rows
    text = file.read_text(encoding="utf-8-sig")
    if file.suffix in (".jsonl", ".ndjson"):
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]  # texts may contain other line breaks
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a line is not a JSON object")
        return rows
    return list(csv.DictReader(io.StringIO(text, newline="")))
