"""The identity of a combination has all code that computes what its result holds, and no code that presents it."""

from __future__ import annotations

import json
import pkgutil
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Self

import numpy as np
import pytest

import runner.commands
import runner.comparison
import runner.reports
import runner.store
import runner.sweep
import runner.tracking
from retrievers.base import Corpus
from retrievers.bm25 import BM25
from retrievers.code import PLUMBING, code_of, hash_code, modules_behind
from retrievers.filters import parse_filter
from runner.analysis.grading import Grading
from runner.datasets.base import Dataset, Judgments, Queries
from runner.datasets.beir import Beir
from runner.datasets.chunking import Chunking, Tokens
from runner.datasets.given import GivenDataset
from runner.datasets.source import DatasetSource
from runner.evaluation import Bench, build_result
from runner.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.sweep import identity
from runner.sweep.identity import EVALUATING, EVALUATION_PLUMBING, combination_id, list_evaluating_modules
from tests.analysis.chats import always

METRICS = MetricSettings(k_values=(1, 10), depth=10)
RETRIEVER = BM25()
TEXTS = {
    "tower": "The old lighthouse shines for ships at night, and its tower opens on Sundays.",
    "ferry": "Ferries leave for the islands every morning. Children pay half, and dogs travel free.",
    "museum": "Das Museum zeigt viele alte Modelle von Schiffen und von Fähren aus dem Norden.",
}
QUESTIONS = {
    "q1": "When does the tower of the old lighthouse open to visitors?",
    "q2": "Wann öffnet das Museum mit den alten Modellen der Schiffe?",
    "q3": "Do dogs travel free on the ferries to the islands?",
    "q4": "Where is the airport?",
}

GRADES = {"runner.analysis.grades", "runner.analysis.grading", "runner.analysis.verdicts"}
SPANS = {"runner.datasets.overlap"}
COMPUTING = {
    *("runner.evaluation", "runner.measuring", "runner.selectivity", "runner.span_sensitivity", "runner.result"),
    *("runner.analysis.clusters", "runner.analysis.language", "runner.analysis.significance"),
    *("runner.metrics.abstention", "runner.metrics.formulas", "runner.metrics.reach", "runner.metrics.scores"),
    *("runner.metrics.tokens", "runner.datasets.base", "runner.datasets.own_documents", "runner.datasets.query_fields"),
    *GRADES,
    *SPANS,
}
"""Modules that compute what a result holds; those of `GRADES` and of `SPANS` only if there are any."""

MAY_CALL_PLUMBING = {"runner.evaluation", "runner.analysis.grading", "runner.analysis.verdicts", "runner.llm.rounds"}
"""Modules that fetch, send and keep things beside what they compute; all others only compute."""

BEHIND_PLUMBING = {"runner.datasets.beir", "runner.datasets.given", "runner.llm.batch", "runner.processes"}
"""Modules that run for a result and that only plumbing and settings of datasets need, beside those of the store."""

PROGRAM = ("retrievers.", "runner.")


class Calls:
    """Notes which modules of this program run in a `with` block, in all threads, and by which others they are called.

    What runs because a module is imported does not count.
    """

    def __init__(self) -> None:
        self.callers: dict[str, set[str]] = defaultdict(set)

    def __enter__(self) -> Self:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # as documented

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith(PROGRAM):
            return
        callers = []
        above: FrameType | None = frame
        while above is not None and above.f_globals.get("__name__") != __name__:
            if above.f_code.co_name == "<module>":
                return
            callers.append(above.f_globals.get("__name__", ""))
            above = above.f_back
        self.callers[module].update([name for name in callers if name.startswith(PROGRAM) and name != module][:1])


def create_experiment(source: DatasetSource, chunking: Chunking, **more: object) -> Experiment:
    return Experiment("x", "bm25", RETRIEVER, source, METRICS, {"choices": {}}, {}, chunking=chunking, **more)  # type: ignore[arg-type]  # of the right names


def create_dataset() -> Dataset:
    """Return a dataset with filters, clusters, two languages, a query without gold and gold of a search type."""
    ids, n = list(QUESTIONS), len(QUESTIONS)
    corpus = Corpus(list(TEXTS), list(TEXTS.values()), metadata=[{"n": place} for place in range(len(TEXTS))])
    filters = [parse_filter({"n": {"to": 1}}), None, None, None]
    metadata = [{"expected_answer": "on Sundays", "area": "sea"}] * n
    queries = Queries(ids, list(QUESTIONS.values()), ["a", "a", "b", ""], metadata, ["c", "c", "", ""], filters)
    qrels = {"q1": {"tower": 2}, "q2": {"museum": 1}, "q3": {"ferry": 1}, "q4": {"tower": 0}}
    dataset = Dataset.of(corpus, queries, qrels)
    columns = (np.array([column], dtype=np.int32) for column in (0, 1, 1))
    return replace(dataset, judgments_by_search_type={"bm25": Judgments(*columns)})


