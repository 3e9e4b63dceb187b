"""By how much configurations differ on their matched tasks: one figure decides, the others stand beside it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.features.traces.measures import differences
from runner.features.traces.measures.differences import PRIMARY, list_secondary
from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.records import Artifact
from runner.statistics.corrections import holm
from runner.statistics.settings import Statistics
from tests.features.traces.documents import done
from tests.strategies.artifacts import ARTIFACTS
from tests.strategies.settings import at_most

SECONDARY = list_secondary(FigureNames())

BEFORE = {"t": 0.0, "u": 0.5, "v": 1.0, "w": 0.0, "x": 0.25}
AFTER = {"t": 1.0, "u": 0.75, "v": 0.5, "w": 0.0, "x": 1.0}


def compare_configurations(
    baseline: Sequence[Artifact], others: Sequence[Sequence[Artifact]], **how: Any
) -> list[dict[str, Any]]:
    return differences.compare_configurations(baseline, others, FigureNames(), Statistics(**how))


def side(config: str, rewards: Mapping[str, float], *seen: str) -> list[dict[str, Any]]:
    return [done(task, *seen, config_name=config, reward=reward, model="m") for task, reward in rewards.items()]


def finding(config: str, recalls: Sequence[float], **said: Any) -> list[dict[str, Any]]:
    """Return the artifacts of tasks, of whose ten gold files such a share was found."""
    gold = [f"{number}.py" for number in range(10)]
    return [
        done(f"t{task:02}", *gold[: round(10 * recall)], gold=gold, config_name=config, **{"reward": 0.5} | said)
        for task, recall in enumerate(recalls)
    ]


def holm_of(deltas: Sequence[Mapping[str, Any]]) -> list[float]:
    corrected: list[float] = holm(np.array([each["p_value"] for each in deltas])).tolist()
    return corrected


def exact(differences: Sequence[float]) -> float:
    found = stats.permutation_test(
        (differences,), lambda d: sum(d), permutation_type="samples", n_resamples=10000, alternative="two-sided"
    )
    return float(found.pvalue)


def test_two_pairs_are_too_few_to_compare() -> None:
    (found,) = compare_configurations(side("baseline", {"t": 0, "u": 0}), [side("mcp", {"t": 1, "u": 1})])
    assert not found["computable"]
    assert found["reason"] == "insufficient_matched_tasks (n=2, need >= 3)"
    assert (found["n_matched_tasks"], found["n_measured_tasks"]) == (2, 2)
    assert "deltas" not in found


def test_differences_are_other_less_baseline_with_their_spread_and_an_exact_test() -> None:
    (found,) = compare_configurations(side("baseline", BEFORE, "a.py"), [side("mcp", AFTER, "a.py", "b.py")])
    delta = found["deltas"]["reward"]
    differences = [AFTER[task] - BEFORE[task] for task in BEFORE]
    described = stats.describe(differences)
    assert delta["mean_delta"] == pytest.approx(described.mean)
    assert (delta["mean_baseline"], delta["mean_other"]) == pytest.approx((0.35, 0.65))
    assert delta["std_delta"] == pytest.approx(described.variance**0.5)
    assert delta["iqr"] == pytest.approx(stats.iqr(differences))
    assert delta["interval"] is None  # five tasks bound no difference with 95 % confidence
    assert delta["p_value"] == pytest.approx(exact(differences))
    assert (delta["higher"], delta["same"], delta["lower"]) == (3, 1, 1)
    assert found["deltas"]["file_recall"]["mean_delta"] == 0.5
    first = next(iter(found["per_task"]))
    assert (first["task_name"], first["reward_delta"]) == ("t", 1)
    assert (found["baseline_config"], found["other_config"], found["n_matched_tasks"]) == ("baseline", "mcp", 5)


def test_the_deciding_figure_is_corrected_for_no_other_and_the_others_for_one_another() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    (found,) = compare_configurations(finding("baseline", lower), [finding("mcp", higher)])
    deltas = found["deltas"]
    assert [*deltas] == [PRIMARY, *SECONDARY]
    assert (found["primary"], deltas[PRIMARY]["corrected_for"]) == (PRIMARY, 1)
    assert deltas[PRIMARY]["p_value_corrected"] == deltas[PRIMARY]["p_value"] == pytest.approx(2 / 2**6)
    assert deltas[PRIMARY]["significant"]
    told = [deltas[name] for name in SECONDARY if deltas[name]["computable"]]
    assert {each["corrected_for"] for each in told} == {len(told)}
    assert [each["p_value_corrected"] for each in told] == pytest.approx(holm_of(told))
    assert not any(each["significant"] for each in told)


def test_of_several_configurations_the_deciding_figure_is_corrected_for_their_number() -> None:
    lower = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4]
    others = [[0.3, 0.5, 0.4, 0.9, 0.2, 0.7], [0.3, 0.1, 0.4, 0.9, 0.2, 0.4], [1.0, 1.0]]
    found = compare_configurations(
        finding("baseline", lower), [finding(f"c{n}", recalls) for n, recalls in enumerate(others)]
    )
    told = [each["deltas"][PRIMARY] for each in found if each["computable"]]
    assert [each["computable"] for each in found] == [True, True, False]
    assert [each["corrected_for"] for each in told] == [2, 2]
    assert [each["p_value_corrected"] for each in told] == pytest.approx(holm_of(told))
    assert [each["significant"] for each in told] == [each["p_value_corrected"] < 0.05 for each in told]


def test_the_settings_say_which_test_which_interval_and_from_when_on_a_difference_is_one() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.1, 0.4, 0.9, 0.2, 0.4]
    sides = finding("baseline", lower), [finding("mcp", higher)]
    (usual,), (strict,) = (
        compare_configurations(*sides),
        compare_configurations(*sides, test="t", alpha=0.5, confidence=0.5, seed=3),
    )
    assert usual["statistics"] == Statistics(correction="holm")
    assert strict["statistics"] == Statistics(correction="holm", test="t", alpha=0.5, confidence=0.5, seed=3)
    before, after = usual["deltas"][PRIMARY], strict["deltas"][PRIMARY]
    assert after["p_value"] == pytest.approx(float(stats.ttest_rel(higher, lower).pvalue))
    assert (before["significant"], after["significant"]) == (False, True)
    assert before["interval"][0] < after["interval"][0] < after["mean_delta"] < after["interval"][1]
    assert after["pairs_needed"] < before["pairs_needed"]


def test_another_seed_draws_other_resamples() -> None:
    recalls = [each / 10 for each in (1, 9, 2, 5, 0, 4, 7, 3, 8, 6, 0, 1, 9, 2)]
    sides = finding("baseline", recalls), [finding("mcp", [*recalls[::-1][1:], 0.9])]
    (one,), (same,), (other,) = (
        compare_configurations(*sides),
        compare_configurations(*sides),
        compare_configurations(*sides, seed=1),
    )
    drawn = [(each["deltas"][PRIMARY]["interval"], each["deltas"][PRIMARY]["p_value"]) for each in (one, same, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_there_are_as_many_permutations_as_a_difference_needs_to_be_one_among_all_configurations() -> None:
    lower, higher = [0.1] * 14, [0.3, 0.9] * 7
    others = [finding(f"c{n}", higher) for n in range(3)]
    found = compare_configurations(finding("baseline", lower), others, permutations=10)
    assert all(each["deltas"][PRIMARY]["significant"] for each in found)


def test_without_a_correction_every_test_stands_alone() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    found = compare_configurations(
        finding("baseline", lower), [finding("a", higher), finding("b", higher)], correction="none"
    )
    deltas = [delta for each in found for delta in each["deltas"].values() if delta["computable"]]
    assert all(each["p_value_corrected"] == each["p_value"] for each in deltas)
    assert {each["corrected_for"] for each in deltas} == {1}


def test_a_correction_for_all_pairs_by_one_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="choose holm, bh or none"):
        compare_configurations(finding("baseline", [0.1] * 3), [finding("mcp", [0.2] * 3)], correction="tukey")


def test_it_is_said_how_many_pairs_it_takes_to_see_such_a_difference() -> None:
    lower = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4]
    (small,) = compare_configurations(finding("baseline", lower), [finding("mcp", [0.2, 0.1, 0.4, 0.5, 0.1, 0.3])])
    (large,) = compare_configurations(finding("baseline", lower), [finding("mcp", [0.6, 0.7, 0.6, 1.0, 0.6, 0.9])])
    (none,) = compare_configurations(finding("baseline", lower), [finding("mcp", lower)])
    wanted = [each["deltas"][PRIMARY]["pairs_needed"] for each in (small, large, none)]
    assert wanted[0] > 6 >= wanted[1] >= 2
    assert wanted[2] is None


def test_no_fewer_pairs_are_needed_than_the_test_takes_to_find_anything() -> None:
    before, after = dict.fromkeys("tuv", 0.0), dict.fromkeys("tuv", 1.0)
    sides = side("baseline", before, "a.py"), [side("mcp", after, "b.py")]
    (by_flips,) = compare_configurations(*sides)
    (by_t,) = compare_configurations(*sides, test="t")
    assert [each["deltas"]["reward"]["pairs_needed"] for each in (by_flips, by_t)] == [6, 2]


def test_tasks_without_gold_are_matched_and_not_measured() -> None:
    rewards = {"t": 0.0, "u": 0.5, "v": 1.0}
    unmeasured = [done(task, gold=(), config_name="mcp", reward=1.0, model="m") for task in rewards]
    (found,) = compare_configurations(side("baseline", rewards, "a.py"), [unmeasured])
    assert (found["n_matched_tasks"], found["n_measured_tasks"]) == (3, 0)
    assert not found["deltas"][PRIMARY]["computable"]
    assert found["deltas"]["reward"]["computable"]


def test_a_figure_that_too_few_pairs_have_is_not_computable_and_no_0() -> None:
    rewards = {"t": 0.0, "u": 0.5, "v": 1.0}
    (found,) = compare_configurations(side("baseline", rewards, "a.py"), [side("mcp", rewards, "a.py")])
    assert found["deltas"]["cost"] == {"computable": False, "reason": "insufficient_matched_tasks (n=0, need >= 3)"}
    assert found["deltas"].keys() == {PRIMARY, *SECONDARY}
    assert [pair["cost_delta"] for pair in found["per_task"]] == [None] * 3


@settings(max_examples=at_most(20))
@given(st.lists(ARTIFACTS, max_size=9), st.lists(ARTIFACTS, max_size=9), st.randoms(use_true_random=False))
def test_another_order_of_tasks_gives_the_same_bytes(
    baseline: list[dict[str, Any]], other: list[dict[str, Any]], chance: random.Random
) -> None:
    (found,) = compare_configurations(baseline, [other], permutations=50)
    (shuffled,) = compare_configurations(
        chance.sample(baseline, len(baseline)), [chance.sample(other, len(other))], permutations=50
    )
    assert shuffled["statistics"] == found["statistics"]
    text, same = (json.dumps({**each, "statistics": None}, allow_nan=False, default=list) for each in (found, shuffled))
    assert same == text
    paired = [*found["excluded"].values(), ["-"] * found["n_matched_tasks"]]
    names = {each["provenance"]["task_name"] for each in baseline}
    assert sum(map(len, paired)) + found["n_baseline_only"] == len(names)
