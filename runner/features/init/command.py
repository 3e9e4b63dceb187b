"""Write an experiment for a folder of documents, say what it compares, and name the command that runs it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from pydantic.dataclasses import dataclass as settings

from retrievers.files import replace_texts
from runner.config.addresses import LocalPath, RequiredPath, is_address
from runner.config.arguments import format_override
from runner.config.objects import ConfigError, build_settings
from runner.config.values import resolve_config
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.features.init.experiment import list_options, list_products, write_experiment, write_value
from runner.features.init.folder import DocumentFolder, find_questions, read_folder, read_questions
from runner.features.init.timing import plan_experiment
from runner.pages import console
from runner.pages.output import writing_to
from runner.pages.progress import Status
from runner.pages.tables import Column, Table
from runner.sweep.report.plan import describe_total

NOTHING_WRITTEN = 1
"""The exit code if there are no questions."""


@settings(frozen=True, config={"extra": "forbid"})
class InitSettings:
    """The folder, its questions, and the file to write: see `conf/init.yaml`."""

    path: RequiredPath
    questions: LocalPath | None = None
    output: RequiredPath | None = None


def main(cfg: DictConfig) -> int:
    """Look at the folder, write the experiment, and plan it; return 1 without questions."""
    own = build_settings(InitSettings, resolve_config(OmegaConf.masked_copy(cfg, ["path", "questions", "output"])))
    file = Path(own.output or f"{Path(own.path).expanduser().resolve().name}.yaml").expanduser()
    _check_file(file)
    words = HydraConfig.get().overrides.task
    named, places = _read_retriever(words), [word for word in words if word.startswith(("store.", "tracking"))]
    if any(is_address(str(value)) for value in named.values()):
        places.append("trust=[secrets]")  # as in a file from elsewhere, an address needs consent
    preset = format_override("experiment", str(file))
    command = shlex.join(["python", "-m", "runner", preset, *places])
    with Status("init") as status:
        status.note("reading the documents and their questions")
        folder, questions, faults = _read(own)
        for name, fault in faults.items():
            console.note(f"{name} was not used: {fault}")
        if questions is None:
            return explain_questions(folder)
        name, dataset = questions
        text = write_experiment(folder, name, len(dataset.queries), named, command)
        with writing_to(str(file.parent)):
            replace_texts(file.parent, {file.name: text})
        status.note("timing a sample")
        try:
            plan = plan_experiment(preset, places)
        except KeyboardInterrupt:
            console.note(f"{file} is written, but how long it takes is unknown; run it: {command}")
            raise
        except Exception:  # with the file, the same command would be refused
            file.unlink()
            raise
    console.document(
        lambda: {
            **_describe(folder),
            "reading": dataset.reading,
            "questions": name,
            "file": str(file),
            "combinations": plan.combinations,
            "seconds": plan.wall_seconds,
            "available": [option.settings for option in list_options(folder) if option.is_installed],
            "missing": {option.settings: option.install for option in list_options(folder) if option.install},
        }
    )
    console.paragraph(dataset.reading)
    console.line(_describe_documents(folder))
    rows = [[of.name, write_value(dict(of.axes)).strip("{}"), of.why] for of in list_products(folder, named)]
    columns = [Column(file.name), Column("settings", least=30), Column("why", least=30)]
    console.show_table(Table(columns, rows), "What is compared")
    rows = [[option.settings, option.purpose, option.install or "installed"] for option in list_options(folder)]
    columns = [Column("setting", least=20), Column("what it is", least=20), Column("to install", least=20)]
    console.show_table(Table(columns, rows), "What else could be compared")
    console.line(f"\n{plan.combinations:,} combinations: {describe_total(plan)}")
    console.line(f"run {file}: {command}")
    return 0


def _check_file(file: Path) -> None:
    """Raise `ConfigError` for a file that exists, or that is not YAML."""
    if file.suffix != ".yaml":
        raise ConfigError(f"output={file}: should end with .yaml")
    try:
        exists = file.exists()
    except OSError as error:
        raise ConfigError(f"output={file}: cannot be written ({error.strerror})") from None
    if exists:
        raise ConfigError(f"output={file}: already exists; choose another name with output=FILE.yaml, or remove it")


def _read(own: InitSettings) -> tuple[DocumentFolder, tuple[str, Dataset] | None, Mapping[str, str]]:
    try:
        folder = read_folder(own.path)
        if own.questions is not None:
            return folder, (own.questions, read_questions(own.path, own.questions)), {}
    except DatasetError as error:
        raise DatasetError(str(error).removeprefix("dataset.")) from None
    return folder, *find_questions(own.path)


def _read_retriever(words: Sequence[str]) -> dict[str, Any]:
    """Return the retriever to compare with, and its settings, as they were typed; empty without one."""
    typed = [word for word in words if word.partition("=")[0].partition(".")[0] == "retriever"]
    parsed = OverridesParser.create().parse_overrides(typed)
    return {override.key_or_group: override.value() for override in parsed}


def _describe(folder: DocumentFolder) -> dict[str, Any]:
    return {
        "path": folder.path,
        "documents": len(folder.words),
        "words": {"median": folder.measure(0.5), "ninth_decile": folder.measure(0.9), "total": sum(folder.words)},
        "language": folder.language and folder.language.code,
    }


def _describe_documents(folder: DocumentFolder) -> str:
    code = "unclear" if folder.language is None else folder.language.code
    language = code if folder.analyzer == "plain" else folder.analyzer.capitalize()
    middle, most = folder.measure(0.5), folder.measure(0.9)
    return (
        f"{sum(folder.words):,} words; half of the documents have at most {middle:,}, nine in ten at most {most:,}; "
        f"language: {language}"
    )


def explain_questions(folder: DocumentFolder) -> int:
    """Say how to get questions and judgments; return the exit code."""
    console.document(
        lambda: (
            {**_describe(folder), "reading": folder.reading, "questions": None, "file": None, "combinations": 0}
            | {"seconds": None, "available": [], "missing": {}}
        )
    )
    console.paragraph(folder.reading)
    console.line(_describe_documents(folder))
    path = folder.path
    generate = ["synthesize", format_override("source.path", path), "count=50", "output=generated.jsonl"]
    search = ["-m", "dataset=folder", format_override("dataset.path", path), "dataset.questions=FILE"]
    search += ["dataset.unjudged_queries=keep", "retriever=bm25,dense", "encoder=lsa"]
    for text, words in (
        (
            "Write a CSV file with the columns question and file, a question in each row, then",
            ["init", path, "questions=FILE"],
        ),
        ("You have questions but no answers? Search, then rate the hits", search),
        ("", ["judge", "by=hand", "run=latest"]),
        ("You have no questions? Let rules write some, to find errors in a configuration", generate),
    ):
        if text:
            console.line(f"{text}:")
        console.line(f"  {shlex.join(['python', '-m', 'runner', *words])}")
    return NOTHING_WRITTEN
