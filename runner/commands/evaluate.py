"""Evaluate one configured retriever on one dataset, log it, and show it. Sweeps go through `runner.sweep` instead."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import UTC, datetime

from omegaconf import DictConfig, OmegaConf

FAILED = 1


def main(cfg: DictConfig) -> int:
    """Run one evaluation; return 1 when the retriever raised, or all queries failed."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from retrievers.base import RetrieverError
    from runner.config.objects import ConfigError, build
    from runner.config.values import settle, store_path
    from runner.evaluation import Bench, experiment_of
    from runner.llm.spending import figures, spending, spent_for
    from runner.reports import console
    from runner.reports.evaluation.files import evaluation_files
    from runner.reports.evaluation.grades import grade_table, missing_line, verdict_table
    from runner.reports.golden.report import golden_files
    from runner.store.disk import DiskStore
    from runner.sweep.settings import settings_of
    from runner.tracking.background import BackgroundTracker
    from runner.tracking.record import Failed, Finished
    from runner.tracking.tracing import traced, traces

    hydra = HydraConfig.get()
    settled = settle(cfg, hydra.runtime.choices)
    # A job of another sweeper than ours, which a launcher may have taken to another machine, is told by its overrides.
    experiment = experiment_of(settled, hydra.job.override_dirname if hydra.mode == RunMode.MULTIRUN else None)
    sweep = settings_of(settled.config.get("sweep"))
    if sweep.union:
        raise ConfigError("sweep.union: add -m to run a sweep")
    if sweep.dry_run:
        raise ConfigError("sweep.dry_run: add -m, as for a sweep, or say plan: python -m runner plan ...")
    analyzer = build(
        OmegaConf.to_container(cfg.analyzer, resolve=True), "analyzer", settled.config.get("plugins") or ()
    )
    bench = Bench(DiskStore(store_path(settled.config)), analyzer)
    lexicon = bench.lexicon(experiment)
    tracking = build(settled.config["tracking"], "tracking")
    paid = [experiment.retriever, experiment.grading]
    before = spent_for(paid)
    with traced(tracking, traces(settled.config)), BackgroundTracker(tracking) as tracker:
        tracker.start()
        try:
            with console.Working(experiment.name):
                result = bench.graded(experiment, bench.evaluate(experiment))
        except (RetrieverError, ConfigError):
            raise
        except Exception as error:
            what, trace = f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))
            (run,) = tracker.ask("log", [Failed(experiment.name, experiment.parameters, what, trace)])
            console.error(f"{what} (see {run.where('traceback.txt')})")
            return FAILED
        finally:  # what is spent is spent, whatever became of it
            if spent := spending(paid):
                console.note(spent)
        result = replace(result, diagnostics={**result.diagnostics, **figures(spent_for(paid), before)})
        reports = evaluation_files(result, lexicon)
        if experiment.source.golden:
            reports |= golden_files([result], datetime.now(UTC))
        console.show_result(result)
        if result.grades is not None:
            console.show_table(grade_table(result))
            console.show_table(verdict_table(result))
        if told := missing_line(result):
            console.note(told)
        (run,) = tracker.ask("log", [Finished(result, experiment.parameters, reports)])
    bench.safe()
    console.line(f"run: {run.id}")
    console.line(f"report: {run.where('report.html')}")
    return FAILED if result.all_failed else 0
