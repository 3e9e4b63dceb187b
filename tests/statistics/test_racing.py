from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from runner.statistics.racing import BETS, NOISE, ErrorBudget, Race, estimate_saving, run_race


def compute_capital(own: list[float], rival: list[float], seen: int, margin: float = 0.0, start: int = 0) -> float:
    """Return the capital of a test against one rival by the formula of the documentation; bets begin at `start`."""
    capitals = np.ones(len(BETS))
    lead = 0.0
    for i in range(seen):
        bound = -lead / (len(own) - i)
        gain = rival[i] - own[i] + margin
        capitals *= 1 + BETS * (gain - bound) / (1 - margin + bound) if i >= start else 1
        lead += gain
    return float(capitals.mean())


def test_the_capital_is_that_of_the_formula_for_any_size_of_a_block() -> None:
    scores = np.random.default_rng(0).random((2, 40))
    race = Race(2, 40, alpha=1e-9)
    for start, end in ((0, 12), (12, 13), (13, 30)):
        race.observe(scores[:, start:end])
    expected = [compute_capital(scores[own].tolist(), scores[1 - own].tolist(), 30) for own in (0, 1)]
    assert race.capital.tolist() == pytest.approx(expected, rel=1e-12)


def test_with_a_margin_half_of_the_gamblers_bet_on_the_champion() -> None:
    scores = np.random.default_rng(0).random((2, 40)) * [[1], [0.9]]
    race = Race(2, 40, alpha=1e-9, margin=0.05)
    race.observe(scores[:, :10])  # the first block decides who the champion is
    race.observe(scores[:, 10:30])
    own, champion = scores[1].tolist(), scores[0].tolist()
    halves = compute_capital(own, champion, 30), compute_capital(own, champion, 30, 0.05, 10)
    assert race.capital[1] == pytest.approx(np.mean(halves), rel=1e-12)


def test_with_a_margin_near_ties_are_dropped_and_the_best_survivor_is_within_it() -> None:
    rng = np.random.default_rng(2)
    scores = np.clip(rng.beta(0.6, 0.6, 300) + rng.normal(0, 0.05, (6, 300)), 0, 1)
    means = scores.mean(axis=1)
    shares = []
    for _ in range(20):
        order = rng.permutation(300)
        whole, race = run_race(scores, order, 20), run_race(scores, order, 20, margin=0.05)
        assert means[race.survivors].max() >= means.max() - 0.05
        shares.append(race.evaluations / whole.evaluations)
    assert np.mean(shares) < 0.7


@pytest.mark.parametrize("rivals", [[[0.5, 0.25, 0.75, 1, 0, 0.5]], [[1, 1, 0, 0, 0.5, 0.5], [0, 0, 1, 1, 0.5, 0.5]]])
def test_over_all_orders_the_test_of_a_best_configuration_gains_nothing(rivals: list[list[float]]) -> None:
    """The capital is a martingale if all means are equal, for any number of rivals."""
    scores = np.array([[0.25, 0.5, 1, 0.75, 0.5, 0.0], *rivals])
    assert np.ptp(scores.mean(axis=1)) == 0
    capitals = []
    for order in permutations(range(6)):
        race = Race(len(scores), 6)
        race.observe(scores[:, order[:5]])
        capitals.append(race.capital)
    assert np.mean(capitals, axis=0) == pytest.approx(1, abs=1e-9)


def test_racing_drops_the_best_configuration_at_most_at_the_error_rate() -> None:
    scores = np.array([[0.0, 1, 1, 0, 1, 0], [1, 0, 1, 0.8, 0, 0], [0, 1, 0, 0, 0.9, 1]])
    best = int(np.argmax(scores.mean(axis=1)))
    for alpha in (0.5, 0.3):
        lost = [best not in run_race(scores, order, 1, alpha).survivors for order in permutations(range(6))]
        assert 0 < np.mean(lost) <= alpha


def test_a_configuration_that_cannot_catch_up_is_dropped_surely() -> None:
    race = Race(2, 10, alpha=1e-9)
    drops = race.observe(np.array([[1.0] * 6, [0.0] * 6]))
    assert [(drop.configuration, drop.queries, drop.leader, drop.p) for drop in drops] == [(1, 6, 0, 0.0)]
    assert (drops[0].mean, drops[0].leader_mean) == (0, 1)
    assert race.evaluations == 12


def test_the_last_block_drops_nothing_because_all_queries_are_searched() -> None:
    scores = np.array([[1.0] * 8, [0.0] * 8])
    assert run_race(scores, range(8), 8).drops == []


def test_a_race_keeps_the_winner_and_saves_most_evaluations() -> None:
    rng = np.random.default_rng(1)
    scores = np.clip(rng.beta(0.6, 0.6, 300) + rng.normal(0, 0.1, (8, 300)) + np.linspace(0, 0.3, 8)[:, None], 0, 1)
    races = [run_race(scores, rng.permutation(300), 20) for _ in range(20)]
    assert all(race.survivors.tolist() == [7] for race in races)
    assert np.mean([race.evaluations for race in races]) / scores.size < 0.4


def test_a_survivor_with_a_missing_value_is_left_out_of_the_comparisons() -> None:
    race = Race(3, 100)
    race.exempt(0)
    assert race.racing.tolist() == [1, 2]
    race.observe(np.array([[1.0] * 40, [0.0] * 40]))
    assert race.survivors.tolist() == [0, 1]


def test_the_races_of_a_search_share_the_error_rate() -> None:
    budget = ErrorBudget(0.05)
    assert budget.share(40) == pytest.approx(0.05 / 40)
    assert budget.charge(budget.share(40), 0.3, best=0.4) == 0, "complete and worse: no error was possible"
    used = [budget.charge(budget.share(39 - i), None if i % 2 else 0.5, best=0.4) for i in range(39)]
    assert used == pytest.approx([0.05 / 39] * 39)
    assert budget.share(10) == pytest.approx(0, abs=1e-12)


def test_the_estimated_saving_is_that_of_races_on_other_scores_of_the_same_kind() -> None:
    rng = np.random.default_rng(7)
    shares = []
    for _ in range(8):
        scores = rng.beta(0.6, 0.6, 400) + rng.normal(0, NOISE, (10, 400)) + rng.normal(0, 0.05, (10, 1))
        race = run_race(np.clip(scores, 0, 1), rng.permutation(400), 20)
        shares.append(1 - race.evaluations / scores.size)
    estimated = estimate_saving(0.05, 10, 400, 20, 0.05)
    assert estimated == pytest.approx(np.mean(shares), abs=0.1)
    assert estimate_saving(0.0, 10, 400, 20, 0.05) < 0.2 < estimated - 0.3, "races of equal ones save little"


def test_values_outside_the_interval_are_refused() -> None:
    for value in (1.5, -0.1, np.nan):
        with pytest.raises(ValueError, match="values from 0 to 1"):
            Race(2, 10).observe(np.array([[value], [0.5]]))
    with pytest.raises(ValueError, match="at most 10 columns"):
        Race(2, 10).observe(np.zeros((2, 11)))
