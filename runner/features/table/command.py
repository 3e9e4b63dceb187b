"""Write the table of a paper: systems by datasets and measures, with tests, for LaTeX, Markdown and spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.comparison.comparability import ReportError
from runner.config.addresses import LocalPath, RequiredPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.records import save_record
from runner.features.table.paper_table import Marks, PaperTable, build_paper_table
from runner.features.table.report.documents import (
    DOCUMENT,
    table_csv,
    table_json,
    table_latex,
    table_markdown,
)
from runner.features.table.report.sentences import describe_across, describe_table
from runner.features.table.report.tables import across_table, systems_table
from runner.metrics.errors import MeasureError
from runner.metrics.measures import parse_primary
from runner.pages import console
from runner.pages.output import write_texts, writing_to
from runner.results.lookup import as_typed, list_results
from runner.results.reproduction import CELLS, RECORDS
from runner.statistics.settings import Statistics


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class PaperSettings:
    """What the table shows, and where it goes: see `conf/table.yaml`."""

    baselines: LocalPath
    output: RequiredPath
    datasets: Sequence[str] | None = None
    measures: Sequence[str] | None = None
    baseline: str | None = None
    names: Mapping[str, str] = Field(default_factory=dict)
    marks: Marks | None = None
    digits: int = Field(default=3, ge=1, le=6)
    statistics: Statistics = Statistics()


def main(cfg: DictConfig) -> int:
    """Load the results, build the table, write it in all formats, and show it."""
    config = resolve_config(cfg)
    own = build_settings(PaperSettings, config)
    tracking = build(config["tracking"], "tracking")
    words = as_typed(config["sweeps"], "sweeps", HydraConfig.get().overrides.task)
    results = [result.light() for word in words for result in list_results(word, tracking, Path(own.baselines))]
    try:
        table = build_paper_table(
            results, _parse_measures(own), own.baseline or "", own.statistics, own.datasets or (), own.names, own.marks
        )
    except ReportError as error:
        raise ConfigError(str(error)) from None
    content = _write(table, own)
    console.document(lambda: content)
    console.show_table(systems_table(table, own.digits), "Systems by dataset")
    for sentence in describe_table(table, best="*"):
        console.paragraph(sentence)
    console.show_table(across_table(table), "Across datasets")
    for sentence in describe_across(table):
        console.paragraph(sentence)
    return 0


def _parse_measures(own: PaperSettings) -> list[str]:
    try:
        return [str(parse_primary(measure)) for measure in own.measures or ()]
    except MeasureError as error:
        raise ConfigError(f"measures: {error}") from None


def _write(table: PaperTable, own: PaperSettings) -> dict[str, object]:
    """Write the table in each format with the records behind it; return the content of the file of cells."""
    records = {
        place: f"{place[0] + 1}_{place[1] + 1}_{re.sub(r'[^A-Za-z0-9]+', '_', table.systems[place[0]]).strip('_')[:40]}"
        for place in table.results
    }
    content = table_json(table, own.output, records)
    texts = {
        "table.tex": table_latex(table, own.output, own.digits),
        "table.md": table_markdown(table, own.output, own.digits),
        "table.csv": table_csv(table),
        "document.tex": DOCUMENT,
        CELLS: orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode(),
    }
    with writing_to(own.output) as folder:
        for place, result in table.results.items():
            save_record(result, folder / RECORDS / records[place])
        console.note(write_texts(folder, texts))
    return content
