"""Evaluate one configured retriever on one dataset, log it, and show it. Sweeps go through `runner.sweep` instead."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

FAILED = 1


def main(cfg: DictConfig) -> int:
    """Run one evaluation; return 1 when the retriever raised."""
    from hydra.core.hydra_config import HydraConfig

    from retrievers.base import RetrieverError
    from runner.config.objects import build
    from runner.config.values import settle
    from runner.evaluation import Bench, experiment_of
    from runner.reports import console
    from runner.reports.markdown import result_markdown
    from runner.reports.page import result_page
    from runner.store import DiskStore
    from runner.tracking import Tracker

    settled = settle(cfg, HydraConfig.get().runtime.choices)
    experiment = experiment_of(settled)
    tracker = Tracker(build(settled.config["tracking"], "tracking"))
    bench = Bench(DiskStore(Path(settled.config["store"]["path"])))
    bench.dataset(experiment.source)
    try:
        with console.Progress(1):
            result = bench.evaluate(experiment)
    except RetrieverError:
        raise
    except Exception as error:
        run_id = tracker.log_failure(experiment.name, experiment.parameters, error)
        folder = tracker.artifacts_of(run_id)
        where = folder / "traceback.txt" if folder else f"traceback.txt among the artifacts of run {run_id}"
        console.error(f"{type(error).__name__}: {error} (see {where})")
        return FAILED
    reports = {"report.md": result_markdown(result), "report.html": result_page(result)}
    run_id = tracker.log_result(result, experiment.parameters, reports)
    console.show_result(result)
    folder = tracker.artifacts_of(run_id)
    console.line(f"report: {folder / 'report.html' if folder else f'report.html among the artifacts of run {run_id}'}")
    return 0
