"""The reliability of a dataset is explained with the numbers that were measured, and with what to do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from runner.features.inspect.reliability import DifferenceBounds, Reliability
from runner.features.inspect.report.reliability import (
    describe_reliability,
    describe_scope,
    reliability_json,
    separations_table,
)
from runner.statistics.comparison import compare_pairs
from runner.statistics.reliability import (
    RankingStability,
    compute_detectable,
    list_separations,
    measure_discriminative_power,
    measure_information,
    measure_stability,
)
from runner.statistics.settings import Statistics
from tests.statistics.test_reliability import draw


@pytest.fixture(scope="module")
def reliability() -> Reliability:
    """Return the reliability of a dataset of 40 queries for nine systems, one query of which is reversed."""
    scores = draw(9, 40, 0.1)
    scores[:, 7] = 5 * (scores.mean() - scores.mean(axis=1))
    statistics = Statistics(permutations=500)
    counts = np.array([40, 80])
    tests = compare_pairs(scores, statistics)
    pairs = list_separations(scores, tests)
    return Reliability(
        measure="nDCG@10",
        names=[f"s{i}" for i in range(9)],
        means=scores.mean(axis=1).tolist(),
        queries=40,
        units=40,
        statistics=statistics,
        stability=measure_stability(scores),
        power=measure_discriminative_power(scores, tests, statistics=statistics),
        separations=pairs,
        detectable=dict(zip(counts.tolist(), compute_detectable(scores, counts).tolist(), strict=True)),
        information=measure_information(scores),
        ids=[f"q{i}" for i in range(40)],
        bounds=[DifferenceBounds(p.better, p.worse, p.difference, p.difference - 0.3, 0.5, 0.25) for p in pairs],
    )


def test_each_question_has_a_paragraph_with_its_numbers(reliability: Reliability) -> None:
    texts = dict(describe_reliability(reliability))
    stability, power = reliability.stability, reliability.power
    assert stability is not None
    assert f"Kendall's tau of {stability.tau:.2f}" in texts["Stability of the ranking"]
    assert f"{power.significant} of 36 pairs" in texts["Discriminative power"]
    assert f"corrected together, {power.corrected} " in texts["Discriminative power"]
    assert f"{reliability.detectable[80]:.3f} with 80 queries" in texts["Queries needed"]
    needed = math.ceil(40 * (reliability.detectable[40] / 0.01) ** 2)
    assert (
        f"To detect a loss of 0.01, the largest that the default gate allows, takes about {needed:,} queries."
        in (texts["Queries needed"])
    )
    precise = dict(describe_reliability(replace(reliability, detectable={40: 0.009})))["Queries needed"]
    assert "These queries can detect a loss of 0.01, the largest that the default gate allows." in precise
    assert f"{reliability.information.half} of 40 queries" in texts["Informative queries"]
    assert "q7" in texts["Informative queries"]
    assert "25.0% are unjudged" in texts["Unjudged documents"]
    assert "could reverse 8 of 8 neighbours" in texts["Unjudged documents"]
    assert "9 systems (s0, s1" in describe_scope(reliability)


def test_advice_depends_on_the_numbers(reliability: Reliability) -> None:
    stable = replace(reliability, stability=RankingStability(1.0, 0.95, 1.0, 1.0), units=20, queries=20)
    text = dict(describe_reliability(stable))["Stability of the ranking"]
    assert "The ranking is stable" in text
    assert "Do not read the order" not in text
    assert "fewer than 30 queries" in text
    three = replace(reliability, stability=None, units=3, queries=3)
    assert dict(describe_reliability(three))["Stability of the ranking"].startswith(
        "With fewer than 4 queries, nothing"
    )
    two = replace(reliability, stability=None, names=["a", "b"], separations=[], bounds=[], unbounded="few")
    assert dict(describe_reliability(two))["Stability of the ranking"].startswith("With two systems, there is only one")
    assert "Do not read the order" in dict(describe_reliability(reliability))["Stability of the ranking"]
    certain = replace(reliability, bounds=[replace(pair, low=pair.difference) for pair in reliability.bounds])
    assert "no two neighbours" in dict(describe_reliability(certain))["Unjudged documents"]
    few = replace(reliability, names=reliability.names[:4], separations=[], bounds=[], unbounded="few")
    assert "q7" not in dict(describe_reliability(few))["Informative queries"]
    none = replace(reliability, bounds=[], unbounded="no cutoff")
    assert dict(describe_reliability(none))["Unjudged documents"] == "No bounds: no cutoff."


def test_neighbours_are_in_the_table_and_in_the_json(reliability: Reliability) -> None:
    rows, content = separations_table(reliability).texts(), reliability_json(reliability)
    assert len(rows) == len(content["separations"]) == 8
    first = reliability.separations[0]
    assert rows[0][0] == f"s{first.better} - s{first.worse}"
    assert content["separations"][0]["better"] == f"s{first.better}"
    assert content["power"]["pairs"] == 36
    assert [query["query"] for query in content["information"]["queries"]] == list(reliability.ids)
