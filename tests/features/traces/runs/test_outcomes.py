"""How a run ended is read from records of every shape, and what none of them says is None."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.runs.outcomes import RECORDS, RunOutcome, read_outcome
from tests.strategies.runs import OUTCOME_JSON

HARBOR = {
    "agent_info": {"name": "claude-code", "version": "2.1.47", "model_info": {"name": "claude-haiku-4-5"}},
    "agent_result": {"n_input_tokens": 1000, "n_cache_tokens": 900, "n_output_tokens": 50, "cost_usd": None},
    "verifier_result": {"rewards": {"reward": 0.9866}},
    "started_at": "2026-02-23T17:58:00",
    "finished_at": "2026-02-23T18:28:00",
    "agent_execution": {"started_at": "2026-02-23T18:00:00", "finished_at": "2026-02-23T18:20:00.5"},
}


def written(folder: Path, **records: object) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in records.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def select_recorded(outcome: RunOutcome) -> dict[str, object]:
    """Return the recorded values of an outcome."""
    return {name: value for name, value in outcome.items() if value is not None and value != ()}


def test_a_run_without_records_has_no_outcome(tmp_path: Path) -> None:
    assert select_recorded(read_outcome(tmp_path)) == {}


def test_a_result_of_harbor_is_read(tmp_path: Path) -> None:
    assert select_recorded(read_outcome(written(tmp_path, result=HARBOR))) == RunOutcome(
        reward=0.9866,
        tokens=1050,
        seconds=1200.5,
        agent="claude-code",
        agent_version="2.1.47",
        model="claude-haiku-4-5",
    )


def test_metrics_of_the_task_fill_what_the_result_leaves_open(tmp_path: Path) -> None:
    metrics = {"reward": 0.5, "status": "passed", "cost_usd": 0.99, "input_tokens": 7, "agent_execution_seconds": 3}
    outcome = read_outcome(written(tmp_path, result=HARBOR, task_metrics=metrics))
    assert (outcome["reward"], outcome["passed"], outcome["cost"], outcome["tokens"], outcome["seconds"]) == (
        0.9866,
        True,
        0.99,
        1050,
        1200.5,
    )
    alone = read_outcome(written(tmp_path / "alone", task_metrics=metrics | {"cache_read_tokens": 90}))
    assert (alone["reward"], alone["tokens"], alone["seconds"]) == (0.5, 97, 3)


def test_a_harness_that_counted_nothing_says_nothing_of_cost_and_tokens(tmp_path: Path) -> None:
    usage = {"total_input_tokens": 0, "total_output_tokens": 0, "cost_usd": 0.0, "num_turns": 0}
    outcome = read_outcome(written(tmp_path, results={"tool_usage": usage, "scores": {"task_score": 0.0}}))
    assert (outcome["cost"], outcome["tokens"], outcome["reward"]) == (None, None, 0.0)


def test_a_number_that_measures_nothing_is_none(tmp_path: Path) -> None:
    outcome = read_outcome(written(tmp_path, result={"input_tokens": 1e300}, task_metrics={"input_tokens": 7}))
    assert outcome["tokens"] == 7
    beyond = {"input_tokens": 2**63, "reward": 1e308, "cost_usd": 1e308, "duration_seconds": -1e308}
    assert select_recorded(read_outcome(written(tmp_path / "alone", result=beyond))) == {}


def test_tokens_that_cost_nothing_cost_zero(tmp_path: Path) -> None:
    usage = {"total_input_tokens": 5, "total_output_tokens": 1, "cost_usd": 0.0}
    outcome = read_outcome(written(tmp_path, results={"tool_usage": usage}))
    assert (outcome["cost"], outcome["tokens"]) == (0.0, 6)


@pytest.mark.parametrize(
    ("content", "reward", "problems"),
    [
        ("0.75\n", 0.75, ()),
        ("", None, ()),
        ("nan", None, ()),
        ("passed", None, ("verifier/reward.txt: not a number",)),
        ("1\0", None, ("verifier/reward.txt: binary data instead of text",)),
    ],
)
def test_a_reward_may_be_in_a_file_of_its_own(
    tmp_path: Path, content: str, reward: float | None, problems: tuple[str, ...]
) -> None:
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "reward.txt").write_text(content)
    outcome = read_outcome(tmp_path)
    assert (outcome["reward"], outcome["problems"]) == (reward, problems)


@pytest.mark.parametrize(
    "times",
    [
        {"started_at": "2026-02-23T17:58:00", "finished_at": "2026-02-23T17:58:00+00:00"},
        {"started_at": "2026-02-23T17:58:00", "finished_at": "2026-02-23T17:57:00"},
        {"started_at": "yesterday", "finished_at": None},
        {"started_at": 3, "finished_at": 5},
    ],
)
def test_times_that_cannot_be_subtracted_or_run_backwards_are_no_duration(
    tmp_path: Path, times: dict[str, object]
) -> None:
    assert read_outcome(written(tmp_path, result=times))["seconds"] is None


def test_a_model_is_named_without_its_provider_and_an_unknown_version_is_none(tmp_path: Path) -> None:
    info = {"name": "a", "version": "unknown"}
    outcome = read_outcome(written(tmp_path, result={"agent_info": info, "config": {"agent": {"model_name": "p/m-1"}}}))
    assert (outcome["agent"], outcome["agent_version"], outcome["model"]) == ("a", None, "m-1")


def test_damaged_records_are_named_and_the_others_count(tmp_path: Path) -> None:
    written(tmp_path, results={"scores": {"task_score": 2.0, "all_passed": False}})
    (tmp_path / "result.json").write_text('{"verifier_result":')
    outcome = read_outcome(tmp_path)
    assert (outcome["reward"], outcome["passed"]) == (2.0, False)
    assert outcome["problems"][0].startswith("result.json: invalid JSON")


@given(contents=st.dictionaries(st.sampled_from([name.removesuffix(".json") for name in RECORDS]), OUTCOME_JSON))
def test_any_json_in_any_record_gives_an_outcome_of_numbers_that_can_be(
    contents: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outcome = read_outcome(written(tmp_path_factory.mktemp("run"), **contents))
    assert outcome["passed"] in (True, False, None)
    assert outcome["tokens"] is None or outcome["tokens"] > 0
    assert all(value is None or value >= 0 for value in (outcome["cost"], outcome["seconds"]))
    assert all(
        value is None or isinstance(value, str)
        for value in (outcome["agent"], outcome["agent_version"], outcome["model"])
    )


def test_real_trials_say_reward_outcome_and_time_but_neither_cost_nor_version(real_traces: Path) -> None:
    assert select_recorded(read_outcome(real_traces / "trials" / "002a72814c6d")) == RunOutcome(
        reward=0.4546, passed=True, seconds=161.931934, agent="openhands", model="claude-haiku-4-5-20251001"
    )
    outcomes = [read_outcome(folder) for folder in (real_traces / "trials").iterdir()]
    assert len(outcomes) == 23
    assert sum(bool(outcome["passed"]) for outcome in outcomes) == 13
    assert {outcome["agent"] for outcome in outcomes} == {"claude-code", "openhands", "cursor-cli"}


def test_real_runs_say_what_they_counted(real_traces: Path) -> None:
    study = real_traces / "runs" / "studies" / "rryas-headline-v5" / "runs" / "dep-graph-tri-tokio-hyper-tonic-001"
    outcome = read_outcome(study / "baseline" / "rep1" / "attempt1")
    assert select_recorded(outcome) == RunOutcome(
        reward=0.5680000000000001,
        passed=True,
        cost=2.184022,
        tokens=668470 + 12058,
        seconds=130.13568757590838,
        agent="claude",
        model="claude-sonnet-5",
    )
    smoke = read_outcome(real_traces / "runs" / "smoke_mcp_v2")
    assert select_recorded(smoke) == RunOutcome(reward=2.0, passed=False, seconds=97.73192808101885)
