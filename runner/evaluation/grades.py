"""The grades of a language model: the verdicts and the needle's rank for each question, and their summary.

Hit and reciprocal rank use the first chunk whose document is the needle. A missing grade is null, is counted, and is
left out of every mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.evaluation.judge_quality import JudgeAgreement, spread
from runner.evaluation.verdicts import GradeVerdict, Scale, cut_warning

Floats = NDArray[np.float64]

HIT_CUTOFFS = (1, 5)

_COLUMNS: Mapping[str, type] = {
    "query_id": str, "repeat": int, "grade": float, "outcome": str, "said": str, "clamped": bool, "cached": bool,
    "asked": int, "calls": int, "tokens_in": int, "tokens_out": int, "cost": float,
    "cut": bool, "rank": int, "needle": bool, "total_score": float, "echo": bool,
}  # fmt: skip
_FIELDS = {"said": "reasoning", "asked": "attempts"}
"""The fields of a verdict whose column or figure has a different name."""


@dataclass(frozen=True, eq=False)
class Grades:
    """The judge's verdicts on each question (queries x repeats), and the rank of the needle.

    `ranks` (queries,) are those of the first chunk of the needle's document: infinite if it is not among the first k,
    NaN if there is no needle or the search raised an error. `echoes` (queries,) marks expected answers that only repeat
    the question, which makes the grade meaningless. `judge` and `prompt` (a hash) identify the model and the prompt.
    """

    judge: str
    prompt: str
    k: int
    weights: Sequence[float]
    verdicts: Sequence[Sequence[GradeVerdict]]
    ranks: Floats
    echoes: Sequence[bool]
    agreement: JudgeAgreement | None = None

    @cached_property
    def values(self) -> Floats:
        """Return the grade of each question (queries,): the mean of its verdicts, NaN if it has none."""
        return np.array([_mean(_list_grades(row)) for row in self.verdicts])

    @cached_property
    def totals(self) -> Floats:
        """Return each question's grade times the weight of its rank (queries,), NaN if it lacks either."""
        first, later, missing = self.weights
        weights = np.select([self.ranks == 1, self.ranks <= self.k], [first, later], missing)
        return np.where(np.isnan(self.ranks), np.nan, self.values * weights)

    def hit(self, k: int) -> float | None:
        """Return the share of the questions with a needle that have it among the first k."""
        return _or_none(_mean(self._sought <= k))

    @property
    def reciprocal_rank(self) -> float | None:
        """Return the mean of 1 / rank over the questions with a needle; 0 for one that is not among the first k."""
        return _or_none(_mean(1 / self._sought))

    @property
    def _sought(self) -> Floats:
        return self.ranks[~np.isnan(self.ranks)]

    @property
    def unasked(self) -> int:
        """Return how many verdicts are missing because the budget was spent or no judge was available."""
        return self.counts["unasked"]

    @property
    def failed(self) -> int:
        """Return how many verdicts are missing because of a temporary error, not counting errors of the search."""
        return sum(verdict.outcome == "error" and verdict.attempts > 0 for row in self.verdicts for verdict in row)

    @cached_property
    def counts(self) -> Counter[str]:
        """Return the number of verdicts by outcome, and how many were clamped, cached or based on a cut text."""
        every = [verdict for row in self.verdicts for verdict in row]
        counts = Counter[str](verdict.outcome for verdict in every)
        counts.update({name: sum(getattr(v, name) for v in every) for name in ("clamped", "cached", "cut")})
        return counts

    def warnings(self, scale: Scale) -> list[str]:
        """Return one sentence per problem of the verdicts: grades outside the scale, texts that were cut."""
        every = [verdict for row in self.verdicts for verdict in row]
        return [warning for warning in (scale.warning(every), cut_warning(every)) if warning]

    def figures(self) -> Mapping[str, float | None]:
        """Return the means, counts and costs by name; None for a mean of nothing."""
        return self._figures

    @cached_property
    def _figures(self) -> dict[str, float | None]:
        every = [verdict for row in self.verdicts for verdict in row]
        counts, deviation = self.counts, spread([_list_grades(row) for row in self.verdicts])
        errors = float(counts["error"] + counts["refused"])
        figures: dict[str, float | None] = {
            "grade/mean": _or_none(_mean(self.values)),
            "grade/total_score": _or_none(_mean(self.totals)),
            "grade/failures": counts["unreadable"] + errors,
            "grade/parse_failures": float(counts["unreadable"]),
            "grade/errors": errors,
            "grade/echoes": float(sum(self.echoes)),
            "grade/mrr": self.reciprocal_rank,
        }
        figures |= {f"grade/{name}": float(counts[name]) for name in ("unasked", "rescued", "clamped", "cut", "cached")}
        figures |= {
            f"grade/{name}": float(sum(getattr(verdict, _FIELDS.get(name, name)) for verdict in every))
            for name in ("asked", "calls", "tokens_in", "tokens_out", "cost")
        }
        figures |= {f"hit_at_{k}": self.hit(k) for k in sorted({*HIT_CUTOFFS, self.k}) if k <= self.k}
        if deviation is not None:
            figures["grade/spread"] = deviation
        if self.agreement is not None:
            figures |= {f"grade/agreement/{name}": value for name, value in asdict(self.agreement).items()}
        return figures

    def columns(self, query_ids: Sequence[str]) -> dict[str, list[Any]]:
        """Return a table with one row per verdict; a missing `rank` or grade is None."""
        rows = [
            {
                "query_id": query,
                "repeat": repeat,
                **verdict_columns(verdict),
                "rank": int(rank) if np.isfinite(rank) else None,
                "needle": not np.isnan(rank),
                "total_score": _or_none(float(total)),
                "echo": echo,
            }
            for query, row, rank, total, echo in zip(
                query_ids, self.verdicts, self.ranks, self.totals, self.echoes, strict=True
            )
            for repeat, verdict in enumerate(row, start=1)
        ]
        return {name: [row[name] for row in rows] for name in _COLUMNS}

    def head(self) -> dict[str, Any]:
        """Return the figures and all fields that are not in the columns."""
        agreement = asdict(self.agreement) if self.agreement else None
        own = {"judge": self.judge, "prompt": self.prompt, "k": self.k, "weights": list(self.weights)}
        return {**own, "agreement": agreement, "figures": self.figures()}


