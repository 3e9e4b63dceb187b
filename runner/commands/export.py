"""Export a dataset in a format that other programs read."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import RequiredPath
from runner.config.arguments import arguments
from runner.config.objects import build_settings
from runner.config.values import resolve_config
from runner.datasets.exporting import Format, export
from runner.datasets.settings import build_dataset
from runner.reports import console
from runner.reports.progress import Status


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class ExportSettings:
    """What is written and where: see `conf/export.yaml`."""

    format: Format
    output: RequiredPath
    overwrite: bool = False


def main(cfg: DictConfig) -> int:
    """Load the dataset, write it, and show the settings that read it."""
    config = resolve_config(cfg)
    own = build_settings(ExportSettings, config)
    with Status("export"):
        source, chunking = build_dataset(config["dataset"], config["plugins"])
        dataset = source.load().split_documents(chunking)
        written = export(dataset, own.format, Path(own.output).expanduser(), own.overwrite)
    for note in written.notes:
        console.note(note)
    console.document(
        lambda: {
            "files": [str(path) for path in written.files],
            "settings": dict(written.settings),
            "notes": list(written.notes),
        }
    )
    for path in written.files:
        console.line(f"written: {path}")
    console.line(f"read it with: {arguments(written.settings)}")
    return 0
