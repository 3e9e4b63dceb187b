"""Runs of agents written out, for the tests of what is made of whole folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GOLD = ("src/a.py", "src/b.py")


def trajectory(*reads: str, searched: Sequence[str] = (), written: Sequence[str] = ()) -> dict[str, Any]:
    """Return an ATIF trajectory: a search first, if it found something, then files read, then files written."""
    calls = [("Grep", {"pattern": "x"}, "\n".join(f"{path}:1:x" for path in searched))] if searched else []
    calls += [("Read", {"file_path": path}, "1\tx") for path in reads]
    calls += [("Write", {"file_path": path, "content": "x"}, "File created") for path in written]
    steps = [
        {
            "step_id": place + 1,
            "timestamp": f"2026-01-01T00:00:{place:02}Z",
            "source": "agent",
            "tool_calls": [{"tool_call_id": f"c{place}", "function_name": name, "arguments": arguments}],
            "observation": {"results": [{"source_call_id": f"c{place}", "content": content}]},
            "metrics": {"prompt_tokens": 100 + place, "completion_tokens": 10},
        }
        for place, (name, arguments, content) in enumerate(calls)
    ]
    agent = {"name": "harness", "version": "1.0", "model_name": "model"}
    return {"schema_version": "ATIF-v1.2", "session_id": "s", "agent": agent, "steps": steps}


def write_run(runs: Path, config: str, task: str, content: object, reward: float | None = 1.0) -> Path:
    """Write a run where runs are kept, with a trajectory if there is one, and return its folder."""
    folder = runs / "runs" / "official" / "run_1" / config / task
    (folder / "agent").mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / "agent" / "trajectory.json").write_text(json.dumps(content))
    if reward is not None:
        (folder / "result.json").write_text(json.dumps({"task_name": task, "reward": reward}))
    return folder


def write_task(tasks: Path, name: str, gold: Sequence[str] = GOLD) -> Path:
    """Write the definition of a task, which names gold files."""
    folder = tasks / "suite" / name
    (folder / "tests").mkdir(parents=True, exist_ok=True)
    (folder / "tests" / "ground_truth.json").write_text(json.dumps({"files": list(gold)}))
    return folder


def world(folder: Path, tasks: int = 4) -> None:
    """Write tasks, and runs of two configurations on them: `mcp` finds one file more than `baseline` does."""
    for number in range(tasks):
        name = f"task-{number:03}"
        write_task(folder / "tasks", name)
        write_run(folder, "baseline", name, trajectory("src/x.py", "src/a.py"), reward=0.0)
        found = trajectory("src/a.py", searched=["src/b.py", "src/y.py"], written=["src/a.py"])
        write_run(folder, "mcp", name, found, reward=1.0)
