"""Grading against a server that misbehaves: every fault is accounted for, the budget is kept, nothing is paid twice."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.llm.ledger import open_ledger
from tests.evaluation.paid_work import work
from tests.fake_llm import FakeLLM, grade_of

ROOT = Path(__file__).parents[2]
CONCURRENCY = 8

LOST = ("rate_limited", "server", "overloaded", "dropped", "cut", "html", "hollow")
"""Faults that a client tries again after."""

RATES = {fault: 0.05 / 13 for fault in (*LOST, "refusal", "empty", "prose", "wrong_number", "no_number", "fenced")}
"""One request in twenty goes wrong, in every way that there is but for a time-out, which takes its time."""

SIZES = [300, pytest.param(10_000, marks=pytest.mark.slow(reason="10,000 calls take minutes"))]


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM(rates=RATES, seed=1) as fake:
        yield fake


def begun(server: FakeLLM, folder: Path, n: int, budget: str, until: int) -> subprocess.Popen[str]:
    """Start a grading in a process of its own; return it once the server was asked so often."""
    settings = {"url": server.url, "folder": str(folder), "n": n, "max_calls": None, "budget": budget}
    command = [sys.executable, "-m", "tests.evaluation.paid_work", json.dumps(settings)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(server.asked) < until:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    return process


def answered(server: FakeLLM) -> Counter[str]:
    """Return how often each prompt got an answer that was paid for."""
    return Counter(each.question for each in server.asked if each.behaviour not in LOST)


@pytest.mark.parametrize("n", SIZES)
def test_every_fault_is_accounted_for(server: FakeLLM, tmp_path: Path, n: int) -> None:
    figures, served = work(server.url, tmp_path, n, None, "b").figures(), server.counts
    usage = open_ledger(str(tmp_path / "llm.db")).usage("b")["grade"]
    assert figures["grade/calls"] == usage.calls == served.total() >= n
    assert sum(usage.failures.values()) == sum(served[fault] for fault in (*LOST, "refusal", "empty"))
    assert usage.failures["rate_limited"] == served["rate_limited"]
    assert figures["grade/errors"] == served["refusal"] + served["empty"]  # all others went well when tried again
    assert figures["grade/clamped"] == served["wrong_number"]
    assert figures["grade/asked"] == n + served["prose"] + served["no_number"]  # each of these is asked for once more
    assert figures["grade/parse_failures"] == figures["grade/unasked"] == 0
    assert served["fenced"] + served["ok"] + served["wrong_number"] == n - (figures["grade/errors"] or 0)


@pytest.mark.parametrize("n", SIZES)
def test_a_budget_holds_across_a_kill_and_only_calls_in_flight_are_repeated(
    server: FakeLLM, tmp_path: Path, n: int
) -> None:
    process = begun(server, tmp_path, n, "b", until=n // 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    most = n // 2
    figures = work(server.url, tmp_path, n, most, "b").figures()
    booked = open_ledger(str(tmp_path / "llm.db")).usage("b")["grade"].calls
    assert booked == most
    assert most - CONCURRENCY <= len(server.asked) <= most  # what was booked when it was killed may not have been sent
    assert (figures["grade/unasked"] or 0) > 0
    figures = work(server.url, tmp_path, n, None, "b").figures()
    assert figures["grade/unasked"] == 0
    again = [times for times in answered(server).values() if times > 1]
    assert len(again) <= CONCURRENCY  # the answers on their way when it was killed: nobody has them
    assert set(again) <= {2}


def test_what_ctrl_c_stops_pays_for_nothing_twice(tmp_path: Path) -> None:
    interrupted, arrived = threading.Event(), itertools.count()

    def answer(question: str, system: str) -> str:
        if next(arrived) >= 100:
            interrupted.wait(timeout=300)
        return grade_of(question, system)

    with FakeLLM(answer=answer, rates=RATES, seed=1) as server:
        process = begun(server, tmp_path, 300, "b", until=100)
        process.send_signal(signal.SIGINT)
        wait_until_delivered(process.pid, signal.SIGINT)
        interrupted.set()
        process.communicate(timeout=300)
        stopped = len(server.asked)
        assert 100 <= stopped < 300
        assert work(server.url, tmp_path, 300, None, "b").unasked == 0
        assert set(answered(server).values()) == {1}


def wait_until_delivered(pid: int, number: signal.Signals) -> None:
    """Return once a process handles a signal that was sent to it, or is gone."""
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
        if not any(mask >> (number - 1) & 1 for mask in pending):
            return
        time.sleep(0.01)
