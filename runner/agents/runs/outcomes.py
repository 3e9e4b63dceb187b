"""How a run ended: its reward, what it cost and how long it took, from the records that lie beside its trace.

A record says what it says in its own shape; what none of them says is None, never 0. It knows nothing of traces, which
have their own word on tokens, time and cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from runner.agents.runs.records import Unusable, json_at, number_within, text_at, text_within, within

RECORDS = ("result.json", "results.json", "task_metrics.json", "config.json", "signals.json", "metadata.json")
"""The files that describe a run, the one whose word counts most first."""

_REWARD_FILE = "verifier/reward.txt"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Records:
    """What the files beside a trace hold, by name, each an object; and which of them could not be used."""

    contents: Mapping[str, Mapping[str, Any]]
    problems: Sequence[str] = ()

    def first_text(self, *places: str) -> str | None:
        """Return the first text among places such as `result.json: agent_info name`; names and keys have no spaces."""
        return _first(text_within(*self._located(place)) for place in places)

    def first_number(self, *places: str) -> float | None:
        """Return the first finite number among places, which are named as in `first_text`."""
        return _first(number_within(*self._located(place)) for place in places)

    def first_truth(self, *places: str) -> bool | None:
        """Return the first true or false among places, which are named as in `first_text`."""
        found = (within(*self._located(place)) for place in places)
        return _first(value if isinstance(value, bool) else None for value in found)

    def _located(self, place: str) -> tuple[Any, ...]:
        file, *path = _parts(place)
        return (self.contents.get(file), *path)


@cache
def _parts(place: str) -> Sequence[str]:
    file, _, path = place.partition(":")
    return file, *path.split()


@dataclass(frozen=True)
class Outcome:
    """How a run ended, as its records say; None is what they do not say.

    `reward` is on the verifier's own scale. `cost` is in dollars, `tokens` are prompt and completion with cached ones
    counted once, and `seconds` are the agent's own where they are told apart from setup and verification.
    """

    reward: float | None = None
    passed: bool | None = None
    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    agent: str | None = None
    agent_version: str | None = None
    model: str | None = None
    problems: Sequence[str] = ()


def records_in(folder: Path, files: Collection[str] = RECORDS) -> Records:
    """Return what describes the run in a folder, of which these are the files. Never raises for what they hold."""
    contents: dict[str, Mapping[str, Any]] = {}
    problems: list[str] = []
    for name in [name for name in RECORDS if name in files]:
        try:
            content = json_at(folder / name)
        except Unusable as error:
            problems.append(f"{name}: {error}")
            continue
        if isinstance(content, dict):
            contents[name] = content
        elif content is not None:
            problems.append(f"{name}: not a JSON object")
    return Records(contents, tuple(problems))


def outcome_in(folder: Path) -> Outcome:
    """Return how the run in a folder ended. Never raises for what its files hold."""
    records = records_in(folder)
    reward, problems = _reward(folder, records)
    return Outcome(
        reward=reward,
        passed=_passed(records),
        cost=_cost(records),
        tokens=_tokens(records),
        seconds=_seconds(records),
        agent=agent_of(records),
        agent_version=_known(records.first_text("result.json: agent_info version")),
        model=model_of(records),
        problems=(*records.problems, *problems),
    )


def agent_of(records: Records) -> str | None:
    """Return the name of the agent's harness, such as `claude-code`."""
    return records.first_text(
        "result.json: agent_info name",
        "result.json: agent",
        "config.json: harness",
        "signals.json: agent_name",
        "metadata.json: agent",
    )


def model_of(records: Records) -> str | None:
    """Return the model's name, without its provider's."""
    model = records.first_text(
        "result.json: agent_info model_info name",
        "result.json: model",
        "config.json: model",
        "signals.json: model",
        "metadata.json: model",
        "result.json: config agent model_name",
        "config.json: agent model_name",
    )
    return _known(model.rpartition("/")[2] if model else None)


def _reward(folder: Path, records: Records) -> tuple[float | None, Sequence[str]]:
    stated = records.first_number(
        "result.json: verifier_result rewards reward",
        "result.json: verifier_result reward",
        "result.json: reward",
        "task_metrics.json: reward",
        "results.json: scores task_score",
        "results.json: reward",
        "signals.json: reward",
        "metadata.json: reward",
    )
    if stated is not None:
        return stated, ()
    try:
        written = text_at(folder / _REWARD_FILE)
        return (number_within({"reward": float(written)}, "reward") if written else None), ()
    except ValueError as error:
        return None, (f"{_REWARD_FILE}: {error if isinstance(error, Unusable) else 'not a number'}",)


def _passed(records: Records) -> bool | None:
    status = records.first_text("task_metrics.json: status", "result.json: status")
    return _first(
        [
            records.first_truth("result.json: passed", "results.json: scores all_passed"),
            {"passed": True, "failed": False}.get(status or ""),
            records.first_truth("signals.json: passed", "metadata.json: passed"),
        ]
    )


_USAGES = (
    ("result.json: agent_result", ("n_input_tokens", "n_output_tokens"), "cost_usd"),
    ("result.json:", ("input_tokens", "output_tokens"), "cost_usd"),
    ("results.json: tool_usage", ("total_input_tokens", "total_output_tokens"), "cost_usd"),
    ("task_metrics.json: tool_usage", ("total_input_tokens", "total_output_tokens"), "cost_usd"),
    (
        "task_metrics.json:",
        ("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"),
        "cost_usd",
    ),
)
"""Where usage is told: the counts that add up to all tokens (a count of input may hold the cached ones), the cost."""


def _tokens(records: Records) -> int | None:
    for place, counts, _ in _USAGES:
        stated = [records.first_number(f"{place} {count}") for count in counts]
        if total := sum(count for count in stated if count is not None and count > 0):
            return int(total)
    return None


def _cost(records: Records) -> float | None:
    """Return the cost. A cost of 0 beside no tokens is not a cost: the harness did not count."""
    for place, counts, cost in _USAGES:
        stated = records.first_number(f"{place} {cost}")
        counted = any(records.first_number(f"{place} {count}") for count in counts)
        if stated is not None and stated >= 0 and (stated or counted):
            return stated
    return None


def _seconds(records: Records) -> float | None:
    result = records.contents.get("result.json")
    seconds = _first(
        [
            _between(within(result, "agent_execution")),
            records.first_number("task_metrics.json: agent_execution_seconds", "results.json: timing agent"),
            records.first_number("task_metrics.json: timing agent"),
            records.first_number("signals.json: duration_seconds", "metadata.json: duration_seconds"),
            records.first_number("result.json: duration_seconds"),
            _between(result),
            records.first_number("task_metrics.json: wall_clock_seconds"),
        ]
    )
    return seconds if seconds is not None and seconds >= 0 else None


def _between(record: object) -> float | None:
    """Return the seconds from a record's start to its end, both by the one clock that wrote it."""
    try:
        start, end = (datetime.fromisoformat(within(record, name)) for name in ("started_at", "finished_at"))
        return (end - start).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None  # no times, or times of different kinds


def _known(name: str | None) -> str | None:
    return None if name == "unknown" else name


def _first(values: Iterable[Value | None]) -> Value | None:
    return next((value for value in values if value is not None), None)
