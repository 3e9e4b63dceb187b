"""A plan says what a sweep then does, and does nothing itself."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
import pytest

from retrievers.base import Corpus, Retriever
from retrievers.capabilities import is_live
from retrievers.composed.agentic import Agentic
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.base import Vectors
from retrievers.encoders.lsa import LSAEncoder
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.encoders.shards import SHARD
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.lexical.sqlite_fts import SqliteFts
from retrievers.search import Work, plan_rankings, search_cached
from retrievers.store import Arrays, Key, MemoryStore
from retrievers.vectors.dense import Dense
from retrievers.work import (
    DIAGNOSTICS,
    LATENCY,
    LIVE_MODEL,
    RANKINGS,
    TEXTS_CUT,
    TOKENS_BY_TIE_ORDER,
    WorkKind,
)
from runner.__main__ import main
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.settings import MetricSettings
from runner.store import disk, entries
from runner.store.disk import DiskStore
from runner.sweep.plan import plan_combinations
from runner.sweep.work import Plan
from runner.tracking.settings import Tracking
from tests.broken import Broken
from tests.evaluation.test_bench import Small
from tests.retrievers.test_contract import ALL, each

T = TypeVar("T")

MEASURED = {LATENCY, DIAGNOSTICS, TEXTS_CUT}
"""The kinds of work that are a part of searching, planned with it."""

IN_MEMORY = {LIVE_MODEL, TOKENS_BY_TIE_ORDER}
"""The kinds of planned work that no store keeps on disk."""

MINILM = Dense(SentenceTransformerEncoder(), index_type="hnsw")
SHIPPED: dict[str, Retriever] = {
    **ALL,
    "dense model": MINILM,
    "hybrid with a model": Hybrid({"bm25": BM25(), "dense": MINILM, "unused": RankBM25()}, weights=[1.0, 2.0, 0.0]),
}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have texts encoded without a model, which takes seconds to open."""

    def encode(encoder: object, model: object, role: str, texts: Sequence[str]) -> Vectors:
        return np.array([[len(text), 1, 1 + text.count("e")] for text in texts], dtype=np.float32)

    monkeypatch.setattr(SentenceTransformerEncoder, "_open", lambda encoder, store: None)
    monkeypatch.setattr(SentenceTransformerEncoder, "_encode", encode)


