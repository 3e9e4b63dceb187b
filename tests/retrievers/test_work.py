from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from retrievers import work
from retrievers.search import Work
from retrievers.store import Key
from retrievers.work import KINDS, LSA, POOLED_TOKEN_VECTORS, RANKINGS, PlanStep, WorkKind, kind_of

ROOT = Path(__file__).parents[2]

OWN = {name: value for name, value in vars(work).items() if isinstance(value, WorkKind)}
"""The kinds of work of this program, by the names of their constants."""


def test_every_kind_of_work_is_used() -> None:
    files = [file for room in ("retrievers", "runner") for file in (ROOT / room).rglob("*.py")]
    used = {word for file in files if file != Path(work.__file__) for word in re.findall(r"\w+", file.read_text())}
    assert OWN.keys() <= used


def test_the_name_of_a_constant_is_that_of_the_kind() -> None:
    assert {name: kind.name.upper().replace(" ", "_") for name, kind in OWN.items()} == {name: name for name in OWN}


def test_every_planned_kind_of_work_names_the_sizes_that_it_grows_with() -> None:
    assert {kind.name for kind in OWN.values() if kind.step and not kind.grows_with} == {"live model"}


def test_a_kind_of_a_plug_in_is_created_and_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "KINDS", dict(KINDS))
    assert kind_of("graph of entities").counted
    graph = WorkKind("graph of entities", "search", "entities", counted=False)
    assert kind_of("graph of entities") is graph
    assert WorkKind("graph of entities", "search", "entities", counted=False) == graph
    with pytest.raises(ValueError, match="'graph of entities': is the name of another kind of work"):
        WorkKind("graph of entities", "index")
    with pytest.raises(ValueError, match="'rankings': is the name of another kind of work"):
        WorkKind("rankings", "index")
    assert kind_of("rankings") is RANKINGS


def test_a_kind_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(RANKINGS)) == RANKINGS


@pytest.mark.parametrize(
    ("name", "stage"),
    [("query terms", "search"), ("query vectors", "search"), ("candidates", "search"), ("postings", "index")],
)
def test_what_queries_cause_is_search(name: str, stage: str) -> None:
    assert kind_of(name).stage == stage


def test_what_a_plug_in_does_counts_as_indexing() -> None:
    kind = kind_of("graph of entities")
    assert (kind.stage, kind.title, kind.counted) == ("index", "graph of entities", True)
    assert "graph of entities" not in KINDS


def test_the_step_of_work_is_that_of_its_kind_unless_it_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "KINDS", dict(KINDS))
    key = Key.of(RANKINGS, "retrievers.lexical.bm25")
    assert [Work(key).title, Work(key, step=PlanStep.FUSE).title] == ["search", "fuse"]
    assert Work(Key.of(LSA, "retrievers.lexical.bm25")).title == "embed"
    assert Work(Key.of(WorkKind("graph", "index", "entities"), "retrievers.lexical.bm25")).title == "entities"


def test_tokens_are_pooled_before_they_are_searched() -> None:
    steps = list(PlanStep)
    assert POOLED_TOKEN_VECTORS.step is not None
    assert steps.index(PlanStep.EMBED) < steps.index(POOLED_TOKEN_VECTORS.step) < steps.index(PlanStep.SEARCH)
