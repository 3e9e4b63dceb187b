"""The figures of an agent's configuration, from recorded traces to the database, against values worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from runner.features.traces.measures.task_figures import list_task_figures
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged

Call = tuple[str, str, Sequence[int]]
"""A tool, the path that it is given, and the numbers of the lines that it shows."""

FOUR = ["src/a.py", "src/b.py", "src/c.py", "src/d.py"]
LONG = {
    "files": FOUR,
    "chunks": [
        {"file": "src/a.py", "lines": [11, 20]},
        {"file": "src/b.py", "lines": [1, 6]},
        {"file": "src/d.py", "lines": [1, 4]},
    ],
    "expected_edit_files": ["src/a.py", "src/c.py", "src/d.py", "src/f.py"],
}
SHORT = {
    "files": FOUR[:2],
    "chunks": [{"file": "src/a.py", "lines": [1, 10]}, {"file": "src/b.py", "lines": [1, 2]}],
}
SEEN: dict[str, list[Call]] = {
    "long": [
        ("Grep", "src/x.py lib/y.py", ()),
        ("Read", "src/a.py", range(15, 19)),
        ("Read", "src/b.py", range(1, 4)),
        ("Write", "src/a.py", ()),
        ("Write", "lib/new.py", ()),
    ],
    "short": [
        ("Grep", "src/x.py src/y.py src/z.py lib/k.py", ()),
        ("Read", "src/x.py", range(1, 3)),
        ("Read", "src/a.py", range(1, 10)),
        *[("Write", f"src/{name}.py", ()) for name in ("x", "n", "o", "a")],
    ],
    **{f"prose-{n}": [("Read", "src/a.py", (1,))] for n in (1, 2)},
    **{f"undefined-{n}": [("Read", "src/a.py", (1,))] for n in (1, 2)},
}
OUTCOMES = {"long": (0.5, 0.3, 40, 3000), "short": (0.75, 0.7, 80, 5000)}
"""The reward, cost, seconds and tokens of a task; `OTHER` for the others."""
OTHER = (0.25, 0.1, 20, 1000)

# Of the tasks long, short, prose-1 and prose-2. The n-th call takes place n seconds after the first, and the model has
# read 100 + n tokens and written 10 by then.
BY_TASK: dict[str, Sequence[float]] = {
    "file_recall": [2 / 4, 1 / 2, 1 / 4, 1 / 4],
    "context_efficiency": [2 / 4, 1 / 5, 1, 1],
    "ttfr_seconds": [1, 2, 0, 0],
    "ttfr_tokens": [110 + 111, 110 + 111 + 112, 110, 110],
    "n_retrieved": [4, 5, 1, 1],
    "chunk_recall": [2 / 3, 1 / 2],
    "line_recall": [(4 + 3) / 20, 9 / 12],
    "util_read_overlap_with_relevant_files": [2 / 4, 1 / 2, 1 / 4, 1 / 4],
    "util_write_overlap_with_relevant_files_proxy": [1 / 4, 1 / 2],
    "util_write_overlap_with_expected_edit_files": [1 / 4],
    "util_read_before_write_ratio": [1 / 2, 2 / 4],
    "irrelevant_retrieval": [2, 4, 0, 0],
    "missed_key_evidence": [2, 1, 3, 3],
    "wrong_evidence_used": [1, 3, 0, 0],
    "unused_correct_retrieval": [1, 0, 1, 1],
    "ambiguity_near_miss": [1, 3, 0, 0],
    "reward": [0.5, 0.75, 0.25, 0.25],
    "cost": [0.3, 0.7, 0.1, 0.1],
    "seconds": [40, 80, 20, 20],
    "tokens": [3000, 5000, 1000, 1000],
}
EXPECTED = {
    **{f"agent/{name}": fmean(values) for name, values in BY_TASK.items()},
    "agent/superseded": 2,
    "agent/no_ground_truth": 2,
    "agent/low_confidence": 2,
    "agent/file_recall_without_low_confidence": fmean([2 / 4, 1 / 2]),
    "latency/mean_ms": 40_000,
    "latency/median_ms": 30_000,
    "latency/p95_ms": 40_000 + 0.85 * 40_000,  # 0.95 of the way over the three gaps
    "time/search_s": 160,
    "map_at_100": fmean([(1 / 3 + 2 / 4) / 4, (1 / 5) / 2, 1 / 4, 1 / 4]),
    "mrr": fmean([1 / 3, 1 / 5, 1, 1]),
    "precision_at_5": fmean([2 / 5, 1 / 5, 1 / 5, 1 / 5]),
    "recall_at_5": fmean([2 / 4, 1 / 2, 1 / 4, 1 / 4]),
}


def write_trial(folder: Path, run: str, task: str, calls: Sequence[Call]) -> None:
    """Write the trace and the outcome of a task."""
    steps = [
        {
            "step_id": place + 1,
            "timestamp": f"2026-01-01T00:00:{place:02}Z",
            "source": "agent",
            "tool_calls": [{"tool_call_id": f"c{place}", "function_name": tool, "arguments": fill(tool, path)}],
            "observation": {"results": [{"source_call_id": f"c{place}", "content": show(tool, path, lines)}]},
            "metrics": {"prompt_tokens": 100 + place, "completion_tokens": 10},
        }
        for place, (tool, path, lines) in enumerate(calls)
    ]
    agent = {"name": "harness", "version": "1.0", "model_name": "model"}
    own = folder / "runs" / "official" / run / "agent" / task
    (own / "agent").mkdir(parents=True)
    trace = {"schema_version": "ATIF-v1.2", "session_id": "s", "agent": agent, "steps": steps}
    (own / "agent" / "trajectory.json").write_text(json.dumps(trace))
    reward, cost, seconds, tokens = OUTCOMES.get(task, OTHER)
    spent = {"input_tokens": tokens - 100, "output_tokens": 100, "cost_usd": cost, "duration_seconds": seconds}
    (own / "result.json").write_text(json.dumps({"task_name": task, "reward": reward, **spent}))


def fill(tool: str, path: str) -> dict[str, str]:
    """Return the arguments of a call."""
    return {"pattern": "x"} if tool == "Grep" else {"file_path": path, **({"content": "x"} if tool == "Write" else {})}


def show(tool: str, path: str, lines: Sequence[int]) -> str:
    """Return the result of a call."""
    if tool == "Grep":
        return "\n".join(f"{file}:1:x" for file in path.split())
    return "\n".join(f"{number}\tx" for number in lines) or "File created"


def define(folder: Path, task: str, name: str, content: str) -> None:
    """Write the definition of a task."""
    (folder / "tasks" / "suite" / task / "tests").mkdir(parents=True)
    (folder / "tasks" / "suite" / task / "tests" / name).write_text(content)


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of four tasks with gold, two of them tried twice, and of two tasks without gold."""
    folder = tmp_path_factory.mktemp("traces")
    prepare_store(migrated, folder)
    define(folder, "long", "ground_truth.json", json.dumps(LONG))
    define(folder, "short", "ground_truth.json", json.dumps(SHORT))
    for n in (1, 2):
        define(folder, f"prose-{n}", "instruction.md", f"The fault is in {', '.join(FOUR)}.")
    for task, calls in SEEN.items():
        write_trial(folder, "run_2", task, calls)
    for task in ("long", "short"):
        write_trial(folder, "run_1", task, [("Read", "src/x.py", (1,))])
    run_logged(folder, "traces", "path=runs", "tasks=tasks", "output=out", "workers=1")
    logged: dict[str, Any] = read_figures(folder)
    return logged["agent"]


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_of_a_configuration_is_the_mean_of_its_tasks(figures: Figures, name: str) -> None:
    assert figures[name] == pytest.approx(EXPECTED[name])


def test_every_figure_of_tasks_that_is_logged_has_a_value_by_hand() -> None:
    assert {figure.mlflow for figure in list_task_figures() if figure.is_logged} <= EXPECTED.keys()
