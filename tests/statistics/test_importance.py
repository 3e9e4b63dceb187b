"""The importance of settings, against sums of effects whose shares are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from runner.statistics.importance import Importance, estimate_importance


def grid(effect: np.ndarray, noise: float = 0.0, queries: int = 40) -> tuple[np.ndarray, dict[str, list[object]]]:
    """Return scores of all pairs of values of `a` and `b`, whose means are an effect, and the settings."""
    pairs = list(product(range(effect.shape[0]), range(effect.shape[1])))
    rng = np.random.default_rng(1)
    means = np.array([effect[pair] for pair in pairs])
    scores = means[:, None] + rng.normal(0, 0.1, queries) + noise * rng.normal(0, 1, (len(pairs), queries))
    return scores, {"a": [f"a{i}" for i, _ in pairs], "b": [j for _, j in pairs], "same": [1 for _ in pairs]}


def of(effect: np.ndarray, **options: float) -> dict[tuple[str, ...], Importance]:
    scores, settings = grid(effect, **options)
    found = estimate_importance(np.repeat(scores, 2, axis=0), double(settings), np.random.default_rng(0))
    return {importance.settings: importance for importance in found}


def double(settings: dict[str, list[object]]) -> dict[str, list[object]]:
    return {name: [value for value in column for _ in range(2)] for name, column in settings.items()}


def test_the_shares_of_a_sum_of_effects_are_their_shares_of_the_variance() -> None:
    a, b = np.array([0.0, 0.1, 0.5]), np.array([0.0, 0.2, 0.3, 0.3])
    shares = of(a[:, None] + b)
    assert set(shares) == {("a",), ("b",), ("a", "b")}, "a setting with one value explains nothing"
    assert shares["a",].share == pytest.approx(a.var() / (a.var() + b.var()))
    assert shares["b",].share == pytest.approx(b.var() / (a.var() + b.var()))
    assert shares["a", "b"].share == pytest.approx(0, abs=1e-9)


def test_what_only_a_pair_explains_is_its_interaction() -> None:
    shares = of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert shares["a",].share == pytest.approx(0, abs=1e-9)
    assert shares["a", "b"].share == pytest.approx(1)


def test_the_interval_is_wider_the_fewer_the_queries() -> None:
    effect = np.array([0.0, 0.05])[:, None] + np.array([0.0, 0.1])
    few, many = (of(effect, noise=0.2, queries=n)["b",] for n in (20, 2_000))
    assert few.low < few.share < few.high
    assert many.high - many.low < 0.5 * (few.high - few.low)
    assert many.low < 0.8 < many.high, "0.1 against 0.05 is a share of 0.8"


def test_a_pair_without_interaction_has_an_interval_from_0_and_one_with_it_has_not() -> None:
    sum_of_effects = np.array([0.0, 0.05, 0.1])[:, None] + np.array([0.0, 0.1])
    alone = of(sum_of_effects, noise=0.2)["a", "b"]
    assert alone.low == 0 < alone.share < alone.high < 0.4
    crossed = of(sum_of_effects + np.array([[0.2, 0.0], [0.0, 0.0], [0.0, 0.2]]), noise=0.2)["a", "b"]
    assert 0.1 < crossed.low < crossed.share < crossed.high


def test_the_interaction_in_a_part_of_a_grid_is_what_no_sum_of_effects_explains() -> None:
    a, b = [0, 0, 0, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 0, 1, 2]  # without (1, 2)
    means = np.array([0.1 * i + 0.3 * j for i, j in zip(a, b, strict=True)])
    settings = {"a": a * 2, "b": b * 2}
    rng = np.random.default_rng(0)
    shares = {i.settings: i.share for i in estimate_importance(np.tile(means, 2)[:, None], settings, rng)}
    assert shares["a", "b"] == pytest.approx(0, abs=1e-12), "although the shares of the settings overlap"
    by_value = np.array([means[np.array(a) == i].mean() for i in a])
    assert shares["a",] == pytest.approx(by_value.var() / means.var())


def test_the_variants_of_a_query_count_once() -> None:
    scores, settings = grid(np.array([[0.0, 0.1], [0.05, 0.15]]), noise=0.2)
    alone = estimate_importance(scores, settings, np.random.default_rng(0))
    times = np.repeat(np.arange(40), 5)
    variants = estimate_importance(scores[:, times], settings, np.random.default_rng(0), times)
    assert [round(i.low, 9) for i in variants] == [round(i.low, 9) for i in alone]
    assert [i.share for i in variants] == pytest.approx([i.share for i in alone])


def test_equal_systems_and_queries_without_a_value_are_left_out() -> None:
    assert estimate_importance(np.ones((6, 5)), {"a": list(range(6))}, np.random.default_rng(0)) == []
    assert estimate_importance(np.full((6, 5), np.nan), {"a": list(range(6))}, np.random.default_rng(0)) == []


@pytest.mark.parametrize("missing", [lambda: None, lambda: float("nan")])
def test_a_setting_that_some_systems_lack_is_in_no_pair(missing: Callable[[], object]) -> None:
    k1 = [0.5, 0.9, 0.5, 0.9, missing(), missing()]
    settings = {"retriever": ["bm25"] * 4 + ["dense"] * 2, "k1": k1, "stemmer": ["yes", "yes", "no", "no", "yes", "no"]}
    means = np.array([0.1, 0.2, 0.1, 0.2, 0.4, 0.4])
    shares = {i.settings: i.share for i in estimate_importance(means[:, None], settings, np.random.default_rng(0))}
    assert shares["k1",] == pytest.approx(1), "all systems without the setting have one value"
    assert [pair for pair in shares if len(pair) == 2] == [("retriever", "stemmer")]
