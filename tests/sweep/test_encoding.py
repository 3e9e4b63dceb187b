"""The documents of a sweep are encoded on all workers, with the bytes that one process computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from retrievers.base import Corpus
from retrievers.encoders.base import Embedded
from retrievers.encoders.shards import split_shards
from retrievers.lexical.bm25 import BM25
from retrievers.store import Key, Store
from retrievers.vectors.dense import Dense
from retrievers.work import EXPORTED_MODEL
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench, MeasuredExperiment
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.store import disk
from runner.store.disk import DiskStore
from runner.sweep.encoding import encode_missing, find_encodings
from runner.sweep.identity import combination_id
from runner.sweep.settings import Backend, SweepSettings
from runner.sweep.workers import answers, crew_of, encode_documents
from tests.hashing import Hashing

TEXTS = [f"document number {n}" for n in range(1300)]
SHARDS = len([*split_shards(TEXTS)])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Beir:
    """Return a dataset of several shards of documents."""
    folder = tmp_path_factory.mktemp("documents")
    documents = [{"_id": str(n), "title": "", "text": text} for n, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "document number 7"}\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t7\t1\n")
    return Beir(path=str(folder))


@pytest.fixture
def encoder(tmp_path: Path) -> Hashing:
    (tmp_path / "encoded").mkdir()
    return Hashing(str(tmp_path / "encoded"))


def experiments_of(source: Beir, encoder: Hashing, bench: Bench) -> dict[str, Experiment]:
    retrievers = [Dense(encoder, metric="cosine"), Dense(encoder, metric="dot")]
    made = [Experiment(r.metric, "dense", r, source, MetricSettings(), {}, {}) for r in retrievers]
    return {combination_id(experiment, bench.dataset(experiment)): experiment for experiment in made}


def vectors_in(store: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in (store / "document_vectors").glob("*/vectors.npy")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, source: Beir) -> dict[str, bytes]:
    """Return what one process computes."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "encoded").mkdir()
    bench = Bench(DiskStore(folder / "store"))
    for experiment in experiments_of(source, Hashing(str(folder / "encoded")), bench).values():
        bench.evaluate(experiment)
    return vectors_in(folder / "store")


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize(("backend", "dies"), [("loky", 0), ("loky", 1), ("dask", 1), ("ray", 1)])
def test_workers_encode_each_shard_once_with_the_same_bytes(
    tmp_path: Path, source: Beir, encoder: Hashing, alone: dict[str, bytes], backend: Backend, dies: int
) -> None:
    if backend == "ray":
        pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
    encoder = Hashing(encoder.folder, dies)
    bench = Bench(DiskStore(tmp_path / "shared"))
    experiments = experiments_of(source, encoder, bench)
    (encoding,) = find_encodings(experiments, bench)
    assert len(encoding.missing) == SHARDS
    with crew_of(SweepSettings(backend=backend, workers=2), bench) as crew:
        encode_documents(encoding, crew)
        assert find_encodings(experiments, bench) == []
        found = dict(answers(experiments, crew, 1))
    assert vectors_in(tmp_path / "shared") == alone
    assert len(encoder.list_encoded()) == len(set(encoder.list_encoded())) == SHARDS
    assert all(isinstance(answer, MeasuredExperiment) for answer in found.values())


def test_what_is_stored_is_not_encoded_again(tmp_path: Path, source: Beir, encoder: Hashing) -> None:
    bench = Bench(DiskStore(tmp_path / "shared"))
    experiments = experiments_of(source, encoder, bench)
    (encoding,) = find_encodings(experiments, bench)
    some = type(encoding)(encoding.combination, encoding.experiment, frozenset(sorted(encoding.missing)[:4]))
    encode_missing(some, bench)
    assert len(encoder.list_encoded()) == 4
    (rest,) = find_encodings(experiments, bench)
    assert rest.missing == encoding.missing - some.missing
    encode_missing(rest, bench)
    assert len(set(encoder.list_encoded())) == len(encoder.list_encoded()) == SHARDS


class Exported(Hashing):
    """An encoder that stores something else, as the export of a model, before it encodes."""

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        exported = store.arrays(Key.of(EXPORTED_MODEL, "tests.hashing"), lambda: {"archive": np.ones(3)})
        assert exported["archive"].tolist() == [1, 1, 1]
        return super().embed(corpus, store)


def test_other_work_of_an_encoder_goes_through_the_store(tmp_path: Path, source: Beir, encoder: Hashing) -> None:
    bench = Bench(DiskStore(tmp_path / "shared"))
    (encoding,) = find_encodings(experiments_of(source, Exported(encoder.folder), bench), bench)
    encode_missing(encoding, bench)
    assert len(encoder.list_encoded()) == SHARDS


def test_rankings_in_the_store_need_no_encoding(
    tmp_path: Path, source: Beir, encoder: Hashing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)  # rankings are kept
    bench = Bench(DiskStore(tmp_path / "shared"))
    experiments = experiments_of(source, encoder, bench)
    for experiment in experiments.values():
        bench.evaluate(experiment)
    for entry in bench.store.list_entries():
        if entry.kind == "document vectors":
            bench.store.remove(entry)
    assert find_encodings(experiments, bench) == []


def test_retrievers_without_an_encoder_are_not_planned(tmp_path: Path, source: Beir) -> None:
    bench = Bench(DiskStore(tmp_path / "shared"))
    experiment = Experiment("bm25", "bm25", BM25(), source, MetricSettings(), {}, {})
    assert find_encodings({"c": experiment}, bench) == []
    assert bench.datasets._datasets == {}
