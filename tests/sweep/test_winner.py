"""The recommended combination of a sweep leaves as files that run."""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hydra.types import RunMode

import runner
from retrievers.spellings import HIDDEN
from runner.__main__ import main
from runner.config.composing import compose_config, open_loader
from runner.config.objects import ConfigError
from runner.config.values import config_hash, settle
from runner.datasets.given import GivenDataset
from runner.evaluation.experiment import build_experiment
from runner.sweep.compose import Composer
from runner.sweep.winner import SCRIPT, WINNER, build_winner_files

SWEEP = (
    "-m",
    "retriever=bm25",
    "retriever.k1=0.4,2.4",
    "analyzer=english,plain",
    "chunking=tokens",
    "chunking.size=30",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.mark.parametrize("output", [[], ["sweep.output=out"]])
@pytest.mark.usefixtures("tracking")
def test_the_printed_commands_run_and_search_with_what_is_recommended(
    output: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*SWEEP, *output]) == 0
    run, search, blank, advice = capsys.readouterr().out.splitlines()[-4:]
    assert not blank
    mean = advice.partition("(nDCG@10 ")[2][:6]
    assert main([*shlex.split(run.partition(": python -m runner ")[2]), "--json"]) == 0
    result = orjson.loads(capsys.readouterr().out)["result"]
    assert f"{result['means']['nDCG@10']:.4f}" == mean
    config = result["config"]
    assert f" k1={config['retriever']['k1']} {config['choices']['analyzer']} (" in advice
    assert result["dataset"]["chunks"] > result["dataset"]["documents"]
    _, script, question = shlex.split(search.partition(": ")[2])
    monkeypatch.setattr(sys, "argv", [script, "lighthouse at night"])
    runpy.run_path(script, run_name="__main__")
    asked, *hits = capsys.readouterr().out.splitlines()
    assert (asked, question) == ("lighthouse at night", "A question")
    assert len(hits) == 5
    assert hits[0].startswith("1. ") and "#" in hits[0] and "lighthouse" in hits[0].lower()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["retriever=hybrid", "encoder=lsa", "encoder.dimensions=32", "retriever.alpha=0.2", "analyzer=german"],
        ["retriever=hybrid", "retriever@retriever.parts.lexical=sqlite_fts", "retriever.parts.semantic.m=8"],
        ["retriever=hybrid", "+retriever@retriever.parts.words=sqlite_fts", "retriever.weights=[1,2,3]"],
        [
            "retriever=reranked",
            "reranker=late_interaction",
            "reranker.model=m",
            "retriever.base.k1=0.4",
            "metrics.k_values=[1,7]",
        ],
        ["dataset=folder", "dataset.path=a b/ü", "dataset.questions='1.csv'", "chunking=headings", "chunking.size=9"],
        ["retriever=http/opensearch", "retriever.base_url=http://localhost:9", "retriever.parameters.index=docs"],
        ["dataset.name='null'", "retriever.variant=bm25l", "retriever.delta=0.7"],
    ],
)
def test_a_config_is_restored_from_the_file(words: list[str], here: Path) -> None:
    wanted = settle(*compose_config("evaluate", words))
    with open_loader("evaluate", []) as (loader, _):
        config = loader.load_configuration("evaluate", [], run_mode=RunMode.RUN)
        experiment = build_experiment(wanted)
        files = build_winner_files(experiment, Composer(loader, "evaluate", config.hydra.overrides.hydra), "a\nb")
    (here / WINNER).write_text(files[WINNER])
    again = settle(*compose_config("evaluate", [f"experiment={WINNER}", "trust=[secrets]"]))
    assert config_hash(again.public) == config_hash(wanted.public)
    assert len(files[WINNER].splitlines()) < 24
    assert files[SCRIPT].count("\n") == 12


def test_what_a_file_cannot_say_has_no_files(here: Path) -> None:
    experiment = build_experiment(settle(*compose_config("evaluate", [])))
    secret = {**experiment.config, "retriever": {**experiment.config["retriever"], "k1": HIDDEN}}
    less = {**experiment.config, "retriever": {"_target_": "retrievers.lexical.bm25.BM25"}}
    given = GivenDataset(name="mine", content="1" * 64)
    with open_loader("evaluate", []) as (loader, _):
        config = loader.load_configuration("evaluate", [], run_mode=RunMode.RUN)
        composer = Composer(loader, "evaluate", config.hydra.overrides.hydra)
        assert build_winner_files(experiment, composer, "")
        for other in (
            replace(experiment, config=secret),
            replace(experiment, config=less),
            replace(experiment, source=given),
        ):
            assert build_winner_files(other, composer, "") == {}


def test_the_file_of_a_sweep_is_not_one_experiment() -> None:
    Path("two.yaml").write_text("# @package _global_\nsweep: {union: [{retriever: bm25}, {retriever: sqlite_fts}]}\n")
    with pytest.raises(ConfigError, match=r"two\.yaml: describes several combinations; run it with run_sweep"):
        runner.load_experiment("two.yaml")
