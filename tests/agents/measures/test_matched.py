"""Two configurations on the tasks that both did: who is paired, who is left out, and by how much they differ."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.agents.measures.matched import COMPARED, compared, latest, match
from runner.agents.measures.stages import artifact
from tests.agents.documents import OUTCOMES, documents, done

SAME = {"model": "m", "agent": "harness", "agent_version": "1"}


def side(config: str, rewards: Mapping[str, float], *seen: str, **said: Any) -> list[dict[str, Any]]:
    return [done(task, *seen, config_name=config, reward=reward, **SAME | said) for task, reward in rewards.items()]


def test_tasks_are_paired_by_name_and_the_others_are_named() -> None:
    found = match(side("baseline", {"t": 0, "u": 1, "v": 1}), side("mcp", {"u": 0, "t": 1, "w": 0}))
    assert [each["provenance"]["task_name"] for each in found.baseline] == ["t", "u"]
    assert [each["outcome"]["reward"] for each in found.other] == [1, 0]
    assert (found.baseline_only, found.other_only, found.excluded, found.unverified) == (["v"], ["w"], {}, 0)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"model": "n"}, "different_models"),
        ({"model": None}, "different_models"),
        ({"agent": "other"}, "different_harnesses"),
        ({"agent_version": "2"}, "different_harnesses"),
        ({"reward": None}, "no_valid_reward"),
        ({"reward": float("nan")}, "no_valid_reward"),
    ],
)
def test_another_model_or_harness_or_no_reward_is_left_out_with_its_reason(said: dict[str, Any], reason: str) -> None:
    other = done("t", config_name="mcp", **SAME | {"reward": 1.0} | said)
    found = match(side("baseline", {"t": 0}), [other])
    assert found.excluded == {reason: ["t"]}
    assert (found.baseline, found.baseline_only) == ([], [])


def test_pairs_that_do_not_say_their_model_or_harness_are_kept_and_counted() -> None:
    unsaid = dict.fromkeys(SAME)
    found = match(side("baseline", {"t": 0, "u": 0}, **unsaid), side("mcp", {"t": 0, "u": 0}, **unsaid))
    assert (len(found.baseline), found.unverified) == (2, 2)


def test_of_a_task_done_several_times_the_latest_batch_counts() -> None:
    runs = [done("t", reward=r, batch_timestamp=f"2026-01-0{day}") for r, day in ((0.1, 1), (0.3, 3), (0.2, 2))]
    assert latest(runs)["t"]["outcome"]["reward"] == 0.3
    assert match(runs, runs[:1]).superseded == 2


def test_two_pairs_are_too_few_to_compare() -> None:
    found = compared(side("baseline", {"t": 0, "u": 0}), side("mcp", {"t": 1, "u": 1}))
    assert not found["computable"]
    assert found["reason"] == "insufficient_matched_tasks (n=2, need >= 3)"
    assert "deltas" not in found


def test_differences_are_other_less_baseline_with_their_spread_and_an_exact_test() -> None:
    before = {"t": 0.0, "u": 0.5, "v": 1.0, "w": 0.0, "x": 0.25}
    after = {"t": 1.0, "u": 0.75, "v": 0.5, "w": 0.0, "x": 1.0}
    found = compared(side("baseline", before, "a.py"), side("mcp", after, "a.py", "b.py"))
    delta = found["deltas"]["reward"]
    differences = [after[task] - before[task] for task in before]
    described = stats.describe(differences)
    assert delta["mean_delta"] == pytest.approx(described.mean)
    assert delta["std_delta"] == pytest.approx(described.variance**0.5)
    assert delta["iqr"] == pytest.approx(stats.iqr(differences))
    assert delta["interval"][0] < delta["mean_delta"] < delta["interval"][1]
    exact = stats.permutation_test(
        (differences,), lambda d: sum(d), permutation_type="samples", n_resamples=10000, alternative="two-sided"
    )
    assert delta["p_value"] == pytest.approx(exact.pvalue)
    assert delta["p_value_corrected"] >= delta["p_value"]
    assert (delta["higher"], delta["same"], delta["lower"]) == (3, 1, 1)
    assert found["deltas"]["file_recall"]["mean_delta"] == 0.5
    assert found["per_task"][0]["task_name"] == "t"
    assert found["per_task"][0]["reward_delta"] == 1
    assert (found["baseline_config"], found["other_config"], found["n_matched_tasks"]) == ("baseline", "mcp", 5)


def test_a_figure_that_too_few_pairs_have_is_not_computable_and_no_0() -> None:
    rewards = {"t": 0.0, "u": 0.5, "v": 1.0}
    found = compared(side("baseline", rewards, "a.py"), side("mcp", rewards, "a.py"))
    assert found["deltas"]["cost"] == {"computable": False, "reason": "insufficient_matched_tasks (n=0, need >= 3)"}
    assert found["deltas"].keys() == {*COMPARED}
    assert found["per_task"][0]["cost_delta"] is None


SIDES = st.lists(st.builds(artifact, documents(), OUTCOMES), max_size=9)


@settings(max_examples=20)
@given(SIDES, SIDES, st.randoms(use_true_random=False))
def test_another_order_of_tasks_gives_the_same_bytes(
    baseline: list[dict[str, Any]], other: list[dict[str, Any]], chance: random.Random
) -> None:
    found = compared(baseline, other)
    shuffled = compared(chance.sample(baseline, len(baseline)), chance.sample(other, len(other)))
    assert json.dumps(shuffled, allow_nan=False) == json.dumps(found, allow_nan=False)
    paired = [*found["excluded"].values(), ["-"] * found["n_matched_tasks"]]
    names = {each["provenance"]["task_name"] for each in baseline}
    assert sum(map(len, paired)) + found["n_baseline_only"] == len(names)
