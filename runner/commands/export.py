"""Export a dataset in a format that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from omegaconf import DictConfig
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import RequiredPath
from runner.config.arguments import arguments
from runner.config.objects import ConfigError, build_settings
from runner.config.values import resolve_config
from runner.datasets.export_formats import Format
from runner.datasets.exporting import export
from runner.datasets.settings import build_dataset
from runner.datasets.span_conversion import convert_judgments, read_documents
from runner.pages import console
from runner.pages.progress import Status


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class ExportSettings:
    """What is written and where: see `conf/export.yaml`."""

    format: Format
    output: RequiredPath
    overwrite: bool = False
    documents: str | None = Field(default=None, min_length=1)
    span_similarity: float = Field(default=0.8, gt=0, le=1)

    @model_validator(mode="after")
    def _check_documents(self) -> Self:
        if self.documents is not None and self.format != "spans":
            raise ValueError(f"documents={self.documents}: used only with format=spans; remove it")
        return self


def main(cfg: DictConfig) -> int:
    """Load the dataset, write it, and show the settings that read it."""
    config = resolve_config(cfg)
    own = build_settings(ExportSettings, config)
    with Status("export"):
        source, chunking = build_dataset(config["dataset"], config["plugins"])
        dataset = source.load().split_documents(chunking)
        if own.documents is not None:
            if dataset.judgments.spans is not None:
                raise ConfigError("documents: the gold is already spans; remove documents, or dataset.gold=spans")
            dataset = convert_judgments(dataset, read_documents(own.documents), own.span_similarity)
        written = export(dataset, own.format, Path(own.output).expanduser(), own.overwrite)
    for note in filter(None, [dataset.reading, *written.notes]):
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
