"""Inspect a dataset: what there is of it, what is the matter with it, and what to do about that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.analyzer import Analyzer
from retrievers.base import Retriever
from runner.analysis.inspection_findings import InspectionSettings

if TYPE_CHECKING:
    from pathlib import Path

    from runner.datasets.base import Queries
    from runner.datasets.source import DatasetSource


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True, "coerce_numbers_to_str": True})
class InspectSettings:
    """What is inspected by what, and where that is written: see `conf/inspect.yaml`."""

    analyzer: Analyzer
    retrievers: Mapping[str, Retriever]
    inspection: InspectionSettings
    output: str = Field(min_length=1)  # a name may be a number


def main(cfg: DictConfig) -> int:
    """Load the dataset, search it, and write and show the findings."""
    from dataclasses import fields

    from retrievers.search import resolve_search_depth, search_cached
    from runner.analysis.inspection import inspect
    from runner.config.objects import ConfigError, build
    from runner.config.values import resolved, store_path
    from runner.datasets.own_documents import exclude_own, rows_to_exclude
    from runner.datasets.settings import build_dataset
    from runner.reports import console
    from runner.reports.inspection import tables as told
    from runner.reports.inspection.page import inspection_page
    from runner.store.opening import open_store

    config = resolved(cfg)
    node = {each.name: config[each.name] for each in fields(InspectSettings)}
    try:
        wanted: InspectSettings = build(
            {**node, "_target_": f"{__name__}.InspectSettings"}, "inspect", config["plugins"]
        )
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("inspect.")) from error
    source, chunking = build_dataset(config["dataset"], config["plugins"])
    folder, store = _folder(wanted.output), open_store(store_path(config))
    with console.Working("inspect") as working:
        working.note("loading the dataset")
        dataset, others = source.load().split_documents(chunking), _other_splits(source)
        wanted_depth, rankings = wanted.inspection.depth + rows_to_exclude(dataset), {}
        for name, retriever in wanted.retrievers.items():
            working.note(f"searching with {name}")
            depth = resolve_search_depth(retriever, dataset.corpus, wanted_depth)
            found = search_cached(retriever, dataset.corpus, dataset.queries.texts, depth, store)
            rankings[name] = exclude_own(dataset, found, wanted.inspection.depth)
            if found.errors:
                first = next(iter(found.errors.values()))
                console.note(f"{name}: {len(found.errors):,} searches failed, the first: {first}")
        working.note("looking at what was found")
        inspection = inspect(dataset, rankings, wanted.analyzer, store, others, wanted.inspection)
        page = inspection_page(inspection)
    try:
        (folder / "inspection.json").write_bytes(told.as_json(inspection))
        (folder / "inspection.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"output={wanted.output}: cannot be written ({error.strerror})") from None
    console.line(told.heading(inspection))
    console.line(told.verdict(inspection))
    console.show_table(told.findings_table(inspection), "Findings, worst first")
    console.show_table(told.retrievers_table(inspection), "Retrievers")
    for line in inspection.lacking:
        console.note(line)
    console.line(f"\nreport: {folder / 'inspection.html'}")
    return 0


def _folder(output: str) -> Path:
    """Return the folder of the report, which must be possible before any work is done."""
    from pathlib import Path

    from runner.config.objects import ConfigError

    folder = Path(output).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"output={output}: is a file; name a folder") from None
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be made a folder ({error.strerror})") from None
    return folder


def _other_splits(source: DatasetSource) -> dict[str, Queries]:
    """Return the queries of the splits that are not inspected."""
    from dataclasses import replace

    from runner.datasets.base import DatasetError

    found = {}
    for split in (split for split in source.splits() if split != source.split):
        try:
            found[split] = replace(source, split=split, max_queries=None).load().queries
        except DatasetError as error:
            raise DatasetError(f"the split {split}, which is looked at for leakage: {error}") from None
    return found
