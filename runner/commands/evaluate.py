"""Evaluate one configured retriever on one dataset, log it, and show it. Sweeps go through `runner.sweep` instead."""

from __future__ import annotations

import traceback

from omegaconf import DictConfig

FAILED = 1


def main(cfg: DictConfig) -> int:
    """Run one evaluation; return 1 when the retriever raised."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from retrievers.base import RetrieverError
    from runner.config.objects import ConfigError, build
    from runner.config.values import settle, store_path
    from runner.evaluation import Bench, experiment_of
    from runner.reports import console
    from runner.reports.markdown import result_markdown
    from runner.reports.page import result_page
    from runner.store.disk import DiskStore
    from runner.sweep.settings import settings_of
    from runner.tracking.background import BackgroundTracker
    from runner.tracking.record import Failed, Finished

    hydra = HydraConfig.get()
    settled = settle(cfg, hydra.runtime.choices)
    # A job of another sweeper than ours, which a launcher may have taken to another machine, is told by its overrides.
    experiment = experiment_of(settled, hydra.job.override_dirname if hydra.mode == RunMode.MULTIRUN else None)
    sweep = settings_of(settled.config.get("sweep"))
    if sweep.union:
        raise ConfigError("sweep.union: add -m to run a sweep")
    if sweep.dry_run:
        raise ConfigError("sweep.dry_run: add -m, as for a sweep, or say plan: python -m runner plan ...")
    bench = Bench(DiskStore(store_path(settled.config)))
    bench.dataset(experiment.source)
    with BackgroundTracker(build(settled.config["tracking"], "tracking")) as tracker:
        tracker.start()
        try:
            with console.Working(experiment.name):
                result = bench.evaluate(experiment)
        except RetrieverError:
            raise
        except Exception as error:
            what, trace = f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))
            (run,) = tracker.ask("log", [Failed(experiment.name, experiment.parameters, what, trace)])
            console.error(f"{what} (see {run.where('traceback.txt')})")
            return FAILED
        reports = {"report.md": result_markdown(result), "report.html": result_page(result)}
        console.show_result(result)
        (run,) = tracker.ask("log", [Finished(result, experiment.parameters, reports)])
    console.line(f"report: {run.where('report.html')}")
    return 0
