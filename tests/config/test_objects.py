from __future__ import annotations

import json

import pytest

from retrievers.lexical.bm25 import BM25
from runner.config.objects import ConfigError, build

BM25_NODE = {
    "_target_": "retrievers.lexical.bm25.BM25",
    "k1": 1.2,
    "analyzer": {"_target_": "retrievers.lexical.analyzer.Analyzer"},
}


def test_a_node_becomes_its_object_inside_out() -> None:
    assert build(BM25_NODE, "retriever") == BM25(k1=1.2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k2": 1}, r"^retriever\.k2: no such setting; did you mean retriever\.k1\?"),
        ({"k1": -1}, r"^retriever\.k1=-1: should be greater than or equal to 0$"),
        ({"k1": True}, r"^retriever\.k1=true: should be a number$"),
        ({"k1": "abc"}, r"^retriever\.k1=abc: should be a valid number"),
        ({"variant": "bm26"}, r"^retriever\.variant=bm26: should be 'lucene', 'robertson'"),
        (
            {"analyzer": {"_target_": "retrievers.lexical.analyzer.Analyzer", "stemmer": "x"}},
            r"^retriever\.analyzer\.stemmer=x: no",
        ),
        ({"_target_": "os.system"}, r"a config can only create classes of this program"),
        ({"_target_": "retrieversx.evil.Thing"}, r"a config can only create classes of this program"),
        ({"_target_": "retrievers.bm26.BM25"}, r"cannot be imported"),
        ({"_target_": "retrievers.base.rank"}, r"should be a class"),
        ({"_target_": "BM25"}, r"a config can only create classes of this program"),
    ],
)
def test_a_config_error_is_reported_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        build(BM25_NODE | changes, "retriever")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("typed", [2024, 1.5, True])
def test_text_that_reads_as_something_else_is_said_how_to_write(typed: float) -> None:
    shown = json.dumps(typed)
    with pytest.raises(ConfigError) as caught:
        build({"_target_": "runner.datasets.beir.Beir", "path": typed}, "dataset")
    assert str(caught.value) == (f"dataset.path={shown}: should be text; write 'dataset.path=\"{shown}\"'")
    with pytest.raises(ConfigError, match=r"^dataset\.path=null: cannot be null; set dataset\.path=VALUE$"):
        build({"_target_": "runner.datasets.beir.Beir", "path": None}, "dataset")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k_values": 10}, r"^metrics\.k_values=10: should be a list, such as 'metrics\.k_values=\[10\]'$"),
        ({"depth": None}, r"^metrics\.depth=null: cannot be null; set metrics\.depth=VALUE$"),
        ({"measures": ["nDCG"], "primary": "foo"}, r"^metrics: unknown measure 'foo'"),
    ],
)
def test_values_are_shown_as_yaml_has_them(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build({"_target_": "runner.metrics.settings.MetricSettings"} | changes, "metrics")


def test_an_object_for_an_unknown_setting_is_never_created(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr("runner.config.objects._call", lambda target, values, path: made.append(path))
    with pytest.raises(ConfigError, match=r"^retriever\.extra: no such setting"):
        build(BM25_NODE | {"extra": {"_target_": "retrievers.lexical.bm25.BM25"}}, "retriever")
    assert made == []


def test_a_class_that_a_module_only_imported_is_not_its_own() -> None:
    with pytest.raises(
        ConfigError, match=r"_target_=runner\.store\.disk\.Path: a config can only .* 'plugins=\[pathlib\]'"
    ):
        build({"_target_": "runner.store.disk.Path"}, "x")


def test_a_missing_required_setting_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.path: is required"):
        build({"_target_": "runner.datasets.beir.Beir"}, "dataset")


def test_modules_of_a_named_plugin_are_allowed() -> None:
    node = {"_target_": "fractions.Fraction", "numerator": 3}
    with pytest.raises(ConfigError, match=r"plugins=\[fractions\]"):
        build(node, "x")
    assert build(node, "x", plugins=["fractions"]) == 3
