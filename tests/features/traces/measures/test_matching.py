"""Two configurations on the tasks that both did: who is paired, and who is left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from runner.features.traces.measures.figures import FigureNames, group_columns
from runner.features.traces.measures.matching import TaskTrial, build_trial, match_trials, select_latest
from tests.features.traces.documents import done

NAMES = FigureNames()
SAME = {"model": "m", "agent": "harness", "agent_version": "1"}


def side(config: str, rewards: Mapping[str, float], *seen: str, **said: Any) -> list[TaskTrial]:
    return [
        build_trial(done(task, *seen, config_name=config, reward=reward, **SAME | said), NAMES)
        for task, reward in rewards.items()
    ]


def test_tasks_are_paired_by_name_and_the_others_are_named() -> None:
    found = match_trials(side("baseline", {"t": 0, "u": 1, "v": 1}), side("mcp", {"u": 0, "t": 1, "w": 0}))
    assert [each.task for each in found.baseline] == ["t", "u"]
    assert group_columns((each.figures for each in found.other), NAMES)["reward"].tolist() == [1, 0]
    assert (found.baseline_only, found.other_only, found.excluded, found.unverified) == (["v"], ["w"], {}, 0)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"model": "n"}, "different_models"),
        ({"model": None}, "unknown_models"),
        ({"agent_version": None}, "unknown_harnesses"),
        ({"agent": "other"}, "different_harnesses"),
        ({"agent_version": "2"}, "different_harnesses"),
        ({"reward": None}, "no_valid_reward"),
        ({"reward": float("nan")}, "no_valid_reward"),
    ],
)
def test_another_model_or_harness_or_no_reward_is_left_out_with_its_reason(said: dict[str, Any], reason: str) -> None:
    other = build_trial(done("t", config_name="mcp", **SAME | {"reward": 1.0} | said), NAMES)
    found = match_trials(side("baseline", {"t": 0}), [other])
    assert found.excluded == {reason: ["t"]}
    assert (found.baseline, found.baseline_only) == ([], [])


def test_pairs_that_do_not_say_their_model_or_harness_are_kept_and_counted() -> None:
    unsaid = dict.fromkeys(SAME)
    found = match_trials(side("baseline", {"t": 0, "u": 0}, **unsaid), side("mcp", {"t": 0, "u": 0}, **unsaid))
    assert (len(found.baseline), found.unverified) == (2, 2)


def test_of_a_task_done_several_times_the_latest_batch_counts() -> None:
    runs = [build_trial(done("t", reward=1.0, batch_timestamp=f"2026-01-0{day}"), NAMES) for day in (1, 3, 2)]
    assert select_latest(runs) == {"t": 1}
    assert match_trials(runs, runs[:1]).superseded == 2
