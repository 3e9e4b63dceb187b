"""Explain from Python why a measure differs between two results, with the terms of the command `explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

from runner.api.data import locate
from runner.api.notebook import Part, render_tables
from runner.comparison.compare import TableStatistics
from runner.config.composing import compose_config
from runner.config.consent import Consent, restore_values
from runner.config.objects import build_settings
from runner.config.values import settle
from runner.datasets.chunking import Whole
from runner.datasets.dataset import Dataset
from runner.datasets.settings import build_dataset
from runner.evaluation.bench import Bench
from runner.evaluation.result import Result
from runner.features.explain.explanation import ExplanationSettings, explain_difference
from runner.features.explain.report import tables
from runner.features.explain.report.sections import iter_sections
from runner.features.explain.terms import Explanation
from runner.metrics.measures import parse_primary
from runner.results.lookup import Named
from runner.store.opening import open_store
from runner.store.settings import store_settings

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_EXAMPLES = 5
"""Most rows of a list of evidence."""


@dataclass(frozen=True, eq=False)
class ResultExplanation(Explanation):
    """The difference between two results, split into the effects of its causes."""

    @property
    def frame(self) -> DataFrame:
        """Return a data frame with a row for each measure and effect; `part_of` is the cause of a setting."""
        import pandas as pd

        rows = []
        for measure in self.measures:
            family = self.find_family(measure)
            for term in [*self.list_terms(measure), self.build_total(measure)]:
                for part, whole in [(term, ""), *((part, term.name) for part in term.parts)]:
                    row = {name: value for name, value in part.to_dict().items() if name != "parts"}
                    rows.append({"measure": measure, "family": family, "part_of": whole, **row})
        return pd.DataFrame(rows)

    @property
    def moved_frame(self) -> DataFrame:
        """Return a data frame with a row for each query that moved; `causes` are the changes that restore it alone.

        `restored_by` has the smallest sets of changes that restore it, infinity is a rank without gold among the hits.
        """
        import pandas as pd

        ends = ("before", "after")
        columns = ["query", *(f"{what}_{end}" for what in ("value", "rank") for end in ends), "causes", "restored_by"]
        rows = [(own.query, *own.values, *own.ranks, own.causes, own.restored_by) for own in self.moved]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        return f"ResultExplanation({self.labels[1]} against {self.labels[0]} by {self.primary})"

    def _repr_html_(self) -> str:
        parts: list[Part] = [
            (section.title, table, ())
            for section in iter_sections(self, MOST_EXAMPLES)
            for table in section.tables.values()
        ]
        texts = [tables.verdict(self), *tables.describe_changes(self), *tables.about(self)]
        return render_tables(tables.heading(self), parts, texts)


def explain(
    baseline: Result,
    candidate: Result,
    *,
    datasets: Sequence[Dataset] = (),
    primary: str | None = None,
    store_path: str | PathLike[str] | None = None,
    plugins: Sequence[str] = (),
    trust: Sequence[str] = (),
    **statistics: Any,  # noqa: ANN401 (checked)
) -> ResultExplanation:
    """Explain why the measures of a candidate differ from those of a baseline.

    The settings of each result are evaluated on the data of the other. `datasets` are those that were created in Python
    or have moved; others are loaded again by their recorded settings. `primary` is the primary measure, by default that
    of the results. `store_path` is where work is cached; None means the default of the command line. `plugins` and
    `trust` say what the recorded settings may do, as on the command line. `statistics` are
    settings of `conf/explain.yaml`: test, correction, confidence, alpha, permutations and seed. Raises `NotComparable`
    for results that cannot be explained, `ConfigError` for unknown settings.
    """
    results = {"baseline": baseline, "candidate": candidate}
    for name, result in results.items():
        if not isinstance(result, Result):
            raise TypeError(f"{name}: should be a result of evaluate or run_sweep, not {type(result).__name__}")
    own = build_settings(TableStatistics, statistics, "statistics")
    options = ExplanationSettings(primary=None if primary is None else str(parse_primary(primary)))
    config = settle(*compose_config("evaluate", locate(None, store_path))).config
    consent = Consent.of({"plugins": plugins, "trust": trust})

    @cache
    def open_bench() -> Bench:
        bench = Bench(open_store(store_settings(config)))
        known = {dataset.fingerprint: dataset for dataset in datasets}
        for result in results.values():
            if dataset := known.get(result.dataset.fingerprint):
                recorded = restore_values({"dataset": result.config["dataset"]}, consent)["dataset"]
                bench.datasets.add(build_dataset(recorded, consent.plugins)[0], Whole(), dataset)
        return bench

    named = [Named(result, name) for name, result in results.items()]
    explanation = explain_difference(named[0], named[1], own, options, open_bench, consent)
    values: Mapping[str, Any] = {field.name: getattr(explanation, field.name) for field in fields(Explanation)}
    return ResultExplanation(**values)
