"""Runs and sweeps over ways to cut documents, from the command line to every report that reads them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import orjson
import pytest

from retrievers.base import Rankings
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from runner.__main__ import main
from runner.comparison.agreement import measure_pair
from runner.comparison.insights import find_insights
from runner.datasets.chunking import Chunking, Headings, Sentences, Tokens, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.needle import Needle
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.failures import Lexicon
from runner.evaluation.records import load_record, save_record
from runner.evaluation.result import Hits, Result
from runner.features.golden.document import golden_report
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.tracking.settings import Tracking
from tests.fake_llm import FakeLLM

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INLINE = "tracking.background=false"
PAGES = {
    "tower": "# Lighthouse\nIt is old.\n## Lamp\nIt shines for ships at night.\n## Hours\nThe tower opens on Sundays.",
    "ferry": "# Ferry\nFerries leave for the islands.\n## Fares\nChildren pay half. Dogs travel free on Sundays.",
    "museum": "# Museum\nModels of ships and of ferries.",
}
ASKED = [
    ("q1", "when does the tower open", "tower"),
    ("q2", "dogs on ferries", "ferry"),
    ("q3", "models of ships", "museum"),
    ("q4", "airport", "museum"),
]
NEEDLE = ("dataset=needle", "dataset.questions=questions.json", "dataset.documents=pages")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has three pages, and four questions about them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "pages" / f"{name}.md").write_text(text)
    asked = [
        {"id": i, "question": text, "doc_id": gold, "type": "t", "expected_answer": "yes"} for i, text, gold in ASKED
    ]
    (tmp_path / "questions.json").write_bytes(orjson.dumps({"questions": asked}))
    return tmp_path


@pytest.fixture
def logged(here: Path, tracking: Tracking) -> Path:
    """Return the same with a store of runs."""
    assert tracking.uri.endswith(f"{here}/mlruns/mlflow.db")
    return here


def evaluated(chunking: Chunking, here: Path, name: str = "bm25") -> tuple[Dataset, Result]:
    source = Needle(questions=str(here / "questions.json"), documents=str(here / "pages"))
    bench = Bench(DiskStore(here / "cache"))
    experiment = Experiment(name, "bm25", BM25(), source, MetricSettings(), {}, {}, chunking=chunking)
    return bench.dataset(experiment), bench.evaluate(experiment)


def records(folder: Path) -> list[Result]:
    return [load_record(path) for path in sorted(folder.glob("mlruns/artifacts/**/result.json"))]


def found_of(result: Result) -> Hits:
    assert result.hits is not None
    return result.hits


def test_sizes_are_an_axis_of_a_sweep_whose_runs_compare_query_by_query(
    logged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-m", *NEEDLE, "retriever=bm25", "chunking=tokens", "chunking.size=4,8", INLINE]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "2 combinations" in first
    small, large = sorted(records(logged), key=lambda result: -(result.dataset.chunks or 0))
    assert small.dataset.fingerprint == large.dataset.fingerprint
    assert small.dataset.corpus_fingerprint != large.dataset.corpus_fingerprint
    assert small.dataset.documents == large.dataset.documents == 3
    assert (small.dataset.chunks or 0) > (large.dataset.chunks or 0) > 3
    assert small.queries.expected == large.queries.expected == [["tower"], ["ferry"], ["museum"], ["museum"]]
    assert {*found_of(small).parents} <= {*PAGES}
    assert main(command) == 0  # all is done, and found to be
    assert capsys.readouterr().out == first
    assert len(records(logged)) == 2


def test_several_chunks_of_a_document_are_one_judged_document_and_no_warning(
    logged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", *NEEDLE, "retriever=bm25", "chunking=tokens", "chunking.size=4,100", INLINE]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    rates = []
    for result in records(logged):
        found, holes = found_of(result), result.holes
        assert holes is not None
        first = [{found.parents[hit] for hit in row[:10] if hit >= 0} for row in found.rankings.documents.tolist()]
        judged = sum(gold in documents for documents, (*_, gold) in zip(first, ASKED, strict=True))
        rates.append(holes.rates["10"])
        assert rates[-1] == pytest.approx(1 - judged / sum(map(len, first)))
    assert min(rates) > 0 and max(rates) < 1
    assert "the hole rates at 10 differ" not in shown
    assert "are unjudged" not in shown


def test_whole_documents_and_chunks_of_them_are_an_axis_too(logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", *NEEDLE, "retriever=bm25", "chunking=none,headings,sentences", INLINE]) == 0
    assert "3 combinations" in capsys.readouterr().out
    assert {result.dataset.chunks for result in records(logged)} == {None, 3, 6}


def test_a_plan_counts_the_work_of_each_size(logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *NEEDLE, "retriever=bm25", "chunking=tokens", "chunking.size=4,8", INLINE]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 documents in " in shown
    assert "4 queries" in shown


@pytest.mark.parametrize("chunking", [Tokens(4), Tokens(6, 2), Sentences(6), Headings(6)])
def test_a_result_says_where_the_first_chunk_of_gold_is(chunking: Chunking, here: Path) -> None:
    dataset, result = evaluated(chunking, here)
    found = found_of(result)
    for query, (_, _, gold) in enumerate(ASKED):
        ids = [found.parents[chunk] for chunk in found.rankings.documents[query] if chunk >= 0]
        rank = ids.index(gold) + 1 if gold in ids else np.inf
        assert result.of("RR")[query] == pytest.approx(1 / rank)
        assert result.of("R@10")[query] == (rank <= 10)
        assert np.count_nonzero(found.grades[query] > 0) == (gold in ids)
    assert set(found.documents) == set(dataset.corpus.ids)


def test_a_record_keeps_the_documents_of_chunks(here: Path, tmp_path: Path) -> None:
    _, result = evaluated(Tokens(4), here)
    save_record(result, tmp_path / "record")
    again, found = load_record(tmp_path / "record"), found_of(result)
    parents = dict(zip(found.documents, found.parents, strict=True))
    assert again.dataset == result.dataset
    assert dict(zip(found_of(again).documents, found_of(again).parents, strict=True)).items() <= parents.items()
    sent = pickle.loads(pickle.dumps(replace(found, rankings=found.rankings.cut(1), grades=found.grades[:, :1])))
    assert [parents[chunk] for chunk in sent.documents] == list(sent.parents)


def test_a_record_of_whole_documents_has_no_others(here: Path, tmp_path: Path) -> None:
    _, result = evaluated(Whole(), here)
    save_record(result, tmp_path / "record")
    assert not found_of(load_record(tmp_path / "record")).parents
    assert result.dataset.chunks is None


def test_no_gold_is_said_to_be_absent_for_being_cut(here: Path) -> None:
    dataset, result = evaluated(Tokens(4), here)
    found = find_insights(result, Lexicon(dataset.documents, Analyzer(), MemoryStore()))
    (missed,) = found.failures
    assert result.queries.ids[missed.query] == "q4"
    assert missed.gold == "museum"
    assert missed.absent == ()
    assert missed.overlap == 0
    assert find_insights(result).failures[0].absent == ()


def test_a_golden_report_says_where_expected_items_are(here: Path) -> None:
    _, result = evaluated(Tokens(4), here)
    first = golden_report([result], NOW)["query_results"][0]
    (aligned,) = first["relevance_alignment"]
    assert (aligned["item_id"], aligned["actual_rank"]) == ("tower", first["first_relevant_rank"])
    assert aligned["actual_score"] == pytest.approx(max(first["retrieved_scores"]))


def test_chunkings_agree_where_they_find_the_same_documents_first(here: Path) -> None:
    (_, whole), (_, cut) = evaluated(Whole(), here), evaluated(Tokens(4), here)
    ranked = np.array([[3, 0, 1, 0, -1]], dtype=np.int32)  # chunks of: tower, ferry, museum, ferry
    few = found_of(cut)
    parents = ["ferry", "museum", "", "tower"]
    one = replace(
        few, rankings=_rankings(ranked, 4), documents=list("abcd"), parents=parents, grades=_ungraded(ranked, 4)
    )
    documents = np.array([[0, 1, 2, -1, -1]], dtype=np.int32)
    ids = ["tower", "ferry", "museum"]
    other = replace(found_of(whole), rankings=_rankings(documents, 4), documents=ids, grades=_ungraded(documents, 4))
    same = measure_pair(replace(cut, hits=one), replace(whole, hits=other)).coefficients
    assert same == dict.fromkeys(same, 1.0)


def _rankings(documents: np.ndarray, queries: int) -> Rankings:
    rows = np.repeat(documents, queries, axis=0)
    return Rankings(rows, np.where(rows < 0, -np.inf, -np.arange(rows.shape[1])).astype(np.float32))


def _ungraded(documents: np.ndarray, queries: int) -> np.ndarray:
    return np.full((queries, documents.shape[1]), -1, dtype=np.int32)


def test_a_language_model_sees_chunks_under_the_names_of_their_documents(logged: Path) -> None:
    with FakeLLM() as server:
        asking = ("llm=openai", "llm.model=m", f"llm.base_url={server.url}", "grading.backoff_s=0")
        assert main([*NEEDLE, "retriever=bm25", "chunking=headings", *asking, INLINE]) == 0
        (question,) = [asked.question for asked in server.asked if "when does the tower open" in asked.question]
    assert "[Chunk 1 - tower]\nLighthouse > Hours\nThe tower opens on Sundays." in question
    (result,) = records(logged)
    assert result.grades is not None
    assert result.grades.ranks[:3].tolist() == [1 / value for value in result.of("RR")[:3]]


def test_a_sweep_over_chunk_sizes_judges_each_document_once(logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One pool for long chunks and short ones: each document is judged once, for all of them."""
    ways = ("chunking=tokens", "chunking.size=4,9")
    assert main(["-m", *NEEDLE, "retriever=bm25", *ways, INLINE]) == 0
    told = capsys.readouterr().out
    run = next(line.removeprefix("run: ") for line in told.splitlines() if line.startswith("run: "))
    with FakeLLM(lambda question, system: '{"grade": 3}') as server:
        asking = ("llm=openai", "llm.model=m", f"llm.base_url={server.url}", "judging.depth=3", "output=judged")
        assert main(["judge", f"run={run}", *asking]) == 0
        shown = [asked.question for asked in server.asked if "when does the tower open" in asked.question]
    rows = [line.split("\t") for line in Path("judged/judgments.tsv").read_text().splitlines()[1:]]
    assert {document for _, document, _ in rows} <= set(PAGES)
    assert len({(query, document) for query, document, _ in rows}) == len(rows) == len(server.asked)
    assert not any(PAGES["ferry"] in question for question in shown)
    for standing in orjson.loads(Path("judged/standings.json").read_bytes()):
        assert standing["before"]["judged"] < standing["after"]["judged"]
        assert standing["after"]["irrelevant"] == standing["after"]["relevant"]  # nothing is left unjudged
