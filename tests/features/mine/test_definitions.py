"""From benchmark definitions to cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.files import json_objects
from runner.features.mine.code import parse_code
from runner.features.mine.extraction import CaseFiles, Imports, Options, Suite
from runner.features.mine.targets import Target, Targets
from tests.features.mine.worlds import FIXED, PARALLEL, TESTED, create_choice, create_source, write_world


def test_answers_name_gold_one_name_or_a_list(tmp_path: Path) -> None:
    case = write_world(tmp_path).load().cases[0]
    assert case.query == "Which class runs sub-agents at the same time?"
    assert case.names == ("kit.agents.ParallelAgent", PARALLEL, "kit.somewhere.Tool")
    assert case.answers == ("ParallelAgent", "Tool")


def test_the_primary_name_of_a_task_is_mentioned_in_use_and_rare(tmp_path: Path) -> None:
    one, two, three = write_world(tmp_path).load().cases[3:]
    assert one.query == "Create a `SequentialAgent` that runs two others."
    assert one.names == ("kit.agents.SequentialAgent",)
    assert one.candidates == ("kit.agents.SequentialAgent", "kit.agents.Agent")
    assert one.metadata["gold_inferred"] is True
    assert two.query == "02: A loop."
    assert two.names == ("kit.agents.LoopAgent",)  # of test_file, for there is no fixed_file
    assert three.fault == "neither fixed_file nor test_file exists"


def test_missing_code_is_replaced_by_recorded_facts(tmp_path: Path) -> None:
    write_world(tmp_path)
    imports = [{"kind": "from", "module": "kit.tools", "level": 0, "name": "Thing", "asname": None}]
    facts = {"3": {"fixed.py": {"path": "cases/three/fixed.py", "imports": imports, "called_names": ["Thing"]}}}
    (tmp_path / "fix_imports.json").write_text(json.dumps(facts))
    assert create_source(tmp_path).load().cases[-1].names == ("kit.tools.Thing",)


def test_code_is_parsed_and_never_run() -> None:
    code = parse_code(FIXED, "fixed.py")
    assert set(code.imports) == {"typing.Any", "kit.agents.Agent", "kit.agents.SequentialAgent", "nowhere"}
    assert code.uses("kit.agents.SequentialAgent")
    assert not code.uses("nowhere")
    assert parse_code(TESTED, "test.py").uses("kit.agents.LoopAgent")  # under another name, as a base class


def test_an_error_of_syntax_names_the_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"^fixed.py:2: invalid Python"):
        parse_code("import this\ndef (", "fixed.py")


def test_names_that_are_rare_weigh_more_than_those_of_every_case() -> None:
    targets = Targets([Target(f"kit.{name}", "CLASS") for name in ("Base", "Rare", "Other")])
    imports = {"a": ("Base", "Rare"), "b": ("Base", "Other"), "c": ("Base",)}
    facts = {
        path: {"imports": [{"kind": "from", "module": "kit", "name": name} for name in names]}
        for path, names in imports.items()
    }
    entries = json_objects(Path("suite"), "entry", [{"id": path, "name": "", "fixed_file": path} for path in imports])
    cases = list(Imports().cases(Suite("suite", entries, CaseFiles([], facts)), targets))
    assert [case.names for case in cases] == [("kit.Rare",), ("kit.Other",), ("kit.Base",)]
    assert cases[0].metadata["specificity"] == {"kit.Rare": 0.2, "kit.Base": 0.0}


@pytest.mark.parametrize("correct", ["B", 1, "Use kit.Rare for it"])
@pytest.mark.parametrize("lettered", [True, False])
def test_gold_of_a_choice_is_in_the_correct_option_then_the_explanation(correct: object, lettered: bool) -> None:
    if lettered and correct == 1:
        return  # letters have no number
    options = ["Use kit.Base", "Use kit.Rare for it"]
    entry = {
        "id": "q",
        "question": "Which?",
        "code_snippet": "x = 1",
        "options": dict(zip("AB", options, strict=True)) if lettered else options,
        "correct_answer": correct,
        "explanation": "OtherThing is not it, nor any numpy.array, but it uses `OtherThing` and kit.Gone.",
    }
    targets = Targets([Target(f"kit.{name}", "CLASS") for name in ("Base", "Rare", "OtherThing")])
    (case,) = Options().cases(Suite("s", json_objects(Path("s"), "entry", [entry]), CaseFiles([], {})), targets)
    assert case.query == "Which?\n\nx = 1"
    assert case.names == ("kit.Rare", "OtherThing", "kit.Gone")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Does LoopAgent stop by itself?", ("LoopAgent",)),
        ("What does `Session.close` do that `kit.agents.LoopAgent` does not?", ("Session", "kit.agents.LoopAgent")),
        ("Session or not?", ()),  # a word of the sentence
        ("Is `sub_agents` a list?", ()),
    ],
)
def test_without_names_in_the_options_the_question_names_gold(
    tmp_path: Path, question: str, names: tuple[str, ...]
) -> None:
    case = create_choice(tmp_path, question=question, explanation="It takes its sub_agents.")
    assert case.names == names
    assert case.metadata.get("gold_from") == ("question" if names else None)


def test_names_in_the_answer_override_those_of_the_question(tmp_path: Path) -> None:
    assert create_choice(tmp_path, question="Is LoopAgent it?", explanation="ParallelAgent is.").names == (
        "ParallelAgent",
    )


def test_an_answer_with_foreign_names_lists_them(tmp_path: Path) -> None:
    case = create_choice(tmp_path, question="Which is it?", explanation="It is Foreign_Thing, or OtherClass.")
    assert case.names == ()
    assert (
        case.nameless == "its correct option and explanation name none of the targets, only Foreign_Thing, OtherClass"
    )


def test_the_code_of_a_question_is_part_of_its_query(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("# --8<-- [start:a]\nx = 1\n# --8<-- [end:a]\ny = 2\n")
    entry = {"question": "What does the following code do?"}
    case = create_choice(tmp_path, **entry, code_snippet_ref={"file": "code.py", "section": "a"})
    assert (case.query, case.fault) == ("What does the following code do?\n\nx = 1", "")
    moved = create_choice(tmp_path, **entry, code_snippet_ref={"file": "benchmarks/old/s/code.py"})
    assert moved.fault == "the code is missing: no file benchmarks/old/s/code.py"
    gone = create_choice(tmp_path, **entry, code_snippet_ref={"file": "code.py", "section": "b"})
    assert gone.fault == "the code is missing: no section b in code.py"


@pytest.mark.parametrize(
    ("question", "is_fault"),
    [
        ("What does the following code snippet print?", True),
        ("Which error does this Python code raise?", True),
        ("What does the following code print?\n\n```python\nx\n```", False),
        ("Which class runs code in a sandbox?", False),
    ],
)
def test_a_question_about_code_without_code_is_a_fault(tmp_path: Path, question: str, is_fault: bool) -> None:
    assert bool(create_choice(tmp_path, question=question).fault) is is_fault


def test_code_is_read_beside_a_benchmark_in_another_folder(tmp_path: Path) -> None:
    write_world(tmp_path)
    (tmp_path / "suites/fix/cases/two/fixed.py").write_text(FIXED)
    entry = {"id": "fix:moved", "benchmark_type": "fix", "name": "A", "fixed_file": "bench/defs/fix/cases/two/fixed.py"}
    (tmp_path / "suites/fix/benchmark.yaml").write_text(yaml.safe_dump({"benchmarks": [entry]}))
    case = create_source(tmp_path).load().cases[-1]
    assert (case.fault, case.candidates) == ("", ("kit.agents.Agent", "kit.agents.SequentialAgent"))


def test_an_entry_of_an_unknown_kind_is_a_case_with_a_fault(tmp_path: Path) -> None:
    write_world(tmp_path)
    (tmp_path / "suites/fix/benchmark.yaml").write_text(
        yaml.safe_dump({"benchmarks": [{"id": "riddle", "benchmark_type": "riddle"}]})
    )
    (tmp_path / "suites/fix").rename(tmp_path / "suites/riddles")
    assert (
        create_source(tmp_path)
        .load()
        .cases[-1]
        .fault.startswith("unknown kind of suite; the known kinds are api, fix, choice")
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "suites/api/benchmark.yaml",
            "benchmarks:\n- id: a\n  question: 'b\n",
            "api/benchmark.yaml:4:1: invalid YAML",
        ),
        (
            "suites/api/benchmark.yaml",
            "cases: []",
            "api/benchmark.yaml: the key 'benchmarks' with the list of entries is missing",
        ),
        ("suites/api/benchmark.yaml", "benchmarks: {a: 1}", "api/benchmark.yaml: 'benchmarks' is not a list"),
        (
            "suites/api/benchmark.yaml",
            "benchmarks: [{id: a, question: b, answers: [x]}]",
            "api/benchmark.yaml, entry 1: 'answers' must be a list of objects",
        ),
        (
            "suites/api/benchmark.yaml",
            "benchmarks: [{id: a, question: b, answers: [{fully_qualified_class_name: [1]}]}]",
            "api/benchmark.yaml, entry 1, answer 1: 'fully_qualified_class_name' is [1]",
        ),
        (
            "suites/api/benchmark.yaml",
            "benchmarks: [{id: 'fix:one', question: b, answers: []}]",
            "the id 'fix:one' occurs more than once, in api and fix",
        ),
        (
            "suites/api/benchmark.yaml",
            "benchmarks: [{id: a, question: q, benchmark_type: choice, options: [x], correct_answer: Z}]",
            "api/benchmark.yaml, entry 1: 'correct_answer' is 'Z'; it must be one of the options A, 0",
        ),
        ("fix_imports.json", "[1]", "fix_imports.json: expected an object that maps cases to files"),
        (
            "fix_imports.json",
            '{"a": {"b": {"path": "cases/three/fixed.py"}}}',
            "cases/three/fixed.py: expected the imports of a file",
        ),
    ],
)
def test_an_error_names_its_place(tmp_path: Path, file: str, content: str, message: str) -> None:
    write_world(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(DatasetError, match=re.escape(message)):
        create_source(tmp_path).load()


def test_empty_definitions_are_refused(tmp_path: Path) -> None:
    write_world(tmp_path)
    for suite in ("api", "fix"):
        (tmp_path / "suites" / suite / "benchmark.yaml").write_text("benchmarks: []")
    with pytest.raises(ConfigError, match="no suite has entries"):
        create_source(tmp_path).load()
