"""What was made by other code, or by another prompt, is not taken for what would be made now."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from release.results import list_code, list_versions
from retrievers.code import code_of
from runner.features.synthesize import llm_checks
from runner.features.synthesize.base import Generator
from runner.features.synthesize.by_model import ByModel
from runner.features.synthesize.generators import Deterministic
from runner.features.synthesize.validation import Validation
from runner.llm.prompts import Prompt
from tests.evaluation.chats import always

ROOM = "runner.features.synthesize"


def imported(module: str) -> set[str]:
    """Return the modules of the room that a module imports, directly or not, with itself."""
    found, todo = set[str](), {module}
    while todo:
        name = todo.pop()
        found.add(name)
        nodes = list(ast.walk(ast.parse(Path(str(sys.modules[name].__file__)).read_text())))
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        names = {str(node.module) for node in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}
        todo |= {each for each in names if each.startswith(f"{ROOM}.") and each in sys.modules} - found
    return found


@pytest.mark.parametrize("settings", [Deterministic(), ByModel(llm=always("berth")), Validation()])
def test_whatever_a_part_imports_is_behind_a_version_in_the_key_of_its_results(
    settings: Generator | Validation,
) -> None:
    versions = set(", ".join(code_of(f"{ROOM}.pipeline", settings).values()).split(", "))
    behind = list_code(list_versions())
    assert all(behind[module] & versions for module in imported(type(settings).__module__))


def test_another_prompt_gives_verdicts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Validation(mode="llm", llm=always("2"))
    before = settings.identity
    monkeypatch.setattr(llm_checks, "_prompt", lambda step: Prompt(f"Is $query answered by $goldens? {step}"))
    assert settings.identity != before
