"""Rankings in files take part in evaluations and comparisons like any other, and need no documents."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import bm25s
import ir_measures
import numpy as np
import pytest
import Stemmer

from retrievers.composed.fusion import Hybrid
from retrievers.index_facts import describe_indexes
from retrievers.lexical.bm25 import BM25
from retrievers.runs.existing import ExistingRetriever
from retrievers.runs.run_file import RunFile
from runner.__main__ import main
from runner.commands.compare import is_run
from runner.comparison.insights import find_insights
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.datasets.judged import JudgedFiles
from runner.datasets.source import DatasetSource
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.grading import Grading
from runner.evaluation.records import write_trec
from runner.evaluation.result import Result
from runner.metrics.delegated import parse_delegated
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.sweep.identity import combination_id
from runner.tracking.settings import Tracking
from tests.evaluation.chats import always

METRICS = MetricSettings(measures=(*MetricSettings().measures, "ERR@10"), depth=1000, k_values=(1, 10, 1000))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(DiskStore(tmp_path / "store"))


@pytest.fixture
def cranfield(collections: Path) -> Beir:
    return Beir(path=str(collections / "cranfield"))


def evaluate(bench: Bench, retriever: object, source: DatasetSource) -> Result:
    return bench.evaluate(Experiment("x", "x", retriever, source, METRICS, {"choices": {}}, {}))  # type: ignore[arg-type]  # a retriever


def same(one: Result, other: Result) -> None:
    assert one.measures == other.measures
    np.testing.assert_allclose(one.scores, other.scores, rtol=0, atol=1e-9)
    assert one.queries.statuses == other.queries.statuses


def without_documents(source: Beir) -> JudgedFiles:
    folder = Path(source.path)
    files = {"queries": str(folder / "queries.jsonl"), "qrels": str(folder / "qrels" / "test.tsv")}
    return JudgedFiles(**files, max_queries=source.max_queries)


def test_a_run_file_read_back_has_every_measure_with_and_without_documents(
    bench: Bench, cranfield: Beir, tmp_path: Path
) -> None:
    few = replace(cranfield, max_queries=40)
    result = evaluate(bench, BM25(), few)
    write_trec(result, tmp_path / "run.trec.gz")
    run = RunFile(str(tmp_path / "run.trec.gz"))
    whole, none = (evaluate(bench, run, source) for source in (few, without_documents(few)))
    same(result, whole)
    same(result, none)
    assert result.holes and whole.holes and none.holes
    assert result.holes.rates == whole.holes.rates == none.holes.rates
    fused = Hybrid({"run": run, "bm25": BM25(k1=1.2)}, alpha=0)
    same(result, evaluate(bench, fused, few))


def test_a_run_of_bm25s_has_the_measures_that_ir_measures_gives_it(
    bench: Bench, cranfield: Beir, tmp_path: Path
) -> None:
    dataset = cranfield.load()
    run = search_with_bm25s(dataset)
    lines = [f"{q} Q0 {d} {rank} {s} bm25s\n" for q, hits in run.items() for rank, (d, s) in enumerate(hits.items())]
    (tmp_path / "bm25s.trec").write_text("".join(lines))
    result = evaluate(bench, RunFile(str(tmp_path / "bm25s.trec")), without_documents(cranfield))
    # ir_measures has no F1, and its Judged breaks ties otherwise than trec_eval
    qrels = list(ir_measures.read_trec_qrels(str(write_qrels(cranfield, tmp_path))))
    names = {
        m: m.replace("@1000", "") if m in ("Rprec@1000", "Bpref@1000") else m
        for m in result.measures
        if m.split("@")[0] not in ("F1", "Judged")
    }
    wanted = [parse_delegated(name) for name in names.values()]
    means = ir_measures.calc_aggregate(wanted, qrels, run)
    for measure, parsed in zip(names, wanted, strict=True):
        assert result.means[measure] == pytest.approx(means[parsed], abs=1e-9), measure


def search_with_bm25s(dataset: Dataset) -> dict[str, dict[str, float]]:
    """Return the 100 documents that bm25s ranks first, with their scores."""
    stemmer, corpus = Stemmer.Stemmer("english"), dataset.corpus
    settings = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(corpus.contents()), **settings), show_progress=False)
    found, scores = index.retrieve(bm25s.tokenize(list(dataset.queries.texts), **settings), k=100, show_progress=False)
    rows = zip(dataset.queries.ids, found.tolist(), scores.tolist(), strict=True)
    return {q: {corpus.ids[d]: s for d, s in zip(*row, strict=True)} for q, *row in rows}


def write_qrels(source: Beir, folder: Path) -> Path:
    lines = (Path(source.path) / "qrels" / "test.tsv").read_text().splitlines()[1:]
    (folder / "qrels.txt").write_text("".join("{} 0 {} {}\n".format(*line.split("\t")) for line in lines))
    return folder / "qrels.txt"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: queries, judgments, and two runs."""
    monkeypatch.chdir(tmp_path)
    queries = [{"_id": f"q{i}", "text": f"word {i}"} for i in range(8)]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (tmp_path / "qrels.tsv").write_text("".join(f"q{i}\tgood\t1\n" for i in range(8)))
    (tmp_path / "x.trec").write_text("".join(f"q{i} Q0 good 1 2 x\nq{i} Q0 bad 2 1 x\n" for i in range(8)))
    (tmp_path / "y.json").write_text(json.dumps({f"q{i}": ["bad", "good"] for i in range(8)}))
    return tmp_path


DATASET = ("dataset=judged", "dataset.queries=queries.jsonl", "dataset.qrels=qrels.tsv")


