"""A sweep from its axes to its leaderboard: each combination on its own, their common work once.

A combination that raises is logged as FAILED, and the others go on. It knows no retriever and no measure.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.config_loader import ConfigLoader
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.mistakes import explain
from runner.config.objects import ConfigError, build
from runner.config.values import settle, store_path
from runner.evaluation import Bench, Experiment, experiment_of
from runner.metrics.settings import MetricSettings
from runner.reports import console
from runner.reports.leaderboard import Failure, Leaderboard, leaderboard
from runner.reports.markdown import sweep_markdown
from runner.reports.page import sweep_page
from runner.result import Result
from runner.store import DiskStore
from runner.sweep.compose import Composer
from runner.sweep.grid import Combination, combinations
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import axes_of

FAILED, INTERRUPTED = 1, 130
"""Exit codes of a sweep in which a combination failed, or that the user stopped."""


@settings(frozen=True, config={"extra": "forbid"})
class SweepSettings:
    """Settings of a sweep as a whole: see `conf/evaluate.yaml`."""

    fail_fast: bool = False
    name: str | None = None
    output: str | None = None
    union: list[dict[str, Any]] = Field(default_factory=list)


@dataclass
class Outcome:
    """What came of a sweep so far."""

    results: list[Result]
    failures: list[Failure]
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """Return the exit code of a sweep that ended so."""
        return INTERRUPTED if self.interrupted else FAILED if self.failures else 0

    @property
    def status(self) -> str:
        """Return MLflow's word for how the sweep ended."""
        return "KILLED" if self.interrupted else "FAILED" if self.failures else "FINISHED"


def sweep(loader: ConfigLoader, config: DictConfig, arguments: Sequence[str], params: Mapping[str, Any]) -> int:
    """Run every combination, log and report; return the exit code. Raises for a user's mistake before any work."""
    wanted = [key for key in ("sweep", "tracking", "store") if key in config]
    own: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, wanted), resolve=True)
    chosen = settings_of(own.get("sweep"))
    points = combinations(arguments, params, chosen.union, loader)
    experiments = _experiments(points, loader, config)
    metrics = _common_metrics(experiments)
    bench = Bench(DiskStore(store_path(own)))
    for source in {repr(e.source): e.source for e in experiments}.values():
        bench.dataset(source)
    output = _made(chosen.output)
    with BackgroundTracker(build(own["tracking"], "tracking")) as tracker:
        preset = config.hydra.runtime.choices.get("experiment")
        tracker.start_sweep(chosen.name or preset or _name(points), _axes(points), len(points))
        outcome = _run_all(experiments, bench, tracker, chosen.fail_fast)
        reports: dict[str, str] = {}
        try:
            boards = _boards(outcome, metrics)
            for board, _ in boards:
                console.show_leaderboard(board)
            reports = _reports(boards)
            if output:
                _write(output, reports)
        finally:  # whatever happens to a report, the runs are there and their sweep is closed
            best = max(outcome.results, key=lambda result: np.nan_to_num(result.means[result.primary]), default=None)
            parent = tracker.finish_sweep(best, reports, outcome.status).result()
    for name in reports:
        if name.endswith(".html"):
            console.line(f"report: {output / name if output else parent.where(name)}")
    console.line("compare in MLflow: python -m runner ui")
    return outcome.exit_code


def settings_of(node: Mapping[str, Any] | None) -> SweepSettings:
    """Return a config's settings of a sweep; raises `ConfigError`."""
    return build({**(node or {}), "_target_": "runner.sweep.execute.SweepSettings"}, "sweep")  # type: ignore[no-any-return]


def _common_metrics(experiments: Sequence[Experiment]) -> MetricSettings:
    """Return how the sweep is ranked, which must be the same for all of it."""
    primaries = dict.fromkeys(str(e.metrics.primary_measure) for e in experiments)
    if len(primaries) > 1:
        raise ConfigError(f"metrics.primary: a sweep is ranked by one measure, not by {' and '.join(primaries)}")
    return experiments[0].metrics


def _made(output: str | None) -> Path | None:
    """Make the folder that the reports are to go to, before there is anything to lose."""
    if not output:
        return None
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"sweep.output={output}: cannot be made ({error.strerror})") from error
    return Path(output)


