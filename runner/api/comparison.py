"""Compare results from Python, with the tests and tables of the command `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from runner.api.notebook import render_comparison
from runner.comparison.compare import Comparison, TableStatistics, Versus, compare_results
from runner.config.objects import build_settings
from runner.evaluation.result import Result, ResultError
from runner.metrics.measures import parse, parse_primary

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class ResultDifference(Versus):
    """The mean of a candidate by a measure, and its difference from the baseline."""

    measure: str = ""
    candidate: str = ""
    baseline: str = ""

    def __repr__(self) -> str:
        verdict = "significant" if self.difference.significant else "not significant"
        return f"{self.candidate} against {self.baseline} by {self.measure}: {super().__repr__()}; {verdict}"


@dataclass(frozen=True, eq=False)
class ResultComparison(Comparison):
    """A comparison of results with a baseline, which is the first result; candidates are numbered from 1."""

    def difference(self, measure: str | None = None, candidate: int = 1) -> ResultDifference:
        """Return the mean of a candidate by a measure (None: the primary one), and its difference from the baseline."""
        name = self.primary if measure is None else str(parse(measure))
        if name not in self.table:
            raise ResultError(f"{name}: not in this comparison; choose from {', '.join(self.table)}")
        if not 1 <= candidate < len(self.results):
            raise ResultError(f"candidate={candidate}: should be from 1 to {len(self.results) - 1}")
        return ResultDifference(
            **vars(self.table[name][candidate]), measure=name, candidate=self.labels[candidate], baseline=self.labels[0]
        )

    def significant(self, measure: str | None = None, candidate: int = 1) -> bool:
        """Return whether a difference is significant.

        That of the primary measure is corrected for the candidates, or for all pairs of the results that these were
        chosen from; those of all other measures are exploratory, and corrected together.
        """
        return self.difference(measure, candidate).difference.significant

    @property
    def frame(self) -> DataFrame:
        """Return a data frame with a row for each measure and result."""
        import pandas as pd

        rows = [
            {"measure": measure, "family": self.find_family(measure), "result": label, **versus.to_dict()}
            for measure, row in self.table.items()
            for label, versus in zip(self.labels, row, strict=True)
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return f"ResultComparison({', '.join(self.labels[1:])} against {self.labels[0]} by {self.primary})"

    def _repr_html_(self) -> str:
        return render_comparison(self)


def compare(
    baseline: Result,
    *candidates: Result,
    primary: str | None = None,
    among: Sequence[Result] = (),
    **statistics: Any,  # noqa: ANN401 (checked)
) -> ResultComparison:
    """Compare results with a baseline on the same queries.

    `primary` is the primary measure, by default that of the results. `among` are the results that these were chosen
    from by their scores, such as all of a sweep: the primary measure is then corrected for all pairs of them, as on a
    leaderboard. `statistics` are settings of `conf/compare.yaml`: test, correction, confidence, alpha, permutations and
    seed. Raises `NotComparable` for results on different data, `ConfigError` for unknown settings.
    """
    for i, result in enumerate((baseline, *candidates)):
        if not isinstance(result, Result):
            place = f"candidate {i}" if i else "baseline"
            raise TypeError(f"{place}: should be a result of evaluate or run_sweep, not {type(result).__name__}")
    if not candidates:
        raise TypeError("compare: needs a baseline and at least one candidate")
    own = build_settings(TableStatistics, statistics, "statistics")
    measure = None if primary is None else str(parse_primary(primary))
    comparison = compare_results([baseline, *candidates], own, measure, rivals=among)
    values: Mapping[str, Any] = {field.name: getattr(comparison, field.name) for field in fields(Comparison)}
    return ResultComparison(**values)