def test_files_are_compared_by_the_judgments_of_a_dataset(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "baseline=x.trec", "candidate=y.json", *DATASET, "--json", "statistics.permutations=100"]
    assert main(words) == 1
    content = json.loads(capsys.readouterr().out)
    assert [system["source"] for system in content["systems"]] == ["x.trec", "y.json"]
    assert main([*words, "gate=none", "runs.primary=RR"]) == 0
    assert main(["compare", "baseline=x.trec", "candidate=y.json"]) == 2
    assert "error: x.trec: a run can only be scored with judgments; choose a dataset" in capsys.readouterr().err
    (here / "z.trec").write_text("q1 Q0\n")
    assert main(["compare", "baseline=x.trec", "candidate=z.trec", *DATASET]) == 2
    assert "error: candidate=z.trec: z.trec:1: expected 6 columns" in capsys.readouterr().err


def test_two_runs_need_only_qrels_and_other_retrievers_reject_queries_without_texts(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(here)
    (here / "queries.jsonl").unlink()
    alone = ("dataset=judged", "dataset.qrels=qrels.tsv", "tracking=none")
    assert main(["compare", "baseline=x.trec", "candidate=y.json", *alone, "gate=none", "--json"]) == 0
    assert [system["label"] for system in json.loads(capsys.readouterr().out)["systems"]] == ["x.trec", "y.json"]
    parts = [f"retriever@retriever.parts.{part}=run" for part in ("lexical", "semantic")]
    paths = ["retriever.parts.lexical.path=x.trec", "retriever.parts.semantic.path=y.json"]
    assert main([*alone, "retriever=hybrid", *parts, *paths, "retriever.alpha=0.5"]) == 0
    (here / "search_all.py").write_text("def build():\n    return lambda query: ['good']\n")
    capsys.readouterr()
    assert main([*alone, "retriever=object", "retriever.factory=search_all:build"]) == 2
    assert "reads the texts of queries, but the dataset has only their ids; set" in capsys.readouterr().err


def test_a_packed_run_is_a_run_whatever_its_json_looks_like(here: Path) -> None:
    (here / "y.json.gz").write_bytes(gzip.compress(b"{}"))
    (here / "report.json").write_text('{"query_results": []}')
    (here / "result.json").write_text('{"measures": []}')
    (here / "ranks.csv").write_text("id,question,target_doc_id,x_rank\nq1,?,d,1\n")
    (here / "run.csv").write_text("qid,docno,score\nq1,d,1\n")
    names = ("x.trec", "y.json", "y.json.gz", "run.csv", "report.json", "result.json", "ranks.csv", "missing.trec")
    assert [is_run(Path(name)) for name in names] == [True] * 4 + [False] * 4


def test_a_factory_on_the_command_line_is_imported_and_its_arguments_are_swept(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "own_search.py").write_text("def build(n=1):\n    return lambda query: ['bad', 'good'][:n]\n")
    sys.path.insert(0, str(here))
    try:
        words = [*DATASET, "retriever=object", "retriever.factory=own_search:build", "tracking.background=false"]
        assert main([*words, "+retriever.arguments.n=2"]) == 0
        assert "nDCG@10 0.631" in capsys.readouterr().out  # 1 / log2(3)
        (here / "retriever").mkdir()
        (here / "retriever" / "other.yaml").write_text("defaults: [object]\nfactory: own_search:build\n")
        assert main(["--config-dir=.", *DATASET, "retriever=other"]) == 2
        assert (
            "retriever.factory=own_search:build: a config can only create classes of this program"
            in capsys.readouterr().err
        )
    finally:
        sys.path.remove(str(here))


def test_another_file_under_the_same_name_is_another_combination(here: Path, bench: Bench) -> None:
    source = JudgedFiles(queries="queries.jsonl", qrels="qrels.tsv")

    def identify() -> str:
        run = RunFile("x.trec")
        experiment = Experiment("x", "x", run, source, METRICS, {}, {}, index=describe_indexes(run))
        return combination_id(experiment, bench.dataset(experiment))

    before, result = identify(), evaluate(bench, RunFile("x.trec"), source)
    assert result.index == describe_indexes(RunFile("x.trec"))
    assert identify() == before
    (here / "x.trec").write_text("q0 Q0 good 1 1 x\n")
    assert identify() != before


def test_texts_that_only_the_index_has_classify_failures_and_reach_the_judge(
    here: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"good": "a lighthouse", "bad": "word of mouth"}

    def build() -> object:
        return SimpleNamespace(
            invoke=lambda query: ["bad"], fetch_texts=lambda ids: {name: texts[name] for name in ids}
        )

    module = ModuleType("my_rag")
    monkeypatch.setitem(sys.modules, "my_rag", module)
    module.build = build  # type: ignore[attr-defined]  # a module of the test
    source, chat = JudgedFiles(queries="queries.jsonl", qrels="qrels.tsv"), always('{"grade": 3, "reasoning": "r"}')
    experiment = Experiment(
        "x", "x", ExistingRetriever("my_rag:build"), source, METRICS, {"choices": {}}, {}, grading=Grading(llm=chat)
    )
    result = bench.evaluate(experiment)
    insight = find_insights(result, bench.lexicon(experiment, result))
    assert insight.by_text
    assert all("vocabulary mismatch" in failure.classes for failure in insight.failures)
    assert len(insight.failures) == 8
    assert not any("absent from the corpus" in failure.classes for failure in find_insights(result).failures)
    bench.grade(experiment, bench.measure(experiment))
    assert len(chat.asked) == 8
    assert all("word of mouth" in question for question in chat.asked)
