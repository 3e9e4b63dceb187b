"""A small program with its documentation, a suite of questions about it, and models that answer these."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import yaml

from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import Chat
from runner.datasets.dataset import Dataset
from runner.datasets.files import json_objects
from runner.features.mine.base import Case, Impact, ImpactSettings, Mining, Query
from runner.features.mine.definitions import Definitions
from runner.features.mine.extraction import CaseFiles, Imports, NamedAnswers, Options, Suite
from runner.features.mine.impact import measure_impact
from runner.features.mine.targets import Target, Targets
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from tests.evaluation.chats import Answer, Scripted

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


def write_world(folder: Path) -> Definitions:
    """Write the world into a folder, and return the source that reads it."""
    (folder / "targets.yaml").write_text(yaml.safe_dump(TARGETS))
    for suite, entries in (("api", QUESTIONS), ("fix", TASKS)):
        (folder / "suites" / suite / "cases").mkdir(parents=True)
        (folder / "suites" / suite / "benchmark.yaml").write_text(yaml.safe_dump({"benchmarks": entries}))
    (folder / "suites/fix/cases/one").mkdir()
    (folder / "suites/fix/cases/one/fixed.py").write_text(FIXED)
    (folder / "suites/fix/cases/two").mkdir()
    (folder / "suites/fix/cases/two/test.py").write_text(TESTED)
    return create_source(folder)


def create_source(folder: Path) -> Definitions:
    """Return the source that reads a world from a folder."""
    return Definitions(
        definitions=str(folder / "suites"),
        targets=str(folder / "targets.yaml"),
        kinds={"api": NamedAnswers(), "fix": Imports(), "choice": Options()},
    )


def read_rows(path: Path) -> list[dict[str, object]]:
    """Return the rows of a JSONL file."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


KIT = Targets([Target(f"kit.agents.{name}", "CLASS") for name in ("LoopAgent", "Session", "ParallelAgent")])
CHOICE = {"id": "q", "options": ["True", "False"], "correct_answer": "A"}


def create_choice(folder: Path, **fields: object) -> Case:
    """Return the case of a multiple-choice question, whose code is in a folder."""
    (case,) = Options().cases(
        Suite("s", json_objects(Path("s"), "entry", [{**CHOICE, **fields}]), CaseFiles([folder], {})), KIT
    )
    return case


def create_mining(llm: Chat | None = None, **settings: object) -> Mining:
    """Return settings of mining with BM25, by default without a language model."""
    return Mining(retriever=BM25(analyzer=Analyzer(identifiers=True)), llm=llm or NoLLM(), **settings)  # type: ignore[arg-type]  # of the right names


def format_reply(**content: object) -> str:
    """Return the reply of a model as JSON."""
    return json.dumps(content)


def create_model(
    sufficient: bool = True, needed: bool = True, answer: str = "It is LoopAgent"
) -> Callable[[str, int], Answer]:
    """Return how a model answers that finds every gold sufficient, and needed, or not."""

    def reply(question: str, before: int) -> Answer:
        if "mainly about" in question:
            return f"Surely:\n```json\n{format_reply(primary='kit.agents.Agent', reasoning='because')}\n```"
        if "nothing else" in question:
            return format_reply(answerable=sufficient, answer=answer, evidence="x")
        return format_reply(answerable=not needed, answer=answer, evidence="")

    return reply


def list_grades(dataset: Dataset) -> set[tuple[str, str, int]]:
    """Return the judgments of a dataset by ids: query, document, grade."""
    return {
        (dataset.queries.ids[query], dataset.corpus.ids[document], grade)
        for query, document, grade in dataset.judgments.list_rows()
    }


def answer_from_gold(question: str, system: str) -> str:
    """Answer from gold only."""
    if "mainly about" in question:
        return orjson.dumps({"primary": "kit.agents.SequentialAgent"}).decode()
    gold = "nothing else" in question
    return orjson.dumps({"answerable": gold, "answer": "ParallelAgent, LoopAgent", "evidence": "its words"}).decode()


LETTERS = Targets([Target(f"kit.{name}", "CLASS", docstring=f"About {name}.") for name in ("A", "B", "C", "D", "E")])
EVERYTHING = ImpactSettings(subsets=31, batch=8, error=1e-9)


def create_query(name: str = "q") -> Query:
    """Return a query with two golds, A and B, and three negatives."""
    case = Case(name, "s", f"What is it, {name}?", ("kit.A",), answers=("yes",))
    return Query(case, (), (0, 1), hard_negatives=(2, 3), random_negatives=(4,))


def require_documents(*names: str, misled_by: str = "nothing") -> Callable[[str, int], Answer]:
    """Return how a model answers that needs all of certain documents, and is misled by another."""

    def reply(question: str, before: int) -> Answer:
        is_right = all(f"About {name}." in question for name in names) and f"About {misled_by}." not in question
        return json.dumps({"answerable": True, "answer": "yes" if is_right else "no"})

    return reply


def measure(
    llm: Scripted, journal: Path, settings: ImpactSettings = EVERYTHING, queries: Sequence[Query] = (create_query(),)
) -> list[Impact]:
    """Return the impact of the documents of queries."""
    after = measure_impact(queries, LETTERS, llm, Journal(journal), settings, seed=0)
    return [each.impact for each in after if each.impact]
