"""A race drops combinations that are surely not the best; a language model is called only for the searched queries."""

from __future__ import annotations

import csv
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.statistics.racing import Race
from tests.fake_llm import FakeLLM

QUERIES, BLOCK = 60, 5


def answer(path: str, body: Any) -> dict[str, Any]:
    """Order two passages: the model `good` puts the gold first, all others last."""
    question = body["messages"][-1]["content"]
    gold_first = question.index("gold") < question.index("other")
    best_first = gold_first == (body["model"] == "good")
    text = "[1] > [2]" if best_first else "[2] > [1]"
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


@pytest.fixture
def fake(tracking: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """Return a language model, in a folder with a dataset in which each query has two candidates, one of them gold."""
    monkeypatch.chdir(tmp_path)
    documents = [{"id": f"d{i}{kind}", "text": f"word{i} {kind}"} for i in range(QUERIES) for kind in ("gold", "other")]
    queries = [{"id": f"q{i}", "text": f"word{i}", "gold": f"d{i}gold"} for i in range(QUERIES)]
    for name, rows in (("documents", documents), ("queries", queries)):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with FakeLLM(respond=answer, delay_s=0.03) as service:
        yield service


def sweep(fake: FakeLLM, *more: str) -> list[str]:
    return [
        "-m", "retriever=reranked", "reranker=llm", "retriever.depth=2", "llm=openai",
        f"llm.base_url={fake.url}", "llm.model=bad,good,worse", "grading=none", "metrics.primary=RR",
        "dataset=jsonl", "dataset.documents=documents.jsonl", "dataset.queries=queries.jsonl",
        "tracking.background=false", "sweep.race=true", f"sweep.race_block={BLOCK}", *more,
    ]  # fmt: skip


def count_calls(fake: FakeLLM) -> Counter[str]:
    return Counter(request.model for request in fake.asked)


def read_race(folder: Path = Path()) -> dict[str, Any]:
    (file,) = folder.rglob("race.json")
    record: dict[str, Any] = json.loads(file.read_text())
    return record


def rows(query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("mlruns/mlflow.db")) as database:
        return database.execute(query).fetchall()


def test_a_race_calls_the_model_only_until_a_combination_is_dropped(
    fake: FakeLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(sweep(fake)) == 0
    record = read_race()
    assert [one["name"] for one in record["dropped"]] == ["model=bad", "model=worse"]
    searched = [one["queries"] for one in record["dropped"]]
    assert count_calls(fake) == {"good": QUERIES, "bad": searched[0], "worse": searched[1]}
    assert all(count % BLOCK == 0 and count < QUERIES for count in searched)
    assert record["saved"] == record["saved_calls"] == 2 * QUERIES - sum(searched)
    out = " ".join(capsys.readouterr().out.split())
    assert "2 of 3 combinations were dropped" in out
    assert f"saved {record['saved']} of {3 * QUERIES} searches" in out
    assert f"up to {record['saved']} calls of language models" in out
    assert "model=worse" in next(Path().rglob("report.md")).read_text()

    table = list(csv.DictReader(next(Path().rglob("leaderboard.csv")).read_text().splitlines()))
    assert [(row["rank"], row["name"], row["RR"]) for row in table] == [
        ("1", "model=good", "1.0"), ("dropped", "model=bad", ""), ("dropped", "model=worse", ""),
    ]  # fmt: skip
    partial = [(row["race_queries"], row["race_leader"], row["race_partial_mean"]) for row in table[1:]]
    assert partial == [(f"{float(n)}", "model=good", "0.5") for n in searched]

    dropped = "select run_uuid from tags where key = 'dropped'"
    assert rows(f"select status, count(*) from runs where run_uuid in ({dropped}) group by 1") == [("KILLED", 2)]
    names = {name for (name,) in rows(f"select distinct key from metrics where run_uuid in ({dropped})")}
    assert names == {"race/queries", "race/p", "race/partial_mean", "race/partial_mean_of_leader"}
    assert rows("select count(*) from runs where status = 'FINISHED' and name = 'model=good'") == [(1,)]

    before, runs = count_calls(fake), rows("select * from runs")
    assert main(sweep(fake)) == 0
    assert count_calls(fake) == before and rows("select * from runs") == runs


def interrupt_second(observe: Callable[[Race, Any], Any]) -> Callable[[Race, Any], Any]:
    """Return `observe`, interrupted by the user at its second call."""
    calls = itertools.count(1)

    def interrupt(race: Race, values: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return observe(race, values)

    return interrupt


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize("backend", [["sequential"], ["loky", "sweep.workers=2"]], ids=["sequential", "loky"])
def test_an_interrupted_race_resumes_without_paying_twice(
    backend: list[str], fake: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = sweep(fake, *(f"sweep.backend={backend[0]}", *backend[1:]))
    with monkeypatch.context() as patch:
        patch.setattr(Race, "observe", interrupt_second(Race.observe))
        assert main(command) == 130
    assert sum(count_calls(fake).values()) == 3 * 2 * BLOCK
    assert main(command) == 0
    record = read_race()
    paid = {one["name"].partition("=")[2]: one["queries"] for one in record["dropped"]}
    assert count_calls(fake) == {"good": QUERIES} | {name: max(n, 2 * BLOCK) for name, n in paid.items()}


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_a_race_on_workers_is_the_same_as_a_sequential_one(backend: str, fake: FakeLLM) -> None:
    if backend == "dask":
        pytest.importorskip("distributed", reason="dask is not installed: pip install '.[dask]'")
    workers = (f"sweep.backend={backend}", "sweep.workers=2")
    assert main(sweep(fake, "sweep.output=one")) == 0
    alone, calls = read_race(Path("one")), count_calls(fake)
    fake.asked.clear()
    assert main(sweep(fake, "sweep.output=two", "store.path=other", "tracking.experiment=other", *workers)) == 0
    assert count_calls(fake) == calls
    assert Path("two/race.json").read_bytes() == Path("one/race.json").read_bytes()
    assert [one["name"] for one in alone["dropped"]] == ["model=bad", "model=worse"]


def test_a_survivor_with_a_failed_search_repeats_only_its_block(fake: FakeLLM) -> None:
    bad = itertools.count(1)

    def fail_once(path: str, body: Any) -> dict[str, Any]:
        if body["model"] == "bad" and next(bad) == BLOCK + 3:
            raise ValueError
        return answer(path, body)

    fake.respond = fail_once
    assert main(sweep(fake, "llm.retries=0")) == 0
    assert read_race()["exempt"] == ["model=bad"]
    assert count_calls(fake)["bad"] == QUERIES + BLOCK


def test_the_survivor_has_the_same_result_as_without_a_race(fake: FakeLLM) -> None:
    assert main(sweep(fake, "tracking.experiment=race")) == 0
    assert main([*sweep(fake, "tracking.experiment=whole", "sweep.race=false")]) == 0
    query = "select value from metrics join runs using (run_uuid) where key = 'mrr' and name = 'model=good'"
    (first,), (second,) = rows(query)
    assert first == second == 1


SEARCH = ("hydra/sweeper=optuna", "hydra.sweeper.sampler=random", "hydra.sweeper.seed=1", "sweep.select_on=test")


def test_a_search_drops_trials_that_are_worse_than_the_best_one(fake: FakeLLM) -> None:
    assert main(sweep(fake, *SEARCH, "hydra.sweeper.n_trials=4")) == 0
    record, calls = read_race(), count_calls(fake)
    assert {one["name"] for one in record["dropped"]} == {"model=bad", "model=worse"}
    paid = {one["name"].partition("=")[2]: one["queries"] for one in record["dropped"]}
    assert calls == {"good": QUERIES} | paid and max(paid.values()) < QUERIES
    trials = list(csv.DictReader(next(Path().rglob("trials.csv")).read_text().splitlines()))
    complete = [row for row in trials if not row["race_queries"]]
    assert {row["RR"] for row in complete} == {"1.0"} and len(complete) < len(trials)
    assert {row["RR"] for row in trials if row["race_queries"]} == {""}

    assert main(sweep(fake, *SEARCH, "hydra.sweeper.n_trials=4")) == 0
    assert count_calls(fake) == calls and read_race() == record


def test_an_interrupted_search_drops_the_same_trials_without_paying_twice(
    fake: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = sweep(fake, *SEARCH, "hydra.sweeper.n_trials=4")
    with monkeypatch.context() as patch:
        patch.setattr(Race, "observe", interrupt_second(Race.observe))
        assert main(command) == 130
    assert main([*command, "sweep.output=one"]) == 0
    calls = count_calls(fake)
    fake.asked.clear()
    fresh = ("store.path=other", "tracking.experiment=other", "hydra.sweeper.storage=memory", "sweep.output=two")
    assert main([*command, *fresh]) == 0
    assert count_calls(fake) == calls
    assert Path("two/race.json").read_bytes() == Path("one/race.json").read_bytes()


def test_a_combination_with_failed_searches_is_never_dropped(fake: FakeLLM) -> None:
    def fail(path: str, body: Any) -> dict[str, Any]:
        if body["model"] == "bad":
            raise ValueError
        return answer(path, body)

    fake.respond = fail
    main(sweep(fake, "llm.retries=0"))
    record = read_race()
    assert record["exempt"] == ["model=bad"]
    assert [one["name"] for one in record["dropped"]] == ["model=worse"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param(
            "sweep.backend=slurm",
            "with backend=slurm each block would wait in the queue",
            marks=pytest.mark.skipif(find_spec("submitit") is None, reason="submitit is not installed"),
        ),
        ("sweep.select_on=kfold", "race drops combinations by all queries"),
        ("hydra/sweeper=optuna", "this search selects by cross-validation; set sweep.select_on to a split"),
        ("hydra/sweeper=optuna hydra.sweeper.sampler=gp", "the sampler gp cannot use dropped trials"),
        ("hydra/sweeper=optuna hydra.sweeper.objectives=[RR,mean_ms]", "supports only one objective"),
        ("metrics.primary=NumRet", "a race needs a measure with values from 0 to 1"),
        ("retriever=http/runner", "queries a live service"),
    ],
)
def test_a_race_that_is_not_possible_is_refused(
    override: str, message: str, fake: FakeLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = sweep(fake, *override.split())
    if override.startswith("retriever="):
        drop = ("retriever=", "reranker=", "retriever.depth", "llm")
        arguments = [
            *(a for a in arguments if not a.startswith(drop)),
            override,
            "retriever.base_url=http://127.0.0.1:1",
        ]
    assert main(arguments) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not fake.asked
