from __future__ import annotations

from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from runner.config.objects import ConfigError
from runner.config.values import check_values, config_hash, public, resolve_config, settle, with_value, without_secrets
from runner.store.settings import store_settings

CONFIG = OmegaConf.create(
    {
        "analyzer": {"_target_": "A", "stemmer": "english"},
        "encoder": {"_target_": "E", "analyzer": "${analyzer}"},
        "dataset": {"path": "p"},
        "retriever": {"_target_": "R", "k1": 0.9, "analyzer": "${analyzer}"},
        "metrics": {"k_values": [1, 10], "primary": None},
        "tracking": {"uri": "postgresql://me:hush@host/db"},
    }
)


def changed(**changes: Any) -> DictConfig:
    """Return the config with something in it changed."""
    raw = OmegaConf.to_container(CONFIG)
    assert isinstance(raw, dict)
    return OmegaConf.create({**raw, **changes})


CHOICES = {"retriever": "bm25", "analyzer": "english", "encoder": "minilm", "experiment": None, "hydra/sweeper": "grid"}


def test_groups_that_the_retriever_does_not_refer_to_are_left_out() -> None:
    config = settle(CONFIG, CHOICES).config
    assert "encoder" not in config
    assert config["choices"] == {"retriever": "bm25", "analyzer": "english"}
    assert config["retriever"]["analyzer"] == {"_target_": "A", "stemmer": "english"}


def test_groups_that_another_group_refers_to_stay_in_the_config() -> None:
    dense = changed(retriever={"encoder": "${encoder}"})
    assert {"analyzer", "encoder"} <= settle(dense, CHOICES).config.keys()


def test_parameters_name_every_value_once() -> None:
    assert settle(CONFIG, CHOICES).parameters == {
        "retriever": "bm25",
        "analyzer": "english",
        "analyzer.stemmer": "english",
        "dataset.path": "p",
        "retriever.k1": "0.9",
        "metrics.k_values": "[1, 10]",
        "metrics.primary": "null",
    }


def test_a_missing_required_value_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.path: is required; set dataset\.path=VALUE"):
        settle(changed(dataset={"path": "???"}), {})


@pytest.mark.parametrize("key", ["dataset", "retriever", "metrics", "tracking"])
def test_no_evaluation_goes_without_its_parts(key: str) -> None:
    for config in (changed(**{key: None}), OmegaConf.masked_copy(CONFIG, [k for k in CONFIG if k != key])):
        with pytest.raises(ConfigError, match=f"^{key}: is required"):
            settle(config, CHOICES)


def test_what_refers_to_nothing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.path: Interpolation key 'nowhere' not found$"):
        settle(changed(dataset={"path": "${nowhere}"}), CHOICES)


@pytest.mark.parametrize(
    ("plugins", "message"),
    [("mine", r"^plugins=\"mine\": .* plugins=\[mine\]$"), (None, "^plugins=null"), ([""], "list"), ([1], "list")],
)
def test_plugins_are_a_list_of_modules(plugins: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settle(changed(plugins=plugins), CHOICES)


def test_values_from_the_environment_are_recorded_as_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "s3cret")
    monkeypatch.setenv("K1", "1.25")
    config = changed(
        dataset={"path": "x/${oc.env:HUSH}", "names": ["a", "${oc.env:HUSH}"], "copy": "see ${dataset.path}"},
        retriever={"k1": "${oc.decode:${oc.env:K1}}"},
        tracking={"uri": "http://host/${.hush}", "hush": "${oc.env:HUSH}"},
    )
    settled = settle(config, CHOICES)
    assert settled.config["dataset"]["copy"] == "see x/s3cret"
    assert settled.config["retriever"]["k1"] == 1.25
    path = "x/${oc.env:HUSH}"
    assert settled.public["dataset"] == {"path": path, "names": ["a", "${oc.env:HUSH}"], "copy": f"see {path}"}
    assert settled.parameters["dataset.copy"] == f"see {path}"
    assert settled.parameters["retriever.k1"] == "${oc.decode:${oc.env:K1}}"
    assert "s3cret" not in str(settled.public) + str(settled.parameters)


def test_public_variables_are_recorded_as_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "s3cret")
    monkeypatch.setenv("ROOT", "/data")
    config = changed(
        dataset={"path": "${oc.env:ROOT}/x", "both": "${oc.env:ROOT}/${oc.env:HUSH}"}, public_environment=["ROOT"]
    )
    settled = settle(config, CHOICES)
    assert settled.public["dataset"] == {"path": "/data/x", "both": "/data/${oc.env:HUSH}"}
    listed = config_hash(settled.public)
    monkeypatch.setenv("ROOT", "/other")
    assert config_hash(settle(config, CHOICES).public) != listed


