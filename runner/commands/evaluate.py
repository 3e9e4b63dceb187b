"""Evaluate one configured retriever on one dataset, log the result, and show it. Sweeps run in `runner.sweep`."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.index_facts import describe_indexes
from runner.comparison.insights import Insights, find_insights
from runner.comparison.notes import judge_command, warn_holes
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.report import ReportSettings, Texts
from runner.config.values import check_read, settle, without_secrets
from runner.evaluation.bench import Bench, build_result
from runner.evaluation.experiment import Experiment, build_experiment
from runner.evaluation.records import format_record
from runner.evaluation.report.files import evaluation_files
from runner.evaluation.report.grades import grade_table, missing_line, verdict_table
from runner.evaluation.report.junit import evaluation_junit
from runner.evaluation.report.printing import show_result
from runner.evaluation.result import Result
from runner.features.golden.report.files import golden_files
from runner.llm.spending import compute_figures, describe_spending, measure_spending
from runner.pages import console
from runner.pages.junit import write_junit
from runner.pages.progress import Status
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.sweep.identity import combination_id
from runner.sweep.report.board_columns import shorten_run
from runner.sweep.settings import SweepSettings
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun
from runner.tracking.pages import create_place
from runner.tracking.record import Failed, Finished
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
from runner.tracking.tracing import log_exchanges, traces
from runner.tracking.unlogged import Unlogged, Waiting

FAILED = 1

EVALUATIONS = "evaluations"
"""The folder of single results that wait to be logged, next to the folders of sweeps."""


@settings(frozen=True, config={"extra": "forbid"})
class EvaluationSettings:
    """What is written in addition to the run: see `conf/evaluate.yaml`."""

    junit: LocalPath | None = None
    report: ReportSettings = ReportSettings()


def main(cfg: DictConfig) -> int:
    """Run one evaluation; return 1 if the retriever or a query raised an error, or the result was not logged."""
    hydra = HydraConfig.get()
    settled = settle(cfg, hydra.runtime.choices)
    if hydra.mode == RunMode.RUN:  # in a sweep, another combination may read it
        check_read(hydra.overrides.task, [settled.config])
    # A job of another sweeper, which a launcher may run on another machine, is named after its overrides.
    experiment = build_experiment(settled, hydra.job.override_dirname if hydra.mode == RunMode.MULTIRUN else None)
    own = build_settings(EvaluationSettings, settled.config)
    sweep = build_settings(SweepSettings, settled.config.get("sweep"), "sweep")
    if sweep.union:
        raise ConfigError("sweep.union: needs a sweep; add -m")
    if sweep.dry_run:
        raise ConfigError("sweep.dry_run: needs a sweep; add -m, or use the plan command")
    analyzer = build(
        OmegaConf.to_container(cfg.analyzer, resolve=True), "analyzer", settled.config.get("plugins") or ()
    )
    bench = Bench(open_store(store_settings(settled.config)), analyzer)
    tracking = build(settled.config["tracking"], "tracking")
    if reading := bench.dataset(experiment).reading:
        console.note(reading)
    try:
        with_exchanges = traces(settled.config)
        result, run = run_experiment(experiment, bench, tracking, with_exchanges, _show, texts=own.report.texts)
    except FailedEvaluation as error:
        console.error(str(error))
        return FAILED
    if run is None:
        return FAILED
    if own.junit is not None:
        write_junit(evaluation_junit(result), Path(own.junit))
    console.document(
        lambda: {
            "run": run.id or None,
            "report": run.where("report.html") if run.id else None,
            "result": orjson.Fragment(format_record(result)),
        }
    )
    if not run.id:
        console.line("not logged (tracking=none)")
        return FAILED if result.failures else 0
    _show_places(result, run, tracking)
    return FAILED if result.failures else 0


def _show_places(result: Result, run: LoggedRun, tracking: Tracking) -> None:
    """Print where the run and its report are, and what to judge if many hits are unjudged."""
    console.line(f"run: {run.id}")
    console.line(f"report: {run.where('report.html')}")
    if place := tracking.from_environment:
        console.line(place)
    unjudged = warn_holes(result) if result.dataset.judgments else "No query has gold, so nothing is measured"
    if unjudged:
        command = judge_command([shorten_run(run.id)], tracking.overrides())
        console.line(f"\n{unjudged}; judge the hits: {command}")


class FailedEvaluation(Exception):
    """A retriever raised an error that is neither about its settings nor about a single query; it was logged."""


def run_experiment(
    experiment: Experiment,
    bench: Bench,
    tracking: Tracking,
    with_exchanges: bool = False,
    show: Callable[[Result, Insights], object] = lambda result, insight: None,
    resume: bool = True,
    texts: Texts = "snippets",
) -> tuple[Result, LoggedRun | None]:
    """Evaluate, show and log; return the result and its run, None if it could not be logged and waits on disk.

    With `resume`, a result of the same evaluation that waits to be logged is used. Raises `FailedEvaluation`.
    """
    if choose_store(tracking).is_direct:  # logging is faster than starting a process for it
        tracking = replace(tracking, background=False)
    paid = [experiment.retriever, experiment.grading]
    before = measure_spending(paid)
    earlier = Unlogged(bench.store.run_files.unlogged / EVALUATIONS)
    experiment = replace(experiment, index=describe_indexes(experiment.retriever))
    identity = combination_id(experiment, bench.dataset(experiment))

    def render(result: Result) -> tuple[Insights, dict[str, str]]:
        if not tracker.keeps_runs:
            return Insights(), {}
        lexicon = bench.lexicon(experiment, result)
        insight = find_insights(result, lexicon)
        files = evaluation_files(
            result, insight, None if lexicon is None else lexicon.corpus, create_place(tracking), texts
        )
        golden = golden_files([result], datetime.now(UTC), texts=texts) if experiment.source.golden else {}
        return insight, files | golden

    with log_exchanges(tracking, with_exchanges), BackgroundTracker(tracking) as tracker:
        tracker.start()
        waiting = earlier.find(identity) if resume else None
        entry = waiting and waiting.read()
        if waiting and entry:
            console.note(f"already evaluated; logging the result saved in {waiting.file}")
            result = experiment.relabel(entry.result)
            insight, files = render(result)
            entry = replace(entry, result=result, reports=files)
            with suppress(OSError):  # the result is then logged without reports
                waiting = earlier.keep(identity, entry, waiting)
            return result, _finish(result, insight, waiting, tracker, bench, show)
        try:
            with Status(experiment.name):
                measured = bench.measure(experiment)
                grades = bench.grade(experiment, measured)
        except (RetrieverError, ConfigError):
            raise
        except Exception as error:
            problem = without_secrets(f"{type(error).__name__}: {error}")
            trace = without_secrets("".join(traceback.format_exception(error)))
            run = tracker.log_at_once(Failed(experiment.name, experiment.parameters, problem, trace))
            raise FailedEvaluation(f"{problem} (see {run.where('traceback.txt')})") from error
        finally:  # the cost is shown even after an error
            if spent := describe_spending(paid):
                console.note(spent)
        result = build_result(experiment, measured, grades, compute_figures(measure_spending(paid), before))
        insight, files = render(result)
        entry = Finished(result, experiment.parameters, files)
        try:
            waiting = Unlogged(earlier.folder, shared=False).keep(identity, entry)
        except OSError as error:
            console.note(f"{earlier.folder}: the result cannot be saved before it is logged ({error.strerror})")
        return result, _finish(result, insight, waiting or entry, tracker, bench, show)


def _finish(
    result: Result,
    insight: Insights,
    entry: Finished | Waiting,
    tracker: BackgroundTracker,
    bench: Bench,
    show: Callable[[Result, Insights], object],
) -> LoggedRun | None:
    """Show a result and log it; return its run, None if it cannot be logged now."""
    run: LoggedRun | None = None
    try:
        show(result, insight)
    finally:  # even if the result cannot be shown
        run = _log(entry, tracker)
    if run is not None:
        bench.forget_journals()
    return run


def _show(result: Result, insight: Insights) -> None:
    show_result(result, insight)
    if result.grades is not None:
        console.show_table(grade_table(result))
        console.show_table(verdict_table(result))
    if missing := missing_line(result):
        console.note(missing)


def _log(entry: Finished | Waiting, tracker: BackgroundTracker) -> LoggedRun | None:
    """Return the run of a result, None if it cannot be logged now and waits on disk."""
    try:
        run = tracker.log_at_once(entry, again=True)  # a dead process may have logged it
    except ConfigError as error:
        if not isinstance(entry, Waiting):
            raise
        with suppress(OSError):  # move it to where the next command finds it, even while this process runs
            entry = entry.move_to(entry.file.parents[1] / EVALUATIONS)
        console.error(f"{error}; the result is saved in {entry.file}; run the same command to log it")
        return None
    if isinstance(entry, Waiting):
        with suppress(OSError):
            entry.file.parent.rmdir()
    return run
