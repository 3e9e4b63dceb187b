"""Write the table of a paper: systems by datasets and measures, with tests, for LaTeX, Markdown and spreadsheets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.comparison.comparability import ReportError
from runner.config.addresses import LocalPath, RequiredPath
from runner.config.arguments import format_override
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.records import save_record
from runner.features.table.paper_table import Marks, PaperTable, RowOrder, build_paper_table
from runner.features.table.report.documents import (
    across_latex,
    describe_reproduction,
    document_latex,
    list_commands,
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
    order: RowOrder = "given"
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
            results, _parse_measures(own), own.baseline or "", own.statistics, own.datasets or (), own.names, own.marks,
            own.order,
        )  # fmt: skip
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


def _format_command(own: PaperSettings) -> str:
    """Return the command that makes the table again from its records."""
    words = [format_override("sweeps", f"{own.output.rstrip('/')}/{RECORDS}"), "output=again"]
    for word in HydraConfig.get().overrides.task:
        key = re.split(r"[.=]", word.lstrip("+"))[0]
        if key in {field.name for field in fields(PaperSettings)} - {"output", "baselines"}:
            words.append(format_override(key, own.baseline) if key == "baseline" else word)
    return shlex.join(["python", "-m", "runner", "table", *words])


def _write(table: PaperTable, own: PaperSettings) -> dict[str, object]:
    """Write the table in each format with the records behind it; return the content of the file of cells."""
    width = len(str(len(table.systems)))  # the names of records sort as the rows
    records = {
        (row, column): f"{row + 1:0{width}}_{column + 1}_"
        + re.sub(r"[^A-Za-z0-9]+", "_", table.systems[row]).strip("_")[:40]
        for row, column in table.results
    }
    again = _format_command(own)
    commands = list_commands(table, own.output, again)
    content, reproduction = table_json(table, commands, records), describe_reproduction(commands, again)
    latex = {"table.tex": table_latex(table, reproduction, own.digits)}
    if table.across:
        latex["across.tex"] = across_latex(table)
    texts = {
        **latex,
        "document.tex": document_latex([*latex]),
        "table.md": table_markdown(table, reproduction, own.digits),
        "table.csv": table_csv(table),
        CELLS: orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode(),
    }
    with writing_to(own.output) as folder:
        for place, result in table.results.items():
            save_record(result, folder / RECORDS / records[place])
        console.note(write_texts(folder, texts))
    return content