def test_public_variables_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOT", "/data")
    config = changed(dataset={"path": "${oc.env:ROOT}"}, public_environment="ROOT")
    with pytest.raises(ConfigError, match=r"^public_environment=\"ROOT\": .* public_environment=\[ROOT\]$"):
        settle(config, CHOICES)


@pytest.mark.parametrize(
    "key",
    ["Authorization", "x-api-key", "openaiApiKey", "OPENAI_API_KEY", "aws_secret_access_key", "db_password", "token"],
)
def test_keys_that_name_a_secret_are_known_in_any_spelling(key: str) -> None:
    assert public({"llm": {key: "hush"}, key: {"a": "hush"}}) == {"llm": {key: "***"}, key: "***"}


@pytest.mark.parametrize("key", ["sort_key", "k", "keys", "k1", "max_tokens", "tokenizer", "monkey", "qrel_query"])
def test_other_keys_stay_public(key: str) -> None:
    assert public({key: "kept"}) == {key: "kept"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hush@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:hu/sh@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:hu@sh@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?user=u&password=hush&a=b", "postgresql://host/db?user=u&password=***&a=b"),
        ("at https://hush@host/x, as said", "at https://***@host/x, as said"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("http://host:5000/models/x@best", "http://host:5000/models/x@best"),
        ("llm.api_key=hush: no such setting", "llm.api_key=*** no such setting"),
        ("password='hush' host=h", "password='***' host=h"),
        ("retriever.k1=0.9 a@b.c", "retriever.k1=0.9 a@b.c"),
    ],
)
def test_addresses_are_shown_without_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ({"path": ""}, r"^store\.path=: "),
        ({"path": None}, r"^store\.path=null: "),
        ({}, r"^store\.path: is required"),
        (None, r"^store\.path: is required; set store\.path=VALUE"),
        ("kept", r'^store="kept": a group of settings, not a value; set store\.path'),
        ({"path": "x", "pth": 1}, r"^store\.pth: no such setting; did you mean store\.path\?"),
    ],
)
def test_a_store_has_a_path(store: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        store_settings({"store": store})
    assert store_settings({"store": {"path": "a/b"}}).path == "a/b"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("retriever.k1", 1.2),
        ("dataset.path", "http://me:hush@host/x"),
        ("metrics.primary", "nDCG@3"),
        ("metrics.k_values", [1, ["a"]]),
        ("tracking.uri", "elsewhere"),
        ("encoder._target_", "F"),
        ("dataset.token", None),
        ("llm.api_key", "other"),
        ("llm.credentials.name", "other"),
    ],
)
def test_another_value_changes_what_settling_would(path: str, value: object) -> None:
    llm = {"api_key": "hush", "credentials": {"name": "x"}}
    config = changed(llm=llm, dataset={"path": "p", "token": "t"}, encoder={"_target_": "E"})
    before = settle(config, CHOICES)
    sooner = with_value(before, path, value)
    OmegaConf.update(config, path, value)
    assert repr(sooner) == repr(settle(config, CHOICES))
    assert sooner.config["choices"] is before.config["choices"]


def test_the_preset_is_recorded_but_does_not_decide() -> None:
    settled, plain = settle(CONFIG, CHOICES | {"experiment": "tour"}), settle(CONFIG, CHOICES)
    assert settled.config["choices"]["experiment"] == settled.parameters["experiment"] == "tour"
    assert config_hash(settled.public) == config_hash(plain.public)
    assert config_hash(settled.public) != config_hash(settle(CONFIG, CHOICES | {"retriever": "x"}).public)


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
    with pytest.raises(ConfigError, match=r"^experiment=mine: the first line of the file must be # @package _global_"):
        settle(lost, {"experiment": "mine"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\0b", r"^dataset\.path: contains the character U\+0000, which no text can have; remove it$"),
        ("a\ud800", r"^dataset\.path: contains the character U\+D800"),
        (2**63, r"^dataset\.path: the number has more than 64 bits; set a smaller one$"),
        (-(2**63) - 1, r"^dataset\.path: the number has more than 64 bits"),
        (int("9" * 4000), r"^dataset\.path: the number has more than 64 bits"),
        ([1, {"a": "\0"}], r"^dataset\.path\.1\.a: contains the character U\+0000"),
        ({"\0": 1}, r"^dataset\.path: contains the character U\+0000"),
    ],
)
def test_a_value_that_no_setting_can_have_is_refused_at_its_place(value: object, message: str) -> None:
    config = OmegaConf.create({"dataset": {"path": value}})
    with pytest.raises(ConfigError, match=message):
        resolve_config(config)
    check_values({"dataset": {"path": [2**63 - 1, -(2**63), True, None, 0.5, "\t\n\x1b", {"a": "b"}]}})
