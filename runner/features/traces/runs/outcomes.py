"""Read how a run ended: its reward, cost and duration, from the records beside its trace.

Records have many shapes; a missing value is None, never 0. Traces, which also record tokens, time and cost, are not
read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

from typing_extensions import TypedDict

from runner.features.traces.runs.records import (
    UnusableFileError,
    get_nested,
    get_number,
    get_text,
    read_json,
    read_text,
)

RECORDS = ("result.json", "results.json", "task_metrics.json", "config.json", "signals.json", "metadata.json")
"""The files that describe a run, the most reliable first."""

_REWARD_FILE = "verifier/reward.txt"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Records:
    """The contents of the files beside a trace, each an object, by name; and the files that could not be used."""

    contents: Mapping[str, Mapping[str, object]]
    problems: Sequence[str] = ()

    def first_text(self, *places: str) -> str | None:
        """Return the first text among places such as `result.json: agent_info name`; names and keys have no spaces."""
        return _first(get_text(record, *path) for record, path in map(self._locate, places))

    def first_number(self, *places: str) -> float | None:
        """Return the first finite number among places, named as in `first_text`."""
        return _first(get_number(record, *path) for record, path in map(self._locate, places))

    def first_truth(self, *places: str) -> bool | None:
        """Return the first true or false among places, named as in `first_text`."""
        values = (get_nested(record, *path) for record, path in map(self._locate, places))
        return _first(value if isinstance(value, bool) else None for value in values)

    def _locate(self, place: str) -> tuple[object, Sequence[str]]:
        """Return the content of a place's file, None without one, and the keys that lead to the place in it."""
        file, path = _split_place(place)
        return self.contents.get(file), path


@cache
def _split_place(place: str) -> tuple[str, Sequence[str]]:
    file, _, path = place.partition(":")
    return file, path.split()


class RunOutcome(TypedDict, total=False):
    """How a run ended, for JSON; None for values that are not recorded.

    `reward` is on the scale of its verifier. `cost` is in dollars. `tokens` counts prompt and completion tokens, cached
    ones once. `seconds` is the time of the agent alone if it is recorded separately from setup and verification.
    """

    reward: float | None
    passed: bool | None
    cost: float | None
    tokens: int | None
    seconds: float | None
    agent: str | None
    agent_version: str | None
    model: str | None
    problems: Sequence[str]


def read_records(folder: Path, files: Collection[str] = RECORDS) -> Records:
    """Return the records among the files of a run's folder. Never raises because of their content."""
    contents: dict[str, Mapping[str, object]] = {}
    problems: list[str] = []
    for name in [name for name in RECORDS if name in files]:
        try:
            content = read_json(folder / name)
        except UnusableFileError as error:
            problems.append(f"{name}: {error}")
            continue
        if isinstance(content, dict):
            contents[name] = content
        elif content is not None:
            problems.append(f"{name}: expected a JSON object")
    return Records(contents, tuple(problems))


def read_outcome(folder: Path) -> RunOutcome:
    """Return how the run in a folder ended. Never raises because of the content of its files."""
    records = read_records(folder)
    reward, problems = _find_reward(folder, records)
    return RunOutcome(
        reward=reward,
        passed=_find_passed(records),
        cost=_find_cost(records),
        tokens=_find_tokens(records),
        seconds=_find_seconds(records),
        agent=find_agent(records),
        agent_version=_drop_unknown(records.first_text("result.json: agent_info version")),
        model=find_model(records),
        problems=(*records.problems, *problems),
    )


def find_agent(records: Records) -> str | None:
    """Return the name of the agent's harness, such as `claude-code`."""
    return records.first_text(
        "result.json: agent_info name",
        "result.json: agent",
        "config.json: harness",
        "signals.json: agent_name",
        "metadata.json: agent",
    )


def find_model(records: Records) -> str | None:
    """Return the name of the model without its provider."""
    model = records.first_text(
        "result.json: agent_info model_info name",
        "result.json: model",
        "config.json: model",
        "signals.json: model",
        "metadata.json: model",
        "result.json: config agent model_name",
        "config.json: agent model_name",
    )
    return _drop_unknown(model.rpartition("/")[2] if model else None)


def _find_reward(folder: Path, records: Records) -> tuple[float | None, Sequence[str]]:
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
        written = read_text(folder / _REWARD_FILE)
        return (get_number({"reward": float(written)}, "reward") if written else None), ()
    except ValueError as error:
        return None, (f"{_REWARD_FILE}: {error if isinstance(error, UnusableFileError) else 'not a number'}",)


def _find_passed(records: Records) -> bool | None:
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
"""The places of usage: the counts that add up to all tokens (input may include cached ones), and the cost."""


def _find_tokens(records: Records) -> int | None:
    for place, counts, _ in _USAGES:
        stated = [records.first_number(f"{place} {count}") for count in counts]
        if total := sum(count for count in stated if count is not None and count > 0):
            return int(total)
    return None


def _find_cost(records: Records) -> float | None:
    """Return the cost. A cost of 0 without tokens is ignored: the harness did not count."""
    for place, counts, cost in _USAGES:
        stated = records.first_number(f"{place} {cost}")
        counted = any(records.first_number(f"{place} {count}") for count in counts)
        if stated is not None and stated >= 0 and (stated or counted):
            return stated
    return None


def _find_seconds(records: Records) -> float | None:
    result = records.contents.get("result.json")
    seconds = _first(
        [
            _between(get_nested(result, "agent_execution")),
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
    """Return the seconds from the start to the end of a record, both by the same clock."""
    try:
        start, end = (datetime.fromisoformat(get_text(record, name) or "") for name in ("started_at", "finished_at"))
        return (end - start).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None  # no times, or only one with a time zone


def _drop_unknown(name: str | None) -> str | None:
    return None if name == "unknown" else name


def _first(values: Iterable[Value | None]) -> Value | None:
    return next((value for value in values if value is not None), None)
