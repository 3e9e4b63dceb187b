"""Settings that differ between two configurations, and mixtures of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runner.features.explain.settings_changes import list_settings_changes, mix_settings
from tests.pages.factory import result

ENGLISH = {"_target_": "retrievers.lexical.analyzer.Analyzer", "stemmer": "english", "stopwords": "en"}
PLAIN = {"_target_": "retrievers.lexical.analyzer.Analyzer", "stemmer": None, "stopwords": None}


def configure(k1: float = 1.2, analyzer: Any = ENGLISH, **others: Any) -> dict[str, Any]:
    bm25 = {"_target_": "retrievers.lexical.bm25.BM25", "k1": k1, "analyzer": analyzer}
    name = "plain" if analyzer is PLAIN else "english"
    return {
        "retriever": {"_target_": "retrievers.composed.fusion.Hybrid", "depth": 10, "retrievers": {"bm25": bm25}},
        "analyzer": analyzer,
        "metrics": {"depth": 100},
        "statistics": {"seed": 0},
        "dataset": {"path": "x"},
        "choices": {"retriever": "hybrid", "analyzer": name},
        **others,
    }


def test_only_settings_that_can_change_a_result_count() -> None:
    others = {"metrics": {"depth": 100}, "statistics": {"seed": 1}, "dataset": {"path": "y"}, "grading": {"k": 3}}
    assert list_settings_changes(configure(), configure(**others)) == []


def test_an_analyzer_is_one_setting_wherever_it_is_used() -> None:
    changes = list_settings_changes(configure(), configure(0.9, PLAIN))
    assert [str(change) for change in changes] == [
        "retriever.retrievers.bm25.k1 1.2 to 0.9",
        "analyzer english to plain",
    ]
    (own,) = list_settings_changes(configure(), configure() | {"retriever": configure(analyzer=PLAIN)["retriever"]})[:1]
    assert own.name == "retriever.retrievers.bm25.analyzer.stemmer", "an analyzer of one component only"


def test_another_class_the_chunking_and_the_depth_are_settings() -> None:
    dense = {"_target_": "retrievers.vectors.dense.Dense"}
    other = configure(
        retriever=dense,
        choices={"retriever": "dense"},
        metrics={"depth": 10},
        dataset={"path": "x", "chunking": {"_target_": "runner.datasets.chunking.Tokens", "size": 20}},
    )
    assert [str(change) for change in list_settings_changes(configure(), other)] == [
        "retriever hybrid to dense",
        "chunking unset to Tokens",
        "metrics.depth 100 to 10",
    ]


def test_a_mixture_has_the_wanted_settings_of_the_candidate() -> None:
    baseline, candidate = (replace(result(), config=config) for config in (configure(), configure(0.9, PLAIN)))
    assert mix_settings(baseline, candidate, []) == configure()
    assert mix_settings(baseline, candidate, ["retriever.retrievers.bm25.k1"]) == configure(0.9)
    mixed = mix_settings(baseline, candidate, ["analyzer"])
    assert mixed["retriever"] == configure(analyzer=PLAIN)["retriever"]
    both = [change.name for change in list_settings_changes(baseline.config, candidate.config)]
    assert mix_settings(baseline, candidate, both) is candidate.config
