"""Write a dataset in a format that others read, and say how it is read back."""

from __future__ import annotations

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.datasets.exporting import Format


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class ExportSettings:
    """What is written where: see `conf/export.yaml`."""

    format: Format
    output: str = Field(min_length=1)  # a name may be a number
    overwrite: bool = False


def main(cfg: DictConfig) -> int:
    """Load the dataset, write it, and show the settings that read it."""
    from dataclasses import fields
    from pathlib import Path

    from runner.config.arguments import arguments
    from runner.config.objects import ConfigError, build
    from runner.config.values import resolved
    from runner.datasets.exporting import export
    from runner.datasets.settings import build_dataset
    from runner.reports import console

    config = resolved(cfg)
    node = {each.name: config[each.name] for each in fields(ExportSettings)}
    try:
        wanted: ExportSettings = build({**node, "_target_": f"{__name__}.ExportSettings"}, "export")
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("export.")) from error
    with console.Working("export"):
        source, chunking = build_dataset(config["dataset"], config["plugins"])
        dataset = source.load().split_documents(chunking)
        done = export(dataset, wanted.format, Path(wanted.output).expanduser(), wanted.overwrite)
    for note in done.notes:
        console.note(note)
    for path in done.files:
        console.line(f"written: {path}")
    console.line(f"read it with: {arguments(done.settings)}")
    return 0
