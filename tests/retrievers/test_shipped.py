"""Every retriever in `conf/retriever` is in the lists that do not follow from it, or is an exception with a reason."""

from __future__ import annotations

import re

import pytest

from retrievers.base import Retriever
from retrievers.capabilities import derive_capabilities, iter_filtering
from runner.config import CONF
from runner.config.composing import open_loader
from runner.config.values import settle
from runner.evaluation.experiment import build_experiment
from runner.sweep.compose import Composer
from tests.config.files import find_settings, list_names
from tests.retrievers.test_contract import ANY, QDRANT

NAMES = list_names("retriever")
PAGE = CONF.parent / "docs" / "datasets.md"

NOT_IN_THE_CONTRACT = {
    "ExistingRetriever": "an object of any kind: tests/retrievers/runs/test_existing.py",
    "Http": "ServedBM25 starts a server and searches it through Http",
    "LateInteraction": "needs a model: tests/retrievers/vectors/test_late_interaction.py",
    "Postgres": "needs a server: tests/retrievers/engines/test_postgres.py",
    "Served": "does not search by content: tests/datasets/test_telemetry.py",
    "RunFile": "does not search by content: tests/retrievers/runs/test_run_file.py",
} | ({} if QDRANT else {"Qdrant": "qdrant-edge is not installed"})

NOT_IN_MESSAGES = {
    "expanded": "applies filters if its base does",
    "hybrid": "named as a hybrid of the others",
    "object": "applies filters if its object does",
    "pgvector": "postgres with vectors",
    "qdrant_text": "qdrant with other settings",
    "reranked": "applies filters if its base does",
    "run": "its rankings are taken as they are",
    "served": "its rankings are those of a service that applied filters",
}


@pytest.fixture(scope="module")
def shipped() -> dict[str, Retriever]:
    """Return each retriever with the settings of its file, by name."""
    with open_loader("evaluate", []) as (loader, _):
        composer, built = Composer(loader, "evaluate", []), {}
        for name in NAMES:
            cfg = composer.compose([f"retriever={name}", *find_settings("retriever", name)])
            built[name] = build_experiment(settle(cfg, cfg.hydra.runtime.choices)).retriever
        return built


def list_classes(shipped: dict[str, Retriever]) -> set[str]:
    return {type(retriever).__name__ for retriever in shipped.values()}


def test_every_retriever_keeps_the_contract(shipped: dict[str, Retriever]) -> None:
    tested = {kind.__name__ for retriever in ANY.values() for kind in type(retriever).__mro__}
    assert list_classes(shipped) - tested == set(NOT_IN_THE_CONTRACT)


def test_messages_and_documents_name_the_retrievers_that_apply_filters(shipped: dict[str, Retriever]) -> None:
    applying = {name for name, retriever in shipped.items() if derive_capabilities(retriever).filters}
    in_messages = set(iter_filtering())
    assert in_messages <= applying
    assert applying - in_messages == set(NOT_IN_MESSAGES)
    (table,) = re.findall(r"^\| retriever \| filter \|\n(?:\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert applying <= named <= {*NAMES, "table", "sql"}
