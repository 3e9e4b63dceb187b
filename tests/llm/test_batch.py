from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from retrievers.llm.chat import BudgetSpent, ChatError, Reply
from runner.config.objects import ConfigError
from runner.llm.batch import MAX_UNREACHABLE, ask_all
from runner.llm.ledger import Usage
from runner.llm.none import NoLLM
from runner.llm.providers import OpenAI
from tests.evaluation.chats import Scripted
from tests.fake_llm import FakeLLM
from tests.llm.conftest import CreateLLM

RATES = {name: 0.005 for name in (
    "rate_limited", "rate_limited_date", "server", "overloaded", "cut", "dropped", "html", "hollow", "refusal", "empty",
)}  # fmt: skip
"""Five in a hundred go wrong, in ten ways."""

KINDS = {
    "rate_limited_date": "rate_limited", "overloaded": "server", "cut": "connection", "dropped": "connection",
    "html": "malformed", "hollow": "malformed",
}  # fmt: skip
"""What a behaviour of the server is booked as, where its name is another."""


def test_every_question_gets_its_own_answer(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda question, system: f"{system} {question}", rates={"server": 0.2}) as fake:
        found = dict(ask_all(create_llm(fake), (f"q{n}" for n in range(50)), 8, "hear", "grade"))
    assert {position: outcome.text for position, outcome in found.items() if isinstance(outcome, Reply)} == {
        n: f"hear q{n}" for n in range(50)
    }


def test_questions_are_taken_as_there_are_threads_for_them(create_llm: CreateLLM) -> None:
    taken = count()
    with FakeLLM() as fake:
        coming = ask_all(create_llm(fake), (str(next(taken)) for _ in range(100)), 3)
        next(coming)
        coming.close()
    assert next(taken) <= 6


