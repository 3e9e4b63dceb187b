"""An assertion for test suites: a result passes the gate of `compare` against a baseline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from runner.comparison.compare import TableStatistics
from runner.comparison.gate import EXIT_CODES, Gate, check_gate, find_exit_code, load_gate
from runner.comparison.locked import ask_locked_split
from runner.comparison.report import data, gate_rules, tables
from runner.config.consent import Consent
from runner.config.objects import ConfigError, build_settings
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.result import Result
from runner.pages.numbers import format_signed
from runner.results.lookup import Named, results_called
from runner.results.re_evaluation import ReEvaluation, compare_on_same_data
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.settings import Tracking

_LISTED = 5
"""The largest number of queries to list in a message."""


class UndecidedWarning(UserWarning):
    """A gate cannot tell whether a result is worse, because there are too few queries."""


def assert_no_regression(
    result: Result | str | PathLike[str],
    baseline: Result | str | PathLike[str],
    *,
    gate: Gate | Mapping[str, Any] | str = "default",
    primary: str | None = None,
    statistics: Mapping[str, Any] | None = None,
    dataset: Dataset | None = None,
    re_evaluate: ReEvaluation = "auto",
    plugins: Sequence[str] = (),
    trust: Sequence[str] = (),
    baselines: str | PathLike[str] = "baselines",
    experiment: str | None = None,
    tracking_uri: str | None = None,
    store_path: str | PathLike[str] | None = None,
) -> None:
    """Raise `AssertionError` if a result fails a gate when compared with a baseline, or if the gate is undecided.

    An undecided gate only warns (`UndecidedWarning`) with `undecided="warn"`, and passes with `undecided="pass"`.

    `result` and `baseline` are results of `runner.evaluate`, or names as on the command line: "latest",
    "baseline:main", the id of a run, a file. `gate` is the name of a file in `conf/gate`, or rules such as {"drops":
    {"primary": 0.01}}; `statistics` are settings of `conf/compare.yaml`. If the baseline was measured on other data, it
    is evaluated again on the data of the result; pass these as `dataset` if they were made in Python. The other
    arguments are the settings of the same names. Raises `NotComparable` for results that cannot be compared,
    `ConfigError` for mistakes.
    """
    tracking: Tracking = build_settings(Tracking, {"uri": tracking_uri, "experiment": experiment}, "tracking")
    folder = Path(baselines)
    consent = Consent.of({"plugins": plugins, "trust": trust})
    results = [_find_result(given, tracking, folder) for given in (baseline, result)]
    own = build_settings(TableStatistics, statistics or {}, "statistics")
    place = store_settings({"store": {"path": str(store_path or "mlruns/cache")}})
    rules = _build_gate(gate)
    comparison, effect = compare_on_same_data(
        results, own, primary, re_evaluate, lambda: Bench(open_store(place)), consent, dataset, rules.measures
    )
    if rules.locked is not None:
        checks = ask_locked_split(rules, comparison, open_store(place).run_files)
    else:
        checks = check_gate(rules, comparison)
    unmet = gate_rules.list_open_checks(checks)
    lines = [gate_rules.gate_verdict(checks), *(f"  {gate_rules.describe_check(check)}" for check in unmet)]
    if find_exit_code(rules, checks) == EXIT_CODES["pass"]:
        if unmet and rules.undecided == "warn":
            warnings.warn("\n".join(lines), UndecidedWarning, stacklevel=2)
        return
    if rules.locked is None:
        lines += tables.verdicts(comparison) + (data.describe(effect) if effect else [])
        losses = tables.losses(comparison, 1)[:_LISTED]
        lines += [f"Largest losses in {comparison.primary}:"] if losses else []
        lines += [f"  {format_signed(loss.difference)}  {loss.after.id}: {loss.after.text}" for loss in losses]
    raise AssertionError("\n".join(lines))


def _find_result(given: Result | str | PathLike[str], tracking: Tracking, baselines: Path) -> Named:
    if isinstance(given, Result):
        return Named(given, given.name)
    found_results = results_called(str(given), tracking, baselines)
    if len(found_results) > 1:
        raise ConfigError(
            f"{given}: matches several results; choose one: {', '.join(named.source for named in found_results)}"
        )
    return found_results[0]


def _build_gate(gate: Gate | Mapping[str, Any] | str) -> Gate:
    """Return a gate, given as an object, as rules, or as the name of its file."""
    if isinstance(gate, Gate):
        return gate
    return load_gate(gate) if isinstance(gate, str) else build_settings(Gate, gate, "gate")
