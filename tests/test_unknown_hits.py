"""A service that has more documents than the dataset is measured as if the dataset had them all."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.services.http_api import Http
from retrievers.store import MemoryStore
from runner.comparison.insights import Insights, find_insights
from runner.comparison.leaderboard import build_leaderboard
from runner.datasets.base import Queries, Raw
from runner.datasets.chunking import Chunking, Tokens, Whole
from runner.datasets.source import DatasetSource
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.failures import Lexicon
from runner.evaluation.records import load_record, save_record, write_trec
from runner.evaluation.report.page import result_page
from runner.evaluation.report.printing import show_result
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.result import Result
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from tests.retrievers.fake_api import Answer, Asked, FakeApi, fake_api, hits
from tests.retrievers.http_search import FORM

WORDS = ["red", "blue", "green", "boat", "house", "tree", "sea", "harbour", "pier", "ferry"]
TEXTS = [" ".join(WORDS[(i * step + i // 7) % len(WORDS)] for step in (1, 3, 7)) for i in range(60)]
WHOLE = Corpus([f"d{i:02d}" for i in range(60)], TEXTS)
QUERIES = ["red boat", "blue house", "sea pier", "green tree ferry", "harbour"]
QRELS = [
    (f"q{q}", f"d{d:02d}", grade) for q in range(4) for d, grade in ((q, 2), (q + 11, 1), (q + 23, 0), (q + 30, 1))
]
JUDGED = sorted({document for _, document, _ in QRELS})
METRICS = MetricSettings(measures=(*MetricSettings().measures, "ERR@10"))


@settings(frozen=True, kw_only=True)
class World(DatasetSource):
    """Five queries, one without gold, over the documents named in `ids`."""

    ids: tuple[str, ...] = tuple(WHOLE.ids)

    def read(self) -> Raw:
        texts = dict(zip(WHOLE.ids, WHOLE.texts, strict=True))
        queries = Queries([f"q{i}" for i in range(5)], QUERIES, [""] * 5)
        return Raw(Corpus(self.ids, [texts[name] for name in self.ids]), queries, QRELS, ["q4"])


@contextmanager
def service(corpus: Corpus, queries: Sequence[str], k: int = 100) -> Iterator[FakeApi]:
    """Run an API that finds what BM25 finds in a corpus."""
    rankings = BM25().index(corpus, MemoryStore()).search(queries, k)
    rows = zip(rankings.documents.tolist(), rankings.scores.tolist(), strict=True)
    answers: Mapping[str, Answer] = {
        query: hits(*((corpus.ids[d], s) for d, s in zip(*row, strict=True) if d != NOTHING))
        for query, row in zip(queries, rows, strict=True)
    }

    def search(asked: Asked) -> Answer:
        return answers[asked.body["query"]]

    with fake_api(search) as api:
        yield api


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(DiskStore(tmp_path / "store"))


@pytest.fixture
def measured(bench: Bench) -> Iterator[Callable[..., Result]]:
    """Return what measures the service on documents with these ids."""
    with service(WHOLE, QUERIES) as api:
        http = Http(api.url, **FORM)

        def measure(retriever: object = http, chunking: Chunking | None = None, **source: object) -> Result:
            made = experiment(retriever, World(**source))  # type: ignore[arg-type]  # any settings
            return bench.evaluate(replace(made, chunking=chunking or Whole()))

        measure.http = http  # type: ignore[attr-defined]  # set on the function
        yield measure


def experiment(retriever: object, source: DatasetSource) -> Experiment:
    return Experiment("http", "http", retriever, source, METRICS, {"choices": {}}, {})  # type: ignore[arg-type]  # a retriever


def same(one: Result, other: Result) -> None:
    assert one.measures == other.measures
    np.testing.assert_allclose(one.scores, other.scores, rtol=0, atol=1e-9)
    assert one.queries.statuses == other.queries.statuses
    assert one.hits and other.hits
    assert [one.hits.ids(i) for i in range(len(one.queries.ids))] == [
        other.hits.ids(i) for i in range(len(other.queries.ids))
    ]
    assert one.hits.grades.tolist() == other.hits.grades.tolist()


def test_a_corpus_of_only_the_judged_documents_gives_the_same_measures(measured: Callable[..., Result]) -> None:
    whole, few = measured(), measured(ids=tuple(JUDGED))
    assert 0 < whole.means["nDCG@10"] < 1
    same(whole, few)
    assert (whole.holes.unknown_anywhere, few.holes.unknown_anywhere > 0) == (0, True)  # type: ignore[union-attr]  # there are holes
    assert whole.holes.rate == few.holes.rate == pytest.approx(1 - few.means["Judged@10"], abs=0.02)  # type: ignore[union-attr]  # there are holes


def test_a_hit_that_is_judged_counts_with_its_grade_also_if_the_corpus_lacks_it(
    measured: Callable[..., Result],
) -> None:
    rest = tuple(name for name in WHOLE.ids if name not in JUDGED[::2])
    same(measured(), measured(ids=rest, unknown_judged="keep"))


def test_a_hybrid_with_a_service_is_that_of_all_documents(
    measured: Callable[..., Result],
) -> None:
    http = measured.http  # type: ignore[attr-defined]  # set on the function
    hybrid = Hybrid({"one": http, "two": Http(http.base_url, **FORM, timeout_s=20)})
    same(measured(hybrid), measured(hybrid, ids=tuple(JUDGED)))


def test_whole_document_hits_score_the_same_with_a_chunked_corpus(measured: Callable[..., Result]) -> None:
    chunked = measured(chunking=Tokens(size=2))
    np.testing.assert_allclose(chunked.scores, measured().scores, rtol=0, atol=1e-9)


def test_the_record_and_the_run_show_unknown_hits_at_their_rank(
    measured: Callable[..., Result], tmp_path: Path
) -> None:
    result = measured(ids=tuple(JUDGED))
    assert result.hits
    unknown = set(result.hits.ids(0)) - set(JUDGED)
    assert unknown
    save_record(result, tmp_path)
    write_trec(result, tmp_path / "run.gz")
    read, sent = load_record(tmp_path), pickle.loads(pickle.dumps(result))
    for again in (read, sent):
        assert again.hits
        assert again.hits.ids(0) == result.hits.ids(0)
        assert again.hits.unknown_ids == result.hits.unknown_ids >= unknown
        assert again.hits.is_unknown.sum(axis=1).tolist() == result.hits.is_unknown.sum(axis=1).tolist()
        assert again.holes == result.holes
    lines = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()
    assert [line.split()[2] for line in lines if line.startswith("q0 ")] == result.hits.ids(0)


def test_reports_show_the_hole_rate_and_warn_of_unknown_hits(
    measured: Callable[..., Result], capsys: pytest.CaptureFixture[str]
) -> None:
    result, told = measured(ids=tuple(JUDGED)), Insights()
    for report in (result_markdown(result, told), result_page(result, told)):
        assert "Hole rate" in report
        assert "are missing from the dataset" in report
    show_result(result)
    assert "are missing from the dataset" in capsys.readouterr().out
    notes = build_leaderboard([result], result.primary).notes
    assert [note for note in notes if note.startswith("Warning: 1 of 1 combinations have hits that are missing")]
    without_documents = replace(result, dataset=replace(result.dataset, documents=0))
    for quiet in (measured(), without_documents):
        show_result(quiet)
        assert "are missing from the dataset" not in capsys.readouterr().out
        assert not [note for note in build_leaderboard([quiet], quiet.primary).notes if "missing" in note]


def test_failure_classes_tell_the_same_of_known_documents_beside_unknown_ones(
    measured: Callable[..., Result], bench: Bench
) -> None:
    """A hit without a text is no distractor, but the unjudged document beside it still is like gold."""
    few = tuple(name for name in WHOLE.ids if name in JUDGED or int(name[1:]) % 2)
    told = []
    for ids in (tuple(WHOLE.ids), few):
        lexicon = Lexicon(bench.datasets.load(World(ids=ids)).documents, bench.analyzer, bench.store)
        told.append(find_insights(measured(ids=ids), lexicon).failures)
    assert [(f.query, f.gold, f.gold_rank) for f in told[0]] == [(f.query, f.gold, f.gold_rank) for f in told[1]]
    assert "absent from the corpus" not in {name for failure in told[1] for name in failure.classes}
