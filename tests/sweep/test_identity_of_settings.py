"""The identity of a combination changes with what can change its result, and not with how results are compared."""

from __future__ import annotations

from typing import Any

import pytest

from retrievers.lexical.bm25 import BM25
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.statistics.settings import Statistics
from runner.sweep.identity import combination_id

DATASET = Dataset.of({"a": "red boat"}, {"q": "red"}, {"q": {"a": 1}})
MEASURES = MetricSettings()


def identify(metrics: MetricSettings = MEASURES, **statistics: Any) -> str:
    source = GivenDataset(name="x", content=DATASET.fingerprint)
    experiment = Experiment("x", "bm25", BM25(), source, metrics, {}, {}, statistics=Statistics(**statistics))
    return combination_id(experiment, DATASET)


@pytest.mark.parametrize(
    "changed", [{"test": "t"}, {"correction": "none"}, {"alpha": 0.5}, {"permutations": 1}, {"seed": 7}], ids=str
)
def test_a_setting_that_only_compares_results_does_not_change_the_identity(changed: dict[str, Any]) -> None:
    assert identify(**changed) == identify()


def test_the_confidence_of_intervals_and_the_measures_change_the_identity() -> None:
    others = [
        identify(confidence=0.5),
        identify(MetricSettings(depth=200)),
        identify(MetricSettings(thresholds=(1.0,))),
    ]
    assert len({identify(), *others}) == 4
