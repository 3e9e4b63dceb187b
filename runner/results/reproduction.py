"""Evaluate a recorded result again, perhaps on another machine, and explain why a value is or is not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from retrievers.base import RetrieverError
from runner.comparison.comparability import NotComparable, check_comparable
from runner.config.consent import Consent
from runner.config.objects import ConfigError, suggestion
from runner.datasets.base import DatasetError
from runner.evaluation.bench import Bench
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.results.re_evaluation import build_recorded_experiment, check_repeatable
from runner.system.environment import describe_code, describe_environment

CELLS, RECORDS = "cells.json", "records"
"""The file of cells, and the folder of the records behind them, in the folder of a table."""


@dataclass(frozen=True)
class RecordedCell:
    """A cell of a table: its mean of a measure, and the record of the result that it comes from."""

    name: str
    measure: str
    mean: float
    record: Result


@dataclass(frozen=True)
class Reproduction:
    """The recorded and the new mean of a measure, and how many of the shared queries have another value.

    `differences` are sentences on what differs between then and now: data, settings, code and versions.
    """

    measure: str
    recorded: float
    value: float
    queries: int
    changed: int
    tolerance: float
    differences: Sequence[str]

    @property
    def is_same(self) -> bool:
        """Return whether the mean and the value of each query are the same within the tolerance."""
        return abs(self.value - self.recorded) <= self.tolerance and not self.changed

    def explain(self) -> list[str]:
        """Return what was reproduced, and what explains a difference, in sentences."""
        means = f"recorded {self.recorded:.6f}, now {self.value:.6f}"
        if self.is_same:
            verdict = f"Reproduced: {self.measure} is the same ({means}), on each of {self.queries:,} queries."
            remark = "These differences have no effect on this value:"
        else:
            verdict = (
                f"Not reproduced: {self.measure} differs by {self.value - self.recorded:+.6f} ({means}); "
                f"{self.changed:,} of {self.queries:,} shared queries have another value."
            )
            remark = "What differs, and so may explain it:"
        if self.differences:
            return [verdict, remark, *self.differences]
        if self.is_same:
            return [verdict]
        return [
            verdict,
            "Data, settings, code and versions are the same. The retriever may not be deterministic, as with an "
            "approximate index, or a processor may round differently.",
        ]


def load_cell(word: str) -> RecordedCell:
    """Return the cell that FOLDER@CELL names, with its record; raises `ConfigError`."""
    place, _, name = word.rpartition("@")
    if not place or not name:
        raise ConfigError(
            f"cell={word}: expected FOLDER@CELL (the folder of a table and one of its cells), such as paper@B3"
        )
    file = Path(place).expanduser() / CELLS
    try:
        cells = {str(cell["id"]): cell for cell in orjson.loads(file.read_bytes())["cells"]}
    except OSError as error:
        raise ConfigError(
            f"cell={word}: {file} cannot be read ({error.strerror}); write a table first: python -m runner table"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"cell={word}: {file} does not contain the cells of a table ({error})") from None
    if name.upper() not in cells:
        raise ConfigError(f"cell={word}: no such cell in {file}; {suggestion(name.upper(), cells)}")
    cell = cells[name.upper()]
    try:
        folder, measure, mean = str(cell["record"]), str(cell["measure"]), float(cell["mean"])
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"cell={word}: the cell in {file} is incomplete ({error!r}); write the table again") from None
    if folder != Path(folder).name:
        raise ConfigError(f"cell={word}: {file} names the record {folder!r}, which is not a folder of {RECORDS}/")
    record = load_record(file.parent / RECORDS / folder, rankings=False)
    return RecordedCell(name.upper(), measure, mean, record)


def reproduce(
    cell: RecordedCell, bench: Bench, consent: Consent, dataset: Mapping[str, Any], tolerance: float
) -> Reproduction:
    """Evaluate the configuration of a cell again; `dataset` replaces settings of the recorded dataset.

    Raises `ConfigError` if the configuration cannot be evaluated again, such as that of a live service.
    """
    record = cell.record
    recorded = dict(record.config.get("dataset") or {})
    try:
        experiment = build_recorded_experiment(record, record, consent, dataset)
        check_repeatable(experiment, record, any_code=True)
        again = bench.evaluate(experiment)
    except NotComparable as error:
        way_out = "make its table again from the records: python -m runner table sweeps=FOLDER/records output=again"
        raise ConfigError(f"cell {cell.name}: {error}; {way_out}") from None
    except (DatasetError, RetrieverError) as error:
        raise ConfigError(
            f"cell {cell.name}: {error}; if the data are elsewhere on this machine, set +dataset.path=FOLDER"
        ) from None
    queries, changed = _count_changed(cell.measure, record, again, tolerance)
    differences = [
        *_explain_settings(recorded, dataset),
        *_explain_data(record, again),
        *_explain_environment(
            record.environment, {**describe_environment(), "code": describe_code(experiment.retriever)}
        ),
    ]
    value = again.means[cell.measure]
    return Reproduction(cell.measure, cell.mean, float(value), queries, changed, tolerance, differences)


def _count_changed(measure: str, record: Result, again: Result, tolerance: float) -> tuple[int, int]:
    """Return how many queries, by id, count in both results, and how many of these have another value."""
    before = dict(zip(record.queries.ids, record.of(measure).tolist(), strict=True))
    after = dict(zip(again.queries.ids, again.of(measure).tolist(), strict=True))
    pairs = np.array([(before[query], after[query]) for query in before if query in after]).reshape(-1, 2)
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    return len(pairs), int(np.count_nonzero(np.abs(pairs[:, 0] - pairs[:, 1]) > tolerance))


def _explain_settings(recorded: Mapping[str, Any], changed: Mapping[str, Any]) -> list[str]:
    parts = [f"dataset.{key} was {recorded.get(key)}, now {value}" for key, value in changed.items()]
    return [f"Settings: {'; '.join(parts)}."] if parts else []


def _explain_data(record: Result, again: Result) -> list[str]:
    if record.dataset.fingerprint == again.dataset.fingerprint:
        return []
    before, now = record.dataset, again.dataset
    try:
        check_comparable(record, again)
        reason = ""
    except NotComparable as error:
        reason = f" ({error})"
    return [
        f"Data: the fingerprint was {before.fingerprint[:8]}, now {now.fingerprint[:8]}; {before.documents:,} "
        f"documents and {before.queries:,} queries then, {now.documents:,} and {now.queries:,} now{reason}."
    ]


def _explain_environment(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    sentences = []
    before, after = recorded.get("code"), now["code"]
    if not before:
        sentences.append("Code: the record does not identify its code, which may have changed.")
    elif changed := sorted(name for name in {*before, *after} if before.get(name) != after.get(name)):
        commit = recorded.get("git_commit")
        origin = f"; the recorded commit is {str(commit)[:12]}" if commit else ""
        sentences.append(f"Code: {', '.join(changed)} changed{origin}.")
    versions = [
        f"{name} {_get_version(recorded, name)} then, {_get_version(now, name)} now"
        for name in dict.fromkeys(("python", "machine", *recorded.get("packages", {}), *now.get("packages", {})))
        if _get_version(recorded, name) != _get_version(now, name)
    ]
    return [*sentences, *([f"Versions: {'; '.join(versions)}."] if versions else [])]


def _get_version(environment: Mapping[str, Any], name: str) -> str:
    return str(environment.get(name) or environment.get("packages", {}).get(name) or "not installed")