def _experiments(points: Sequence[Combination], loader: ConfigLoader, config: DictConfig) -> list[Experiment]:
    """Compose every combination and make its objects, so that a mistake in any is said before any runs."""
    composer = Composer(loader, config.hydra.job.config_name, list(config.hydra.overrides.hydra))
    experiments = []
    for point in points:
        try:
            cfg = composer.compose(point.overrides)
            experiments.append(experiment_of(settle(cfg, cfg.hydra.runtime.choices), point.name, point.swept))
        except ConfigError as error:
            raise ConfigError(f"{error} (in the combination {point.name})") from error
        except (HydraException, OmegaConfBaseException) as error:
            said = explain(error, composer.verb, point.overrides)
            way_out = "axes that do not fit every choice go side by side in sweep.union"
            raise ConfigError(f"{said} (in the combination {point.name}; {way_out})") from error
    return experiments


def _run_all(experiments: Sequence[Experiment], bench: Bench, tracker: BackgroundTracker, fail_fast: bool) -> Outcome:
    outcome = Outcome([], [])
    with console.Progress(len(experiments)) as progress:
        try:
            _run_each(experiments, bench, tracker, fail_fast, outcome, progress)
        except KeyboardInterrupt:
            outcome.interrupted = True
    return outcome


def _run_each(
    experiments: Sequence[Experiment],
    bench: Bench,
    tracker: BackgroundTracker,
    fail_fast: bool,
    outcome: Outcome,
    progress: console.Progress,
) -> None:
    best = -math.inf
    for experiment in experiments:
        parameters = {**axes_of(experiment.swept), **experiment.parameters}
        try:
            result = bench.evaluate(experiment)
        except Exception as error:  # whatever a retriever raises costs its own combination only
            failure = _failure(experiment, error)
            outcome.failures.append(failure)
            tracker.log_failure(failure.name, parameters, failure.error, failure.traceback)
            progress.advance(failed=True)
            if fail_fast:
                return
            continue
        outcome.results.append(result.light())
        tracker.log_result(result, parameters, {})
        mean = result.means[result.primary]
        leads = mean > best
        best = max(best, mean) if mean == mean else best
        progress.advance(best=f"{result.primary} {mean:.4f} by {result.name}" if leads else None)


def _failure(experiment: Experiment, error: Exception) -> Failure:
    what = " ".join(str(error).split())
    return Failure(experiment.name, f"{type(error).__name__}: {what}", "".join(traceback.format_exception(error)))


def _boards(outcome: Outcome, metrics: MetricSettings) -> list[tuple[Leaderboard, list[Result]]]:
    """Return a leaderboard for each dataset that was swept over, with the results that it was made from."""
    groups: dict[str, list[Result]] = {}
    for result in outcome.results:
        groups.setdefault(result.dataset.fingerprint, []).append(result)
    boards: list[tuple[Leaderboard, list[Result]]] = []
    for results in groups.values() or [[]]:
        failures = outcome.failures if not boards else []  # of no dataset in particular: said once
        board = leaderboard(
            results,
            str(metrics.primary_measure),
            failures,
            confidence=metrics.confidence,
            alpha=metrics.alpha,
            resamples=metrics.resamples,
            permutations=metrics.permutations,
            seed=metrics.seed,
        )
        boards.append((board, results))
    return boards


def _reports(boards: Sequence[tuple[Leaderboard, list[Result]]]) -> dict[str, str]:
    """Return the files that report a sweep: one set, or one for each dataset."""
    files = {}
    for board, results in boards:
        d = board.dataset
        which = f"-{d.name}-{d.split}-{d.fingerprint[:6]}" if d and len(boards) > 1 else ""
        files[f"report{which}.md"] = sweep_markdown(board, results)
        files[f"report{which}.html"] = sweep_page(board, results)
        files[f"leaderboard{which}.csv"] = board.to_csv()
    return files


def _write(folder: Path, reports: Mapping[str, str]) -> None:
    for name, text in reports.items():
        (folder / name).write_text(text)


def _name(points: Sequence[Combination]) -> str:
    """Name a sweep by its axes."""
    keys = dict.fromkeys(key.rpartition(".")[2] for point in points for key in point.swept)
    return f"sweep over {', '.join(keys)}" if keys else points[0].name


def _axes(points: Sequence[Combination]) -> dict[str, str]:
    """Return each axis with the values it takes."""
    axes: dict[str, dict[str, None]] = {}
    for point in points:
        for key, value in point.swept.items():
            axes.setdefault(key, {})[str(value)] = None
    return {key: ", ".join(values) for key, values in axes.items()}
