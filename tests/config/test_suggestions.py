"""A suggested correction works when it is pasted: each is read out of the message and run."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from mlflow.tracking import MlflowClient
from omegaconf import DictConfig

from runner.__main__ import _take_verb, main
from runner.commands import list_commands
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config, settle
from runner.datasets.settings import build_dataset
from runner.evaluation.experiment import build_experiment
from runner.store.settings import store_settings
from runner.sweep.settings import SweepSettings
from runner.tracking.settings import Tracking
from tests.features.mine.worlds import write_world

PLACEHOLDERS = {"dataset.path": "x", "metrics.depth": "200"}
"""What stands for VALUE, by setting."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def accept(cfg: DictConfig) -> int:
    """Build all that a command configures, and do nothing with it."""
    config = resolve_config(cfg)
    store_settings(config)
    if "sweep" in config:
        build_settings(SweepSettings, config["sweep"], "sweep")
        build_experiment(settle(cfg, HydraConfig.get().runtime.choices))
    for key, node in config.items():
        if key == "dataset":
            build_dataset(node, config["plugins"])
        else:
            build(node, key, config["plugins"])
    return 0


def key_of(word: str) -> str:
    return word.lstrip("+-").partition("=")[0]


def corrections(words: list[str], message: str) -> Iterator[list[str]]:
    """Yield the commands that a message suggests in place of this one."""
    if "add -m " in message:
        yield ["-m", *words]
    for override in re.findall(
        r"(?:write|such as|as|quotes:|of its own:|dashes:|set) ('[^']+=.*?'(?=[\s;)]|$)|\S+=(?!VALUE)[^\s;]+)", message
    ):
        (typed,) = shlex.split(override)
        yield replaced(words, typed)
    for group in re.findall(r"choose (\w+=\w+)", message):
        yield [*words, group]
    for key in re.findall(r"set ([\w.]+)(?:=VALUE|$)", message):
        yield replaced(words, f"{key}={PLACEHOLDERS.get(key, 'kept')}")
    for meant in re.findall(r"did you mean ([^?]+)\?", message):
        wrong = key_of(message.partition(": ")[0])
        for word in meant.split(" or "):
            if "=" in word:
                yield replaced(words, word)
            else:
                yield [re.sub(rf"^[+~]*{re.escape(wrong)}(?==|$)", word, typed) for typed in words]
    for group, first in re.findall(r"^(\w+)=\w+: no such choice; choose (\w+)", message):
        yield replaced(words, f"{group}={first}")


def replaced(words: list[str], typed: str) -> list[str]:
    """Return a command with another word for a setting, at the end if it has none yet."""
    others = [word for word in words if key_of(word) != key_of(typed)]
    return [*others, typed]


@pytest.mark.parametrize(
    "command",
    [
        "retriever.k1=0.6,0.9",
        "retriever=hybrid retriever.parts.lexical.k1=0.6,0.9",
        "metrics.k_values=1,5",
        "sweep.zip=retriever.k1,retriever.b",
        "mine source=package source.package=json output=x source.exclude=a,b",
        "metrics.k_values=10",
        "dataset=beir dataset.path=2024",
        "metrics.depth=null",
        "dataset=beir dataset.path=null",
        "dataset=beir",
        "retriever.k2=1",
        "+retriever.k2=1",
        "retriever=hybrid retriever.parts.lexcal.k1=2",
        "retriever=hybrid retriever.parts.lexical.k2=2",
        "retriever=hybrid +retriever.parts.lexical.k2=2",
        "k1=2",
        "metric.depth=200",
        "sweep.fail_fst=true",
        "dataset.max_querys=5",
        "analyzer.stemer=english",
        "tracking.ur=sqlite:///x.db",
        "serve prot=8001",
        "retreiver=bm25",
        "retriever=bm52",
        "analyzer=germn",
        "analyzer=null",
        "compare gat=none",
        "chunking.size=9",
        "retriever.alpha=0.3",
        "retriever.parts.lexical.k1=2",
        "-m chunking=headings,tokens chunking.size=9",
        "retriever=hybrid retriever@retriever.parts.words=bm25",
        "compare gate.floors.mrr=0.8",
        "compare 'gate.floors={mrr: 0.8}'",
        "compare metrics=default",
        "--retriever=bm25",
        "evaluat retriever=bm25",
        "export output=~/x",
        "plugins=json",
    ],
)
def test_a_suggested_correction_is_accepted(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(command)
    for verb in {"evaluate", _take_verb([*words]).replace("evaluat", "evaluate").replace("evaluatee", "evaluate")}:
        monkeypatch.setattr(importlib.import_module(list_commands()[verb].module), "main", accept)
    assert main(words) == 2
    message = capsys.readouterr().err.strip().removeprefix("error: ")
    suggested = list(corrections(words, message))
    assert suggested, message
    for other in suggested:
        sweeper = ["hydra/sweeper=basic"] if "-m" in other else []
        assert main([*other, *sweeper]) == 0, (message, other, capsys.readouterr().err)


def test_the_check_of_a_search_service_can_be_turned_off_as_its_error_suggests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("runner.commands.evaluate"), "main", accept)
    assert (
        main(["retriever=http/runner", "retriever.base_url=http://127.0.0.1:1", "retriever.expected_items=null"]) == 0
    )


