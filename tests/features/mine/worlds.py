"""A small program with its documentation, and a suite of questions about it."""

from __future__ import annotations

from pathlib import Path

import orjson
import yaml

from runner.features.mine.definitions import Definitions
from runner.features.mine.extraction import Imports, NamedAnswers, Options

PARALLEL, SEQUENTIAL, LOOP = "kit.agents.parallel.ParallelAgent", "kit.agents.SequentialAgent", "kit.agents.LoopAgent"

TARGETS = [
    {
        "id": PARALLEL,
        "type": "CLASS",
        "docstring": "Runs its sub-agents at the same time, each in isolation.",
        "constructor_signature": "def __init__(self, sub_agents):",
        "aliases": ["kit.agents.ParallelAgent"],
        "properties": [{"signature": "timeout: float", "docstring": "Seconds to wait.\n\nNot more."}],
    },
    {"id": SEQUENTIAL, "type": "CLASS", "docstring": "Runs its sub-agents in order, one after the other."},
    {"id": LOOP, "type": "CLASS", "docstring": "Runs its sub-agents again and again, a number of times."},
    {"id": "kit.agents.Agent", "type": "CLASS", "docstring": "What all agents are: it has a name and sub-agents."},
    {"id": "kit.tools.Tool", "type": "CLASS", "docstring": "A function that an agent may call."},
    {"id": "kit.old.Tool", "type": "CLASS", "docstring": "A function that an agent could call, before."},
    {"id": "kit.bare", "type": "METHOD", "signature": "def bare(level):"},
    {
        "id": "kit.agents.copy.ParallelAgent2",
        "type": "CLASS",
        "docstring": "Runs its sub-agents at the same time, each in isolation.",
        "properties": [{"signature": "timeout: float", "docstring": "Seconds to wait."}],
    },
]

QUESTIONS = [
    {
        "id": "api:parallel",
        "question": "Which class runs sub-agents at the same time?",
        "benchmark_type": "api",
        "answers": [
            {"answer": "ParallelAgent", "fully_qualified_class_name": ["kit.agents.ParallelAgent", PARALLEL]},
            {"answer": "Tool", "fully_qualified_class_name": "kit.somewhere.Tool"},
        ],
    },
    {
        "id": "api:loop",
        "question": "Which class runs sub-agents a number of times?",
        "benchmark_type": "api",
        "answers": [{"answer": "LoopAgent", "fully_qualified_class_name": "kit.elsewhere.LoopAgent"}],
    },
    {
        "id": "api:gone",
        "question": "Which class is gone?",
        "benchmark_type": "api",
        "answers": [{"answer": "Gone", "fully_qualified_class_name": ["kit.Gone", "other.LoopAgent"]}],
    },
]

TASKS = [
    {
        "id": "fix:one",
        "name": "01",
        "description": "Create a `SequentialAgent` that runs two others.",
        "benchmark_type": "fix",
        "fixed_file": "cases/one/fixed.py",
    },
    {
        "id": "fix:two",
        "name": "02: A loop.",
        "benchmark_type": "fix",
        "fixed_file": "cases/two/fixed.py",
        "test_file": "cases/two/test.py",
    },
    {"id": "fix:three", "name": "03", "benchmark_type": "fix", "fixed_file": "cases/three/fixed.py"},
]

FIXED = """
from typing import Any
from kit.agents import Agent, SequentialAgent
import nowhere

raise SystemExit("code is read, never run")
def make() -> Agent:
    return SequentialAgent(Agent())
"""

TESTED = """
from kit.agents import Agent
from kit.agents import LoopAgent as Loop
class Mine(Loop):
    pass
"""


def written(folder: Path) -> Definitions:
    """Write the world into a folder, and return the source that reads it."""
    (folder / "targets.yaml").write_text(yaml.safe_dump(TARGETS))
    for suite, entries in (("api", QUESTIONS), ("fix", TASKS)):
        (folder / "suites" / suite / "cases").mkdir(parents=True)
        (folder / "suites" / suite / "benchmark.yaml").write_text(yaml.safe_dump({"benchmarks": entries}))
    (folder / "suites/fix/cases/one").mkdir()
    (folder / "suites/fix/cases/one/fixed.py").write_text(FIXED)
    (folder / "suites/fix/cases/two").mkdir()
    (folder / "suites/fix/cases/two/test.py").write_text(TESTED)
    return source(folder)


def source(folder: Path) -> Definitions:
    """Return the source of a world that was written."""
    return Definitions(
        definitions=str(folder / "suites"),
        targets=str(folder / "targets.yaml"),
        kinds={"api": NamedAnswers(), "fix": Imports(), "choice": Options()},
    )


def rows(path: Path) -> list[dict[str, object]]:
    """Return the rows of a JSONL file."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
