"""Load-test a retriever's service, log the figures, and show them."""

from __future__ import annotations

import orjson
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import check_read, settle
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.features.load.load_test import LoadResult, run_load_test
from runner.features.load.report import describe_load, iter_sections, load_markdown, load_page, rates_table
from runner.features.load.settings import LoadSettings
from runner.pages import console
from runner.pages.output import write_texts, writing_to
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import DatasetMade, now

STOPPED, INTERRUPTED = 1, 130


@settings(frozen=True, config={"extra": "forbid"})
class LoadCommandSettings:
    """What is sent, and where the report goes: see `conf/load.yaml`."""

    load: LoadSettings
    output: LocalPath | None = None


def main(cfg: DictConfig) -> int:
    """Run the test; return 0 if all rates were run, 1 if a limit stopped it, 130 after Ctrl-C."""
    hydra, started = HydraConfig.get(), now()
    if hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("hydra/sweeper: load tests a sweep only with the sweeper grid; remove hydra/sweeper")
    settled = settle(cfg, hydra.runtime.choices)
    check_read(hydra.overrides.task, [settled.config])
    own = build_settings(LoadCommandSettings, settled.config, plugins=settled.config.get("plugins") or ())
    tracking = build(settled.config["tracking"], "tracking")
    experiment, bench = build_experiment(settled), Bench(open_store(store_settings(settled.config)))
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        result = run_load_test(experiment, bench, own.load, console.note)
        files = {
            "load.html": load_page(result),
            "load.md": load_markdown(result),
            "load.json": orjson.dumps(result.to_dict(), option=orjson.OPT_INDENT_2).decode(),
        }
        tags = {"kind": "load", "stopped": result.stopped}
        name = f"load {experiment.retriever_name}"
        run = tracker.log_at_once(DatasetMade(name, started, experiment.parameters, result.list_figures(), files, tags))
    if own.output is not None:
        with writing_to(own.output) as folder:
            console.note(write_texts(folder, files))
    report = run.where("load.html") if run.id else None
    console.document(lambda: {"run": run.id or None, "report": report, **result.to_dict()})
    _show(result)
    if run.id:
        console.line(f"run: {run.id}")
        console.line(f"report: {report}")
    return {"": 0, "interrupted": INTERRUPTED}.get(result.stopped, STOPPED)


def _show(result: LoadResult) -> None:
    console.show_table(rates_table(result), f"{result.target}: {result.dataset}")
    console.show_sections(iter_sections(result))
    console.line("")
    for text in describe_load(result):
        console.paragraph(text)