def prepare_grading(bench: Bench, folder: Path) -> Experiment:
    """Return an experiment on chunks in two languages, with filters, clusters, blocks of a race and a judge."""
    reference = folder / "reference.jsonl"
    reference.write_text("".join(json.dumps({"query_id": query, "grade": 5}) + "\n" for query in QUESTIONS))
    source, chunking = GivenDataset(content="x"), Tokens(6)
    bench.datasets.add(source, chunking, create_dataset().split_documents(chunking))
    grading = Grading(llm=always('{"grade": 7, "reasoning": "r"}'), reference=str(reference))
    return create_experiment(source, chunking, grading=grading, blocks=[[0, 2], [1]])


def prepare_spans(bench: Bench, folder: Path) -> Experiment:
    """Return an experiment whose gold is passages of documents; these are read, and not yet split."""
    for name, texts in {"corpus": TEXTS, "queries": QUESTIONS}.items():
        rows = (json.dumps({"_id": row, "title": "", "text": text}) for row, text in texts.items())
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    spans = [{"query_id": f"q{i}", "doc_id": name, "start": 4, "end": 40} for i, name in enumerate(TEXTS, start=1)]
    (folder / "spans.jsonl").write_text("\n".join(map(json.dumps, spans)))
    source = Beir(path=str(folder), gold="spans", spans=str(folder / "spans.jsonl"))
    bench.datasets.load(source)
    experiment = create_experiment(source, Tokens(4))
    return replace(experiment, metrics=METRICS.add_token_measures())


@pytest.mark.parametrize("prepare", [prepare_grading, prepare_spans])
def test_whatever_runs_for_a_result_is_in_the_identity_or_plumbing(
    prepare: Callable[[Bench, Path], Experiment], tmp_path: Path
) -> None:
    bench = Bench(DiskStore(tmp_path / "store"))
    experiment = prepare(bench, tmp_path)
    with Calls() as calls:
        measured = bench.measure(experiment)
        result = build_result(experiment, measured, bench.grade(experiment, measured))
    if prepare is prepare_grading:
        assert result.grades and result.grades.agreement and result.own_gold and result.abstention
        assert result.dataset.clusters and any(".filter_" in name for name in result.diagnostics)
    else:
        assert any("span_threshold" in name for name in result.diagnostics)
        assert any(name.startswith("TokenR") for name in result.measures)
    counted = list_evaluating_modules() | set(code_of(experiment.retriever, experiment.metrics))
    plumbing = EVALUATION_PLUMBING.keys() - counted
    ran = {module for module in calls.callers if not module.startswith("runner.store.")}
    assert COMPUTING & ran == COMPUTING - (SPANS if prepare is prepare_grading else GRADES)
    assert ran <= counted | plumbing | PLUMBING.keys() | BEHIND_PLUMBING
    for module in ran & plumbing:
        assert calls.callers[module] & counted <= MAY_CALL_PLUMBING, module


@pytest.fixture
def identify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that returns the identity of a combination after a change to the code of a module."""
    bench = Bench(DiskStore(tmp_path / "store"))
    experiment = prepare_grading(bench, tmp_path)

    def identify_changed(module: str) -> str:
        monkeypatch.setattr(identity, "hash_code", lambda name: "changed" if name == module else hash_code(name))
        return combination_id(experiment, bench.dataset(experiment))

    return identify_changed


def test_a_change_to_code_that_computes_gives_another_combination(identify: Callable[[str], str]) -> None:
    modules = [*sorted(COMPUTING), "retrievers.bm25", "retrievers.search"]
    assert len({identify(module) for module in ("", *modules)}) == len(modules) + 1


def test_a_change_to_reports_runs_and_progress_gives_the_same_combination(identify: Callable[[str], str]) -> None:
    rooms = [runner.commands, runner.comparison, runner.reports, runner.store, runner.sweep, runner.tracking]
    names = {m.name for room in rooms for m in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")}
    assert {"runner.reports.console", "runner.tracking.record", "runner.store.disk"} <= names
    names |= EVALUATION_PLUMBING.keys() - set(code_of(RETRIEVER))
    assert {identify(name) for name in names} == {identify("")}


def test_each_entry_of_plumbing_leaves_out_a_module_with_a_reason() -> None:
    for module, reason in EVALUATION_PLUMBING.items():
        others = frozenset(EVALUATION_PLUMBING) - {module}
        assert any(module in modules_behind(name, others) for name in EVALUATING), module
        assert reason
