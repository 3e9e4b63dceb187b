"""Mine a dataset from benchmark definitions, from the docstrings of an installed package, or from traffic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import RequiredPath
from runner.config.arguments import arguments
from runner.config.objects import ConfigError, build, build_settings
from runner.config.parameters import deciding, flatten
from runner.config.values import public, resolve_config, without_environment
from runner.datasets.saving import INSPECTION, JOURNAL, SUMMARY, beside, check_output
from runner.features.mine.base import Mining
from runner.features.mine.forward import count_unfinished
from runner.features.mine.mine import mine_cases, select_kept
from runner.features.mine.output import DOUBTFUL, REJECTED, write
from runner.features.mine.report import impact_note, impact_table, names_table, reasons_table, suites_table
from runner.features.mine.traffic.command import mine_traffic
from runner.features.mine.traffic.source import TrafficSource
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from runner.llm.spending import describe_spending
from runner.pages import console
from runner.pages.progress import Status
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import DatasetMade, now

NOTHING = 1
"""The exit code if no query was kept."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True, "coerce_numbers_to_str": True})
class MineSettings:
    """How queries are mined, and the file to write them to: see `conf/mine.yaml`."""

    mining: Mining
    output: RequiredPath


def main(cfg: DictConfig) -> int:
    """Read cases and targets, mine queries, write and log the dataset; return 1 if no query was kept."""
    started, config = now(), resolve_config(cfg)
    own = build_settings(MineSettings, config, plugins=config["plugins"])
    mining, path = own.mining, Path(own.output).expanduser()
    source = build(config["source"], "source", config["plugins"])
    tracking = build(config["tracking"], "tracking")
    if isinstance(source, TrafficSource):
        settled = public({"source": without_environment(cfg, config)["source"]})
        return mine_traffic(source, path, tracking, flatten(settled))
    check_output(path, *_source_files(config["source"]))
    store = open_store(store_settings(config))
    with Status("reading cases and targets"):
        material = source.load()
    for note in material.targets.notes:
        console.note(note)
    if all(case.fault for case in material.cases):
        n, first = len(material.cases), material.cases[0].fault
        raise ConfigError(f"source: none of the {n} cases can be turned into a query; the first problem: {first}")
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        journal = Journal(beside(path, JOURNAL))
        work = f"mining {len(material.cases):,} cases among {len(material.targets):,} targets"
        asking = "" if isinstance(mining.llm, NoLLM) else ", with a language model"
        try:
            with Status(f"{work}{asking}"):
                queries = mine_cases(mining, material, store, journal)
        finally:  # the cost is shown even after an error
            if spent := describe_spending([mining.llm]):
                console.note(spent)
        summary = write(path, queries, select_kept(mining, queries), material.targets)
        console.show_table(names_table(summary), "Names in answers")
        console.show_table(suites_table(summary), "Queries")
        console.show_table(reasons_table(summary))
        if note := impact_note(summary):
            console.line(note)
            console.show_table(impact_table(summary), "Impact of documents")
        if left := count_unfinished(queries):
            which = "1 query has" if left == 1 else f"{left:,} queries have"
            console.note(f"{which} missing answers. Run the same command to resume.")
        else:
            journal.forget()
        recorded = without_environment(cfg, config)
        decided = public({"source": recorded["source"], "mining": deciding(recorded["mining"], mining)})
        files = {"summary.json": beside(path, SUMMARY).read_text(encoding="utf-8")}
        record = DatasetMade(path.stem, started, flatten(decided), summary.to_figures(), files, {"kind": "mining"})
        run = tracker.log_at_once(record)
    console.document(
        lambda: {"run": run.id or None, "dataset": str(path), "summary": orjson.Fragment(files["summary.json"])}
    )
    if run.id:  # empty with tracking=none
        console.line(f"run: {run.id}")
    console.line(f"dataset: {path}")
    if not summary.total.queries_kept:
        console.error(f"no query was kept; see the reasons in {beside(path, REJECTED)} and {beside(path, DOUBTFUL)}")
        return NOTHING
    dataset = {"dataset": "mined", "dataset.path": str(path)}
    inspection = {**dataset, "output": str(beside(path, INSPECTION))}
    console.line(f"inspect it: python -m runner inspect {arguments(inspection)}")
    console.line(f"evaluate it: python -m runner {' '.join([arguments(dataset), *tracking.overrides()])}")
    return 0


def _source_files(source: Mapping[str, Any]) -> list[Path]:
    """Return the files that a source names, which must not be overwritten."""
    paths = [Path(str(source[name])).expanduser() for name in ("definitions", "targets", "imports") if source.get(name)]
    return [file for path in paths for file in [*path.glob("*/benchmark.yaml"), *([] if path.is_dir() else [path])]]