class Recording(MemoryStore):
    """A store that notes what it is asked for: arrays, and live objects."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, Key] = {}
        self.shared: dict[str, Key] = {}

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        self.asked[key.digest] = key
        return super().share(key, build)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        self.shared[key.digest] = key
        return super().share(key, make)


def works(work: Work) -> Iterator[Work]:
    yield work
    for needed in work.needs:
        yield from works(needed)


def long(corpus: Corpus) -> Corpus:
    """Return a corpus of more than one shard."""
    n = 2 * SHARD // len(corpus) + 1
    return Corpus(
        [f"{i}/{d}" for i in range(n) for d in corpus.ids], [f"{i} {t}" for i in range(n) for t in corpus.texts]
    )


@each(SHIPPED)
@pytest.mark.usefixtures("model")
def test_what_is_planned_is_what_a_search_asks_of_an_empty_store(retriever: Retriever, harbour: Corpus) -> None:
    for corpus in (harbour, long(harbour)):
        store, queries = Recording(), ["ships", "the market", "ferries"]
        plan = {
            work.key.digest: work.key.kind
            for work in works(plan_rankings(retriever, corpus, queries, 5, MemoryStore()))
        }
        search_cached(retriever, corpus, queries, 5, store)
        asked = {digest: key.kind for digest, key in store.asked.items() if key.kind not in MEASURED}
        kept = {digest: kind for digest, kind in plan.items() if kind not in IN_MEMORY}
        if isinstance(retriever, (Agentic, Expanded)):  # what a model asks for besides shows only when it is asked
            kept |= {digest: kind for digest, kind in asked.items() if kind == RANKINGS}
        assert kept == asked
        assert all(digest in store.shared for digest, kind in plan.items() if kind in IN_MEMORY)


@pytest.mark.usefixtures("model")
def test_a_model_is_opened_for_what_is_not_embedded_yet(harbour: Corpus) -> None:
    plan = plan_rankings(MINILM, harbour, ["ships"], 5, MemoryStore())
    names = {name: [w for w in works(plan) if w.title == name] for name in ("search", "index", "embed", "open model")}
    assert {name: len({w.key.digest for w in found}) for name, found in names.items()} == {
        "search": 1,
        "index": 1,
        "embed": 2,
        "open model": 1,
    }
    assert all(work.needs for work in names["embed"])


@pytest.mark.usefixtures("model")
def test_opening_a_model_is_a_work_of_its_own_and_no_part_of_embedding(
    harbour: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[WorkKind] = []
    opened: list[WorkKind] = []

    class Nesting(MemoryStore):
        def share(self, key: Key, make: Callable[[], T]) -> T:
            def noted() -> T:
                under_way.append(key.kind)
                made = make()
                under_way.pop()
                return made

            return super().share(key, noted)

    monkeypatch.setattr(SentenceTransformerEncoder, "_open", lambda encoder, store: opened.append(under_way[-1]))
    search_cached(MINILM, harbour, ["ships"], 5, Nesting())
    assert opened == [LIVE_MODEL]


def test_a_retriever_that_cannot_plan_is_a_search(harbour: Corpus) -> None:
    plan = plan_rankings(Broken("never"), harbour, ["ships"], 5, MemoryStore())
    assert (plan.title, plan.needs) == ("search", ())


METRICS = MetricSettings(k_values=(1, 2), depth=10)


def experiment(retriever: Retriever, name: str = "one") -> Experiment:
    return Experiment(name, "bm25", retriever, Small(), METRICS, {"choices": {}}, {})


def plan_for(
    bench: Bench,
    *wanted: Retriever,
    finished: Sequence[str] = (),
    workers: int = 1,
    earlier: Sequence[Result] = (),
) -> Plan:
    by_name = {str(n): experiment(retriever, str(n)) for n, retriever in enumerate(wanted)}
    return plan_combinations("sweep", by_name, finished, bench, workers, earlier)


def counted(plan: Plan) -> dict[str, tuple[int, int, int]]:
    return {stage.name: (stage.distinct, stage.there, stage.to_do) for stage in plan.stages}


@each(SHIPPED)
@pytest.mark.usefixtures("model")
def test_after_an_evaluation_the_plan_counts_all_cached_work(
    retriever: Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", -1)  # nothing is too cheap
    before = plan_for(Bench(DiskStore(tmp_path)), retriever)
    assert all(stage.there == 0 and stage.to_do == stage.distinct for stage in before.stages)
    Bench(DiskStore(tmp_path)).evaluate(experiment(retriever))
    after = plan_for(Bench(DiskStore(tmp_path)), retriever)
    in_memory = {w.title for w in works(plan_rankings(retriever, Small().load().corpus, [], 4, MemoryStore()))}
    for stage in after.stages:
        if stage.name == "score" or is_live(retriever):
            assert stage.to_do == 1
        else:
            assert stage.to_do == 0
            assert stage.there == stage.distinct or stage.name in in_memory


def test_works_that_combinations_share_are_counted_once(tmp_path: Path) -> None:
    parts = {"words": BM25(), "meaning": Dense(LSAEncoder())}
    hybrids = [Hybrid(parts, alpha=alpha) for alpha in (0.2, 0.5, 0.8)]
    plan = plan_for(Bench(DiskStore(tmp_path)), *hybrids, BM25(k1=2.0), RankBM25())
    assert counted(plan) == {
        "count terms": (2, 0, 2),
        "embed": (1, 0, 1),
        "search": (4, 0, 4),
        "fuse": (3, 0, 3),
        "score": (5, 0, 5),
    }


def test_what_only_finished_combinations_need_is_not_to_do(tmp_path: Path) -> None:
    plan = plan_for(Bench(DiskStore(tmp_path)), BM25(), SqliteFts(), finished=["1"])
    assert counted(plan)["index"] == (1, 0, 0)
    assert counted(plan)["search"] == (2, 0, 1)
    assert (plan.finished, list(plan.to_do)) == (1, ["0"])


def test_a_plan_leaves_the_store_alone(tmp_path: Path) -> None:
    plan_for(Bench(DiskStore(tmp_path / "store")), *SHIPPED.values())
    assert not (tmp_path / "store").exists()


# The command


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "tracking.background=false"]) == 0
    found: dict[str, Any] = orjson.loads(capsys.readouterr().out)
    return found


AXES = ("retriever=bm25", "retriever.k1=0.6,0.9")


@pytest.mark.usefixtures("here")
def test_before_a_sweep_all_is_to_do_and_after_it_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = read_plan(capsys, "plan", "--json", *AXES)
    assert (before["combinations"], before["finished"], before["to_do"]) == (2, 0, ["k1=0.6", "k1=0.9"])
    assert main(["-m", *AXES, "tracking.background=false"]) == 0
    after = read_plan(capsys, "plan", "--json", *AXES)
    assert (after["combinations"], after["finished"], after["to_do"]) == (2, 2, [])
    assert all(stage["to_do"] == 0 for stage in after["stages"])
    more = read_plan(capsys, "plan", "--json", "retriever=bm25", "retriever.k1=0.6,0.9,1.2")
    assert (more["combinations"], more["finished"], more["to_do"]) == (3, 2, ["k1=1.2"])
    afresh = read_plan(capsys, "plan", "--json", *AXES, "sweep.resume=false")
    assert afresh["finished"] == 0


def test_a_dry_run_says_the_same_and_neither_computes_nor_logs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["plan", *AXES]) == 0
    plan = capsys.readouterr().out
    assert main(["-m", *AXES, "sweep.dry_run=true"]) == 0
    assert capsys.readouterr().out == plan
    assert "2 combinations on golden (test): 120 documents, 64 queries" in plan
    assert not (here / "mlruns" / "cache").exists()
    with closing(sqlite3.connect(here / "mlruns" / "mlflow.db")) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def list_stages(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {stage["name"]: stage for stage in plan["stages"]}


@pytest.mark.usefixtures("here")
def test_a_plan_has_times_only_after_a_run_has_measured_them(capsys: pytest.CaptureFixture[str]) -> None:
    more = ("retriever=bm25", "retriever.k1=0.6,0.9,1.2")
    assert main(["plan", *more]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no time or disk space: no comparable work was measured" in out
    assert not re.search(r"\d s\b", out)
    before = read_plan(capsys, "plan", "--json", *more)
    assert before["wall_seconds"] is None
    assert before["unknown"] == ["count terms", "search", "score"]
    assert main(["-m", *AXES, "tracking.background=false"]) == 0
    after = read_plan(capsys, "plan", "--json", *more)
    stages = list_stages(after)
    assert after["unknown"] == []
    assert stages["search"]["to_do"] == stages["score"]["to_do"] == 1
    assert after["wall_seconds"] == pytest.approx(sum(stage["seconds"] for stage in after["stages"]))
    assert stages["score"]["seconds"] > 0
    assert stages["search"]["seconds"] > 0


@pytest.mark.usefixtures("here")
def test_a_sweep_with_models_begins_with_the_time_that_the_store_lets_it_expect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)  # keep the rankings, whose time is a rate
    monkeypatch.setattr("runner.sweep.execute.needs_model", lambda retriever: True)
    monkeypatch.setattr("runner.sweep.execute.LONG_S", 1e-6)
    said = []
    for words in (AXES, AXES, ("retriever=bm25", "retriever.k1=0.6,0.9,1.2")):
        capsys.readouterr()
        assert main(["-m", *words, "tracking.background=false"]) == 0
        said.append(capsys.readouterr().err)
    expected = re.compile(
        r"^expected time: at least \d+(\.\d+)? m?s; what takes this time: python -m runner plan", re.M
    )
    assert [bool(expected.search(lines)) for lines in said] == [False, False, True]


@pytest.mark.usefixtures("here")
def test_the_times_of_one_retriever_say_nothing_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever=bm25", "tracking.background=false"]) == 0
    after = read_plan(capsys, "plan", "--json", "retriever=rank_bm25")
    assert "search" in after["unknown"]
    assert "score" not in after["unknown"]


@pytest.mark.usefixtures("here")
def test_a_preset_is_planned_without_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    plan = read_plan(capsys, "plan", "experiment=bm25_grid", "--json", "sweep.backend=loky", "sweep.workers=2")
    assert (plan["name"], plan["combinations"], plan["workers"]) == ("bm25_grid", 36, 2)


@pytest.mark.usefixtures("here")
def test_a_single_combination_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_plan(capsys, "plan", "--json", "retriever=sqlite_fts")["combinations"] == 1


def test_of_a_search_only_the_number_of_trials_and_the_power_are_known(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("plan", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=7", "retriever.k1=interval(0.5,2)")
    arguments += ("sweep.select_on=test",)
    assert main(list(arguments)) == 0
    assert "sweep over k1: a search of up to 7 combinations" in capsys.readouterr().out
    plan = read_plan(capsys, *arguments, "--json")
    assert (list(plan), plan["name"], plan["combinations"]) == (["name", "combinations", "power"], "sweep over k1", 7)
    assert [(power["units"], power["pairs"]) for power in plan["power"]] == [(54, 21)]
    folded = [*arguments[:-1], "sweep.select_on=kfold"]
    assert main(folded) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "42 combinations (7 trials, and 7 more for each of 5 folds that validate the selection)" in said
    assert not (here / "mlruns" / "optuna.db").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "retriever.k2=1"], "retriever.k2: no such setting; did you mean retriever.k1?"),
        (["plan", "hydra.mode=RUN"], "hydra.mode: cannot be set, because plan always describes a sweep"),
        (["plan", "dataset=beir", "dataset.path=nowhere"], "nowhere"),
        (["sweep.dry_run=true"], "sweep.dry_run: needs a sweep; add -m"),
        (["--jsn"], "--jsn: no such flag"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_plan_counts_only_intact_entries_as_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", -1)
    Bench(DiskStore(tmp_path)).evaluate(experiment(BM25()))
    for manifest in (tmp_path / "postings").glob(f"*/{entries.MANIFEST}"):
        manifest.write_text("{")
    assert counted(plan_for(Bench(DiskStore(tmp_path)), BM25(), BM25(k1=2.0)))["count terms"] == (1, 0, 1)
