from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.llm.chat import BudgetSpent, ChatError, Reply
from runner.config.objects import ConfigError
from runner.llm.ledger import Ledger, Order, Ticket, Usage, draw, open_ledger

ORDER = Order(
    budget="b", purpose="p", server="s", model="m", attempt=0, tokens=10, most_nanos=100, max_calls=None,
    max_nanos=None, requests_per_minute=None, tokens_per_minute=None, patience_s=60,
)  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(str(tmp_path / "llm.db"))


def booked(ledger: Ledger, order: Order = ORDER) -> Ticket:
    ticket = ledger.reserve(order)
    assert ticket is not None
    return ticket


def test_a_call_is_booked_at_its_most_and_settled_at_its_cost(ledger: Ledger) -> None:
    ticket = booked(ledger)
    assert ledger.usage("b") == {"p": Usage(1, cost=100e-9, failures={"lost": 1})}
    ledger.settle(ticket, "ok", (5, 2), 30, 0.1)
    assert ledger.usage("b") == {"p": Usage(1, 0, 5, 2, 30e-9)}
    assert ledger.usage("other") == {}


def test_a_cancelled_call_leaves_nothing(ledger: Ledger) -> None:
    order = replace(ORDER, max_calls=1, max_nanos=100, requests_per_minute=60, tokens_per_minute=600)
    ledger.cancel(booked(ledger, order))
    assert ledger.usage("b") == {}
    assert booked(ledger, order).wait_s < 0.1


def test_a_call_that_depends_on_others_waits_for_them(ledger: Ledger) -> None:
    order = replace(ORDER, max_nanos=150)
    first = booked(ledger, order)
    assert ledger.reserve(order) is None
    ledger.settle(first, "ok", (1, 1), 50, 0.1)
    second = booked(ledger, order)
    ledger.settle(second, "ok", (1, 1), 51, 0.1)
    with pytest.raises(
        BudgetSpent, match=r"^llm\.max_cost=1\.5e-07: the rest of the budget does not cover another call, which"
    ):
        ledger.reserve(order)


def test_a_call_of_a_process_that_died_is_paid_and_not_waited_for_for_ever(ledger: Ledger) -> None:
    order = replace(ORDER, max_nanos=150, patience_s=0.05)
    booked(ledger, order)
    time.sleep(0.06)
    with pytest.raises(BudgetSpent):
        ledger.reserve(order)


def test_a_reply_is_stored_with_its_call(ledger: Ledger, tmp_path: Path) -> None:
    ledger.settle(booked(ledger), "ok", (5, 2), 30, 0.1, "key", "text")
    assert Ledger(tmp_path / "llm.db").recall("key") == Reply("text", 5, 2, cached=True, calls=0)
    assert ledger.recall("another") is None


def test_a_ledger_that_cannot_be_opened_or_written_stops_the_call(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"^llm\.ledger=.*cannot be opened as a ledger of calls"):
        open_ledger(str(tmp_path / "file" / "llm.db"))
    with closing(sqlite3.connect(tmp_path / "llm.db")) as database:
        database.execute("DROP TABLE calls")
    with pytest.raises(ChatError, match=r"cannot be written") as caught:
        ledger.reserve(ORDER)
    assert caught.value.kind == "ledger" and caught.value.final


def _spend(path: str, made: int) -> int:
    ledger, count = open_ledger(path), 0
    for _ in range(made):
        try:
            ledger.settle(booked(ledger, replace(ORDER, max_calls=50)), "ok", (1, 1), 1, 0.0)
        except BudgetSpent:
            break
        count += 1
    return count


def test_processes_that_open_and_spend_at_once_keep_one_budget(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "llm.db")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        counts = pool.starmap(_spend, [(path, 40)] * 3)
    assert sum(counts) == open_ledger(path).usage("b")["p"].calls == 50


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 300)), min_size=1, max_size=40),
    st.floats(1, 10_000),
)
def test_a_bucket_never_gives_more_than_its_rate(asked: Sequence[tuple[float, float]], per_minute: float) -> None:
    """Between any two who are let go, no more is drawn than a second's worth (one at least) and what flows in."""
    level, at, now = None, 0.0, 0.0
    let_go: list[tuple[float, float]] = []
    for gap, amount in asked:
        now += gap
        level, wait_s = draw(level, at, now, amount, per_minute)
        at = now
        let_go.append((now + wait_s, amount))
    assert all(earlier[0] <= later[0] + 1e-9 for earlier, later in pairwise(let_go))
    per_second = per_minute / 60
    for first, (start, _) in enumerate(let_go):
        total = 0.0
        for end, amount in let_go[first + 1 :]:
            total += amount
            assert total <= max(per_second, 1.0) + (end - start) * per_second + 1e-6 * (1 + total)


def test_a_bucket_that_was_left_alone_is_full_but_no_fuller() -> None:
    assert draw(-50.0, 0.0, 1e6, 1.0, 600) == (9.0, 0.0)
    assert draw(5.0, 10.0, 0.0, 1.0, 600) == (4.0, 0.0)  # a clock that is set back fills nothing


@given(st.lists(st.builds(
    Usage, *[st.integers(0, 9)] * 4, st.integers(0, 9).map(float),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 9)),
)))  # fmt: skip
def test_usages_add_up(usages: list[Usage]) -> None:
    total = sum(usages, Usage())
    assert total.calls == sum(usage.calls for usage in usages)
    assert sum(total.failures.values()) == sum(sum(usage.failures.values()) for usage in usages)
