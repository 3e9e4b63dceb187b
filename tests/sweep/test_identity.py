"""The identity of a combination has the versions of all code that computes what its result holds."""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Self

import pytest

from release.results import WITHOUT_RESULTS, list_code, list_versions
from retrievers import code
from retrievers.base import Corpus
from retrievers.code import code_of, find_version
from retrievers.filters import parse_filter
from retrievers.lexical.bm25 import BM25
from runner.datasets.base import Judgments, Queries
from runner.datasets.beir import Beir
from runner.datasets.chunking import Chunking, Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset
from runner.datasets.source import DatasetSource
from runner.evaluation.bench import Bench, build_result
from runner.evaluation.experiment import Experiment
from runner.evaluation.grading import Grading
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.sweep.identity import combination_id, report_id
from tests.evaluation.chats import always

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

GRADES = {"runner.evaluation.grades", "runner.evaluation.grading", "runner.evaluation.verdicts"}
SPANS = {"runner.datasets.overlap"}
COMPUTING = {
    *(
        "runner.evaluation.bench",
        "runner.evaluation.measuring",
        "runner.evaluation.selectivity",
        "runner.evaluation.span_sensitivity",
        "runner.evaluation.result",
    ),
    *("runner.statistics.clusters", "runner.evaluation.language", "runner.statistics.significance"),
    *("runner.metrics.abstention", "runner.metrics.formulas", "runner.metrics.reach", "runner.metrics.scores"),
    *(
        "runner.metrics.tokens",
        "runner.datasets.base",
        "runner.datasets.dataset",
        "runner.datasets.own_documents",
        "runner.datasets.query_fields",
    ),
    *GRADES,
    *SPANS,
}
"""Modules that compute what a result holds; those of `GRADES` and of `SPANS` only if there are any."""

READING = {"runner.datasets.beir", "runner.datasets.given", "runner.system.processes"}
"""Modules that read the dataset, whose content is in the identity, and that count processes."""

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
    judgments = replace(dataset.judgments, by_search_type={"bm25": Judgments.of([(0, 1, 1)])})
    return replace(dataset, judgments=judgments)


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
    ran = set(calls.callers)
    computing = code_of("runner.evaluation.bench", "retrievers.search", experiment.retriever, experiment.metrics)
    versions = set(", ".join(computing.values()).split(", "))
    behind = {module for module, of in list_code(list_versions()).items() if of & versions}
    assert COMPUTING & ran == COMPUTING - (SPANS if prepare is prepare_grading else GRADES)
    assert behind >= COMPUTING
    assert {module for module in ran if not module.startswith(WITHOUT_RESULTS)} <= behind | READING


@pytest.fixture
def identify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that returns the identity of a combination after a module has another version."""
    bench = Bench(DiskStore(tmp_path / "store"))
    experiment = prepare_grading(bench, tmp_path)

    def identify_changed(module: str) -> str:
        def find_changed(name: str) -> str | None:
            return "changed 2" if name == module else find_version(name)

        monkeypatch.setattr(code, "find_version", find_changed)
        return combination_id(experiment, bench.dataset(experiment))

    return identify_changed


def test_a_new_version_of_what_computes_gives_another_combination(identify: Callable[[str], str]) -> None:
    modules = ["runner.evaluation.bench", "runner.metrics.settings", "retrievers.lexical.bm25"]
    assert len({identify(module) for module in ("", *modules)}) == len(modules) + 1
    assert str(find_version("retrievers.search")) in str(find_version("runner.evaluation.bench"))


def test_a_new_version_of_another_retriever_gives_the_same_combination(identify: Callable[[str], str]) -> None:
    assert identify("retrievers.vectors.dense") == identify("retrievers.engines.postgres") == identify("")


def test_a_report_is_identified_by_the_names_and_values_of_its_choice() -> None:
    choice = {"method": "search", "sampler_seed": 1, "seed": 2, "objectives": ["nDCG@10", "median_ms"]}
    same = report_id([], dict(reversed(choice.items())))
    assert report_id([], choice) == same
    others = [{"sampler_seed": 2, "seed": 1}, {"objectives": ["nDCG@10 median_ms"]}, {"method": "grid"}]
    assert len({same, *(report_id([], {**choice, **other}) for other in others)}) == 4
