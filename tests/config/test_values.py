from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from runner.config.objects import ConfigError
from runner.config.values import config_hash, public, settle

CONFIG = OmegaConf.create(
    {
        "analyzer": {"_target_": "A", "stemmer": "english"},
        "encoder": {"_target_": "E", "analyzer": "${analyzer}"},
        "retriever": {"_target_": "R", "k1": 0.9, "analyzer": "${analyzer}"},
        "metrics": {"k_values": [1, 10], "primary": None},
        "tracking": {"uri": "postgresql://me:hush@host/db"},
    }
)
CHOICES = {"retriever": "bm25", "analyzer": "english", "encoder": "minilm", "experiment": None, "hydra/sweeper": "grid"}


def test_groups_that_the_retriever_does_not_refer_to_are_left_out() -> None:
    config = settle(CONFIG, CHOICES).config
    assert "encoder" not in config
    assert config["choices"] == {"retriever": "bm25", "analyzer": "english"}
    assert config["retriever"]["analyzer"] == {"_target_": "A", "stemmer": "english"}


def test_groups_that_another_one_refers_to_are_kept() -> None:
    dense = OmegaConf.merge(CONFIG, {"retriever": {"analyzer": None, "encoder": "${encoder}"}})
    assert {"analyzer", "encoder"} <= settle(dense, CHOICES).config.keys()  # type: ignore[arg-type]


def test_parameters_name_every_value_once() -> None:
    assert settle(CONFIG, CHOICES).parameters == {
        "retriever": "bm25",
        "analyzer": "english",
        "analyzer.stemmer": "english",
        "retriever.k1": "0.9",
        "metrics.k_values": "[1, 10]",
        "metrics.primary": "null",
    }


def test_what_is_missing_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.path: is required; set it with dataset\.path="):
        settle(OmegaConf.create({"dataset": {"path": "???"}}), {})


def test_secrets_are_hidden() -> None:
    config = {"llm": {"api_key": "hush", "key": "", "tokens": 5, "uri": "http://me:hush@host/x:y@z"}, "monkey": "kept"}
    shown = public(config)
    assert shown == {
        "llm": {"api_key": "***", "key": "", "tokens": 5, "uri": "http://me:***@host/x:y@z"},
        "monkey": "kept",
    }


def test_the_hash_is_of_what_decides_the_result() -> None:
    config = settle(CONFIG, CHOICES).config
    assert config_hash(config) == config_hash(config | {"tracking": {"uri": "elsewhere"}})
    assert config_hash(config) != config_hash(config | {"metrics": {"k_values": [1]}})


def test_an_experiment_that_landed_in_a_node_of_its_own_is_refused() -> None:
    lost = OmegaConf.create({"experiment": {"hydra": {"mode": "MULTIRUN"}}})
    with pytest.raises(ConfigError, match=r"^experiment=mine: the first line of its file must be # @package _global_"):
        settle(lost, {"experiment": "mine"})
