"""A sweep pays for each text once, whatever ends it and whoever else runs, and its plan names the price."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from tests.fake_embeddings import EmbeddingService, kill, write_tokenizer
from tests.fake_llm import FakeLLM
from tests.warm import WarmProcess, run_command, start_command

PRICE = 0.5
"""Per million tokens."""


class Stand:
    """The service, and the process that is killed when it makes one of some requests, counted from now."""

    def __init__(self) -> None:
        self.service = EmbeddingService(self._before)
        self._deadly: dict[int, WarmProcess] = {}

    def kill_at(self, request: int, process: WarmProcess) -> None:
        self._deadly[len(self.service.requests) + request] = process

    def _before(self, number: int) -> None:
        if process := self._deadly.get(number):
            assert process.pid is not None
            kill(process.pid)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tokenizer(tmp_path / "tokenizer.json")
    texts = [f"text {'very ' * (i % 5)}number {i}" for i in range(40)]
    for name, part in (("first", texts[:30]), ("second", texts[20:])):
        rows = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(part)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    rows = [json.dumps({"id": f"q{i}", "text": f"number {i}", "gold": f"d{i}"}) for i in range(8)]
    (tmp_path / "queries.jsonl").write_text("\n".join(rows))
    return tmp_path


def sweep(fake: FakeLLM, documents: str, *axes: str, **encoder: object) -> list[str]:
    given = {"model": "m", "base_url": fake.url, "batch_size": 3, "concurrency": 1, "price_in": PRICE, "budget": "b"}
    given |= {"tokenizer": "tokenizer.json", **encoder}
    dataset = ["dataset=jsonl", f"dataset.documents={documents}.jsonl", "dataset.queries=queries.jsonl"]
    settings = [f"encoder.{name}={value}" for name, value in given.items()]
    return ["encoder=api", *axes, *dataset, *settings, "tracking=none", "metrics.primary=RR"]


def plan_price(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> float:
    capsys.readouterr()
    main(["plan", *arguments, "--json"])
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert [c["purpose"] for c in calls] == ["embed"] * len(calls)
    assert not any(c["rough"] or c["most"] for c in calls)
    return sum(float(c["cost"]) for c in calls)


def ledger(query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("mlruns/llm.db")) as database:
        return database.execute(query).fetchall()


DENSE, OTHER, HYBRID = (
    ["retriever=dense", "retriever.metric=cosine,dot"],
    ["retriever=dense", "retriever.metric=l2"],
    ["retriever=hybrid", "retriever.method=rrf"],
)


def test_each_text_is_paid_for_once_across_three_sweeps_two_kills_and_two_processes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand = Stand()
    with FakeLLM(respond=stand.service) as fake:
        first, second, third = (
            sweep(fake, "first", *DENSE),
            sweep(fake, "first", *OTHER),
            sweep(fake, "second", *HYBRID),
        )
        planned = plan_price(first, capsys)
        assert planned > 0 and not stand.service.requests
        for request in (2, 4):
            process = start_command(["-m", *first], here)
            stand.kill_at(request, process)
            process.join()
            assert process.exitcode == -9
        both = [start_command(["-m", *first], here), start_command(["-m", *second], here)]
        for process in both:
            process.join()
            assert process.exitcode == 0
        assert plan_price(first, capsys) == plan_price(second, capsys) == 0
        planned += plan_price(third, capsys)
        assert run_command(["-m", *third], here).returncode == 0
    service = stand.service
    assert len(service.billed) == 40 + 8
    assert set(service.billed.values()) == {1}
    calls = dict(ledger("SELECT coalesce(outcome, 'lost'), count(*) FROM calls GROUP BY 1"))
    assert calls["lost"] == 2 and sum(calls.values()) == len(service.requests)
    ((calls_of_budget,),) = ledger("SELECT calls FROM budgets WHERE name = 'b'")
    assert calls_of_budget == len(service.requests)
    ((paid,),) = ledger("SELECT sum(nanos) FROM calls WHERE outcome = 'ok'")
    assert paid == round(planned * 1e9) == service.tokens * PRICE * 1000


def test_a_budget_of_calls_holds_to_the_call_for_two_processes(here: Path) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service, delay_s=0.01) as fake:
        limited = [sweep(fake, name, *OTHER, max_calls=7, concurrency=2, batch_size=2) for name in ("first", "second")]
        processes = [start_command(["-m", *arguments], here) for arguments in limited]
        for process in processes:
            process.join()
            assert process.exitcode == 1
        assert len(service.requests) == 7
        assert ledger("SELECT calls FROM budgets") == [(7,)]
        for name in ("first", "second"):
            assert run_command(["-m", *sweep(fake, name, *OTHER)], here).returncode == 0
    assert len(service.billed) == 40 + 8
    assert set(service.billed.values()) == {1}