def verdict_columns(verdict: GradeVerdict) -> dict[str, Any]:
    """Return the fields of a verdict by column name."""
    columns = {field: column for column, field in _FIELDS.items()}
    return {columns.get(name, name): value for name, value in asdict(verdict).items()}


def verdict_of(columns: Mapping[str, Any]) -> GradeVerdict:
    """Return the verdict of a row made by `verdict_columns`."""
    names = {_FIELDS.get(column, column): value for column, value in columns.items()}
    return GradeVerdict(**{name: names[name] for name in GradeVerdict.__dataclass_fields__})


def save_grades(grades: Grades, query_ids: Sequence[str], file: Path) -> None:
    """Write the verdicts to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema({name: types[kind] for name, kind in _COLUMNS.items()})
    pq.write_table(pa.table(grades.columns(query_ids), schema), file, compression="zstd")


def load_grades(head: Mapping[str, Any], query_ids: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> Grades:
    """Return the grades that `Grades.head` and `Grades.columns` described."""
    rows: dict[str, list[GradeVerdict]] = {query: [] for query in query_ids}
    ranks, echoes = dict.fromkeys(query_ids, np.nan), dict.fromkeys(query_ids, False)
    column_of = {field: column for column, field in _FIELDS.items()}
    fields = [columns[column_of.get(name, name)] for name in GradeVerdict.__dataclass_fields__]
    for query, rank, needle, echo, *verdict in zip(
        *(columns[name] for name in ("query_id", "rank", "needle", "echo")), *fields, strict=True
    ):
        rows[query].append(GradeVerdict(*verdict))
        ranks[query] = np.nan if not needle else np.inf if rank is None else rank
        echoes[query] = echo
    return Grades(
        judge=head["judge"],
        prompt=head["prompt"],
        k=head["k"],
        weights=tuple(head["weights"]),
        verdicts=list(rows.values()),
        ranks=np.array(list(ranks.values()), dtype=np.float64),
        echoes=list(echoes.values()),
        agreement=JudgeAgreement(**head["agreement"]) if head["agreement"] else None,
    )


def _list_grades(row: Sequence[GradeVerdict]) -> list[float]:
    return [verdict.grade for verdict in row if verdict.grade is not None]


def _mean(values: Sequence[float] | Floats | NDArray[np.bool_]) -> float:
    """Return the mean without NaN values; NaN if none remain."""
    there = np.asarray(values, dtype=np.float64)
    there = there[~np.isnan(there)]
    return float(there.mean()) if len(there) else np.nan


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
