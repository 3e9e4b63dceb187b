"""The settings of what is measured are checked once, before anything is searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from pydantic import ValidationError

import runner.metrics.settings
from retrievers.choices import list_choices
from runner.comparison.compare import TableStatistics
from runner.metrics.settings import MetricSettings
from runner.statistics.settings import CorrectionName, Statistics, Test

SHIPPED = Path(runner.metrics.settings.__file__).parents[2] / "conf" / "metrics" / "default.yaml"


def test_the_shipped_settings_are_the_defaults() -> None:
    shipped: Any = OmegaConf.to_container(OmegaConf.load(SHIPPED))
    assert shipped.pop("_target_") == f"{MetricSettings.__module__}.{MetricSettings.__qualname__}"
    assert MetricSettings(**shipped) == MetricSettings()


def test_every_measure_gets_every_cutoff_and_the_primary_one_is_among_them() -> None:
    names = [str(measure) for measure in MetricSettings(measures=("P", "Bpref"), k_values=(5, 1)).expanded]
    assert names == ["P@1", "P@5", "Bpref@100", "nDCG@10"]
    assert str(MetricSettings().primary_measure) == "nDCG@10"
    names = [str(measure) for measure in MetricSettings(measures=("RR", "AP"), k_values=(5,)).expanded]
    assert names == ["RR", "RR@5", "AP@100", "AP@5", "nDCG@10"]


@pytest.mark.parametrize(
    ("depth", "names"),
    [
        (100, ["AP@100", "Rprec@100", "Bpref@100", "RR", "AP(rel=2)@100", "infAP"]),
        (999, ["AP@999", "Rprec@999", "Bpref@999", "RR", "AP(rel=2)@999", "infAP"]),
        (1000, ["AP", "Rprec", "Bpref", "RR", "AP(rel=2)", "infAP"]),
    ],
)
def test_measures_of_the_whole_ranking_carry_the_depth_below_a_thousand(depth: int, names: list[str]) -> None:
    measures = ("AP", "Rprec", "Bpref", "RR", "AP(rel=2)", "infAP")
    settings = MetricSettings(measures=measures, k_values=(), primary="map", depth=depth)
    assert [*map(str, settings.expanded)] == names
    assert str(settings.primary_measure) == names[0]


def test_cutoffs_and_thresholds_are_ascending_and_each_once() -> None:
    settings = MetricSettings(k_values=[10, 1, 10], thresholds=[0.5, 0.1])  # type: ignore[arg-type]  # lists, as from YAML
    assert settings.k_values == (1, 10)
    assert settings.thresholds == (0.1, 0.5)
    assert repr(settings) == repr(MetricSettings(k_values=(1, 10), thresholds=(0.1, 0.5)))


@pytest.mark.parametrize("kind", [Statistics, TableStatistics])
def test_the_repr_of_statistics_excludes_how_results_are_compared(kind: type[Statistics]) -> None:
    other = kind(test="t", correction="bh", alpha=0.1, permutations=9, seed=4)
    assert repr(other) == repr(kind())
    assert repr(kind(confidence=0.9)) != repr(kind())  # that of the intervals of means


def _list_choices(kind: object) -> str:
    *others, last = map(repr, list_choices(kind))
    return f"{', '.join(others)} or {last}"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"depth": 50}, "nDCG@100 needs a depth of at least 100, but depth=50; raise depth"),
        ({"primary": "AP@200"}, "AP@200 needs a depth of at least 200, but depth=100"),
        ({"measures": ["ERR@300"]}, "ERR@300 needs a depth of at least 300, but depth=100"),
        ({"measures": ["nDGC"]}, "unknown measure 'nDGC'; did you mean nDCG?"),
        ({"primary": "nDCG"}, "the measure 'nDCG' needs a cutoff; write for example nDCG@10"),
        (
            {"primary": "Judged@10"},
            "systems cannot be ranked by Judged@10, because it describes the judgments; choose another",
        ),
        ({"k_values": [0]}, "greater than or equal to 1"),
        ({"thresholds": [float("nan")]}, "less than or equal to"),
        ({"thresholds": [1e39]}, "less than or equal to"),
        ({"k_value": [1]}, "[Uu]nexpected keyword argument"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MetricSettings(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"confidence": 95}, "less than 1"),
        ({"test": "u"}, f"Input should be {_list_choices(Test)}"),
        ({"correction": "no such correction"}, f"Input should be {_list_choices(CorrectionName)}"),
        ({"resamples": 9}, "[Uu]nexpected keyword argument"),
    ],
)
def test_statistics_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Statistics(**changed)
