"""A config runs only code of modules that the command line or an installed plug-in names."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from runner.config.objects import ConfigError, build

FACTORY = {"_target_": "retrievers.runs.existing.ExistingRetriever"}


@pytest.fixture
def my_rag(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return an importable module that has imported a module and functions of others."""
    module = ModuleType("my_rag")
    source = """
import subprocess
from functools import partial
from subprocess import getoutput
from retrievers.texts import fetch_documents
class Index:
    @classmethod
    def load(cls): return cls()
    def __call__(self, query): return []
build, by_part, wrapped, ready = lambda: Index(), partial(Index.load), partial(getoutput, "id"), Index()
"""
    exec(source, vars(module))
    monkeypatch.setitem(sys.modules, "my_rag", module)
    return module


@pytest.mark.parametrize("name", ["build", "Index", "Index.load", "by_part", "ready"])
def test_a_factory_of_an_allowed_module_may_be_named(my_rag: ModuleType, name: str) -> None:
    node = {**FACTORY, "factory": f"{my_rag.__name__}:{name}"}
    assert build(node, "retriever", ["my_rag"]).factory == f"my_rag:{name}"


@pytest.mark.parametrize(
    "name",
    [
        "subprocess.getoutput",
        "subprocess.os.system",
        "getoutput",
        "wrapped",
        "build.__globals__.get",
        "build.__class__",
        "Index.__subclasses__",
        "ready.__reduce_ex__",
    ],
)
def test_a_factory_must_be_defined_in_an_allowed_module(my_rag: ModuleType, name: str) -> None:
    node = {**FACTORY, "factory": f"{my_rag.__name__}:{name}"}
    with pytest.raises(ConfigError, match=r"^retriever\.factory=my_rag:.*: a config can only create classes"):
        build(node, "retriever", ["my_rag"])


@pytest.mark.parametrize(
    "factory",
    ["runner.system.environment:subprocess.getoutput", "retrievers.texts:fetch_documents", "my_rag:fetch_documents"],
)
def test_the_program_contains_no_factory(my_rag: ModuleType, factory: str) -> None:
    for plugins in ([my_rag.__name__], ["my_rag", "runner", "retrievers"]):
        with pytest.raises(ConfigError, match=r"^retriever\.factory=.*: this program contains no factory"):
            build({**FACTORY, "factory": factory}, "retriever", plugins)


@pytest.mark.parametrize(
    "target",
    [
        "runner.store.disk.DiskStore",
        "runner.features.judge.desk.journal.AssessorJournal",
        "runner.llm.api_model.ApiModel",
    ],
)
def test_a_config_creates_only_classes_that_declare_what_they_use(target: str) -> None:
    with pytest.raises(ConfigError, match=rf"^retriever\._target_={target}: a config cannot create this class"):
        build({"_target_": target}, "retriever")
