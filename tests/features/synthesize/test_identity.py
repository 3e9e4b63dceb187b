"""The keys of stored results include the versions of their code and the prompts."""

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


def list_imports(module: str) -> set[str]:
    """Return the modules of the room that a module imports, directly or not, with itself."""
    modules, todo = set[str](), {module}
    while todo:
        name = todo.pop()
        modules.add(name)
        nodes = list(ast.walk(ast.parse(Path(str(sys.modules[name].__file__)).read_text())))
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        names = {str(node.module) for node in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}
        todo |= {each for each in names if each.startswith(f"{ROOM}.") and each in sys.modules} - modules
    return modules


@pytest.mark.parametrize("settings", [Deterministic(), ByModel(llm=always("berth")), Validation()])
def test_the_key_of_results_has_versions_of_imported_modules(
    settings: Generator | Validation,
) -> None:
    versions = set(", ".join(code_of(f"{ROOM}.pipeline", settings).values()).split(", "))
    behind = list_code(list_versions())
    assert all(behind[module] & versions for module in list_imports(type(settings).__module__))


def test_another_prompt_gives_other_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Validation(mode="llm", llm=always("2"))
    before = settings.identity
    monkeypatch.setattr(llm_checks, "_prompt", lambda step: Prompt(f"Is $query answered by $goldens? {step}"))
    assert settings.identity != before