def test_after_the_budget_is_spent_the_remaining_questions_fail_without_a_call(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        found = dict(ask_all(create_llm(fake, max_calls=7), map(str, range(30)), 4))
    assert len(fake.asked) == sum(isinstance(outcome, Reply) for outcome in found.values()) == 7
    assert sum(isinstance(outcome, BudgetSpent) for outcome in found.values()) == 23


def test_a_wrong_key_ends_it_soon(create_llm: CreateLLM) -> None:
    with FakeLLM(rates={"unauthorized": 1.0}) as fake:
        found = dict(ask_all(create_llm(fake), map(str, range(500)), 4))
    assert len(fake.asked) <= 8
    assert len(found) == 500
    assert {outcome.kind for outcome in found.values() if isinstance(outcome, ChatError)} == {"denied"}
    assert sum(outcome.calls for outcome in found.values()) == len(fake.asked)


def test_a_server_that_is_gone_ends_it_soon(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        llm = create_llm(fake, retries=1)
    found = dict(ask_all(llm, map(str, range(500)), 4))
    assert len(found) == 500
    assert {outcome.kind for outcome in found.values() if isinstance(outcome, ChatError)} == {"unreachable"}
    asked = [outcome for outcome in found.values() if outcome.calls]
    assert MAX_UNREACHABLE <= len(asked) <= MAX_UNREACHABLE + 4
    assert all(isinstance(outcome, ChatError) and outcome.final for outcome in found.values() if not outcome.calls)


def test_a_server_that_answers_in_between_is_not_gone() -> None:
    def say(question: str, before: int) -> str | ChatError:
        return "yes" if int(question) % MAX_UNREACHABLE == 0 else ChatError("nobody there", "unreachable", calls=1)

    found = dict(ask_all(Scripted(say), map(str, range(30)), 1))
    assert sum(isinstance(outcome, Reply) for outcome in found.values()) == 30 // MAX_UNREACHABLE
    assert not any(outcome.final for outcome in found.values() if isinstance(outcome, ChatError))


def test_an_invalid_setting_is_raised_rather_than_returned() -> None:
    with pytest.raises(ConfigError, match="llm=none"):
        list(ask_all(NoLLM(), ["?"], 2))


def test_an_interrupt_comes_after_what_was_under_way_has_been_heard_out(create_llm: CreateLLM) -> None:
    """One answer is slow, one waits for long before it is tried again: only the first is worth staying for."""

    def interrupt(fake: FakeLLM) -> None:
        while len(fake.asked) < 2:
            time.sleep(0.01)
        time.sleep(0.4)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with FakeLLM(delay_s=0.2, script=["rate_limited", "ok"], retry_after_s=100) as fake:
        llm = create_llm(fake)
        threading.Thread(target=interrupt, args=[fake]).start()
        with pytest.raises(KeyboardInterrupt):
            list(ask_all(llm, map(str, range(1000)), 2))
    usage = sum(llm.usage().values(), Usage())
    assert usage.calls == len(fake.asked)
    assert usage.failures == {"rate_limited": 1}  # none ended in its middle, nor after its time


@contextmanager
def server(*arguments: str) -> Iterator[str]:
    """Run the fake in a process of its own, as it takes a processor; yield its address."""
    command = [sys.executable, "-m", "tests.fake_llm", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout and process.stdin
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def counted(address: str) -> Counter[str]:
    """Ask the fake what it did."""
    with urllib.request.urlopen(f"{address}/counts") as response:
        return Counter(json.load(response))


@pytest.mark.parametrize("calls", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_fault_is_counted_and_the_budget_holds_to_the_call(calls: int, tmp_path: Path) -> None:
    budget = calls - calls // 20  # which does not do for all
    with server("--rates", json.dumps(RATES), "--seed", "5") as address:
        llm = OpenAI(
            model="m", base_url=f"{address}/v1", ledger=str(tmp_path / "llm.db"), backoff_s=0.001, max_calls=budget
        )
        found = dict(ask_all(llm, (f"question {n}" for n in range(calls)), 8))
        done = counted(address)
    total = sum(llm.usage().values(), Usage())
    assert total.calls == sum(done.values()) == sum(outcome.calls for outcome in found.values()) == budget
    booked: Counter[str] = Counter()
    for behaviour, times in done.items():
        booked[KINDS.get(behaviour, behaviour)] += times
    assert {"ok": booked.pop("ok"), **total.failures} == {"ok": done["ok"], **booked}
    outcomes = Counter(outcome.kind if isinstance(outcome, ChatError) else "ok" for outcome in found.values())
    assert sum(outcomes.values()) == calls
    assert outcomes["ok"] == done["ok"]
    assert (outcomes["refusal"], outcomes["empty"]) == (done["refusal"], done["empty"])
    assert total.retries == budget - sum(outcome.calls > 0 for outcome in found.values())


_GRADING = """
import sys
from runner.llm.batch import ask_all
from runner.llm.providers import OpenAI

llm = OpenAI(model="m", base_url=sys.argv[1], ledger=sys.argv[2], cache=True, budget="both", concurrency=4)
for done, _ in enumerate(ask_all(llm, map(str, range(100)), 4)):
    print(done, flush=True)
"""


def test_what_was_answered_before_a_kill_is_not_paid_twice(tmp_path: Path) -> None:
    with server("--delay-s", "0.005") as address:
        command = [sys.executable, "-c", _GRADING, f"{address}/v1", str(tmp_path / "llm.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout
            while first.stdout.readline() != "50\n":
                assert first.poll() is None
            first.kill()
        llm = OpenAI(model="m", base_url=f"{address}/v1", ledger=str(tmp_path / "llm.db"), cache=True, budget="both")
        replies = dict(ask_all(llm, map(str, range(100)), 4))
        asked = sum(counted(address).values())
    assert all(isinstance(reply, Reply) for reply in replies.values())
    assert 100 <= asked <= 100 + 4  # only what was under way
    assert asked <= sum(llm.usage().values(), Usage()).calls <= 100 + 4  # what is booked may not have been sent
