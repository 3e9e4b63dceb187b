"""Read the trace of a run from its trajectory, its transcript, or both, joined on the ids of the tool calls.

A transcript also records the calls of subagents, which a trajectory may lack, and the step numbers of the two differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from runner.features.traces.formats import FORMATS, Format, read_trace
from runner.features.traces.trace import Observer, Seen, Step, Trace

Value = TypeVar("Value")
_Key = tuple[str, int]


def read_run(
    trajectory: Path | None,
    transcript: Path | None,
    observe: Observer[Seen],
    choose: Callable[[Seen, Seen], Seen],
    formats: Mapping[str, Format] = FORMATS,
) -> Trace[Seen]:
    """Read the traces of a run as one.

    If both files record a call, `choose` selects between the sightings in the trajectory and in the transcript, and the
    trajectory gives the time if it has a clock: the clocks of two files are never mixed. A call that only the
    transcript records is placed after the call before it there. Token counts come from the transcript, which includes
    subagents, if it has any. Losses name their file if there are two. Never raises because of the files' content.
    """
    first = None if trajectory is None else read_trace(trajectory, observe, formats)
    second = None if transcript is None else read_trace(transcript, observe, formats)
    if first is None or second is None:
        return _take_one(first, second)
    losses = {f"{what} in the trajectory": times for what, times in first.losses.items()}
    losses |= {f"{what} in the transcript": times for what, times in second.losses.items()}
    if first.source is None or second.source is None:
        usable = _take_one(first if first.source else None, second if second.source else None)
        return replace(usable, losses=losses)
    with_id = [step for step in second.steps if step.id or not first.steps]
    if len(with_id) < len(second.steps):
        losses["calls in the transcript without an id to merge by"] = len(second.steps) - len(with_id)
    return Trace(
        source="merged",
        steps=_merge_steps(first.steps, with_id, choose),
        cwds=list(dict.fromkeys((*first.cwds, *second.cwds))),
        losses=losses,
        model=_either(first.model, second.model),
        harness=_either(first.harness, second.harness),
        total_tokens=_either(second.total_tokens, first.total_tokens),
        seconds=_either(second.seconds, first.seconds),
        cost=_either(second.cost, first.cost),
    )


def _take_one(trajectory: Trace[Seen] | None, transcript: Trace[Seen] | None) -> Trace[Seen]:
    if trajectory is not None:
        return replace(trajectory, source=trajectory.source and "trajectory")
    if transcript is not None:
        return replace(transcript, source=transcript.source and "transcript")
    return Trace(source=None, losses={"runs without a trace": 1})


def _either(value: Value | None, other: Value | None) -> Value | None:
    return other if value is None else value


def _merge_steps(
    trajectory: Iterable[Step[Seen]], transcript: Iterable[Step[Seen]], choose: Callable[[Seen, Seen], Seen]
) -> list[Step[Seen]]:
    own, other = dict(_by_id(trajectory)), dict(_by_id(transcript))
    has_times = any(step.elapsed_s is not None for step in own.values())
    has_tokens = any(step.tokens is not None for step in other.values())

    def merge(key: _Key) -> Step[Seen]:
        if key not in other:
            return own[key] if not has_tokens else replace(own[key], tokens=None)
        if key not in own:
            return other[key] if not has_times else replace(other[key], elapsed_s=None)
        mine, theirs = own[key], other[key]
        return replace(
            mine,
            seen=choose(mine.seen, theirs.seen),
            subagent=mine.subagent or theirs.subagent,
            elapsed_s=mine.elapsed_s if has_times else theirs.elapsed_s,
            time=mine.time if has_times else theirs.time,
            tokens=theirs.tokens if has_tokens else mine.tokens,
        )

    after: dict[_Key | None, list[_Key]] = {None: []}  # calls that follow each call of the trajectory
    before: _Key | None = None
    for key in other:
        if key in own:
            before = key
        else:
            after.setdefault(before, []).append(key)
    order = after[None] + [key for mine in own for key in (mine, *after.get(mine, ()))]
    return [replace(merge(key), index=index) for index, key in enumerate(order)]


def _by_id(steps: Iterable[Step[Seen]]) -> Iterator[tuple[_Key, Step[Seen]]]:
    """Yield the steps, each with its id and the number of earlier steps with this id, because some agents reuse ids."""
    times: Counter[str] = Counter()
    for step in steps:
        yield (step.id, times[step.id]), step
        times[step.id] += 1