def printed(out: str, start: str = "compare ") -> list[str]:
    """Return the words of the printed command that begins so behind `python -m runner`."""
    (command,) = re.findall(rf"python -m runner ({start}.+)$", out, re.MULTILINE)
    return shlex.split(command)


def test_printed_commands_run_with_the_settings_of_the_command(
    tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["tracking.experiment=two words", "store.path=kept", "tracking.background=false"]
    assert main(["-m", "retriever.k1=0.6,1.8", "dataset.max_queries=20", *where]) == 0
    compare = printed(capsys.readouterr().out)
    assert main([*compare, "gate=none"]) == 0
    run = next(word for word in compare if word.startswith("candidate=")).partition("=")[2]
    capsys.readouterr()
    assert main(["promote", f"run={run}", "name=main", "baselines=own folder", *where[:1]]) == 0
    compare_with = printed(capsys.readouterr().out)
    assert main([*(word.replace("=RUN", f"={run}") for word in compare_with), "gate=default"]) == 0


WORLD = ["source=definitions", "source.definitions=suites", "source.targets=targets.yaml"]
ANSWERS = "+source.kinds.api._target_=runner.features.mine.extraction.NamedAnswers"


@pytest.mark.parametrize(
    "command",
    [
        ["synthesize", "count=5", "encoder.dimensions=8", "generator.types=[keyword]", "output=own folder/made.jsonl"],
        ["mine", *WORLD, ANSWERS, "output=own folder/mined.jsonl"],
    ],
)
def test_a_dataset_is_inspected_and_evaluated_by_the_commands_that_are_printed(
    command: list[str], tracking: Tracking, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_world(tmp_path)
    assert main([*command, "tracking.experiment=two words", "tracking.background=false"]) == 0
    out = capsys.readouterr().out
    cheap = ["~retriever@retrievers.dense", "~retriever@retrievers.hybrid"]
    assert main([*printed(out, "inspect "), *cheap]) == 0
    assert main([*printed(out, "dataset="), "tracking.background=false"]) == 0
    run = re.findall(r"^run: (\w+)", capsys.readouterr().out, re.MULTILINE)[-1]
    client = MlflowClient(tracking.uri)
    experiment = client.get_experiment(client.get_run(run).info.experiment_id)
    assert experiment.name == "two words"


@pytest.mark.parametrize("chunking", ["words", 7, None, ["words"]])
def test_a_chunking_that_is_not_an_object_is_refused(chunking: object) -> None:
    source = {"_target_": "runner.datasets.beir.Beir", "path": "data"}
    with pytest.raises(ConfigError, match=r"^dataset\.chunking: expected a Chunking, found (str|int|NoneType|list)$"):
        build_dataset({**source, "chunking": chunking})
