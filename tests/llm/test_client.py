from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.extras import write_install_command
from retrievers.llm.chat import BudgetSpent, Chat, ChatError, Reply
from runner.config.objects import ConfigError, build
from runner.llm.api_model import STOP
from runner.llm.client import LLM
from runner.llm.ledger import Usage
from runner.llm.none import NoLLM
from runner.llm.observers import Exchange, observe
from runner.llm.providers import Anthropic, Azure, OpenAI
from tests.fake_llm import FakeLLM
from tests.llm.conftest import PROVIDERS, CreateLLM

PRICES = {"price_in": 1.0, "price_out": 10.0}


def spent(llm: LLM) -> Usage:
    return sum(llm.usage().values(), Usage())


def failure(ask: Callable[[], object]) -> ChatError:
    with pytest.raises(ChatError) as caught:
        ask()
    return caught.value


@pytest.mark.parametrize("kind", PROVIDERS)
def test_each_provider_sends_the_question_and_returns_the_answer(kind: type[LLM], create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda question, system: f"{system}|{question}") as fake:
        llm = create_llm(fake, kind, max_tokens=7, temperature=0.5)
        reply = llm.ask("two words", "be brief")
    assert reply == Reply("be brief|two words", tokens_in=4, tokens_out=3)
    asked = fake.asked[0]
    assert (asked.question, asked.system, asked.model) == ("two words", "be brief", "m")
    assert asked.body["temperature"] == 0.5
    limit = "max_completion_tokens" if kind is Azure else "max_tokens"
    assert asked.body[limit] == 7
    assert isinstance(llm, Chat)


@pytest.mark.parametrize("tokens", [2**63, -1, [3]])
def test_tokens_that_cannot_be_are_unknown_so_that_the_call_counts_at_its_most(
    tokens: object, create_llm: CreateLLM
) -> None:
    message = {"role": "assistant", "content": "Yes."}
    reply = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": 5},
    }  # fmt: skip
    with FakeLLM(respond=lambda path, body: reply) as fake:
        llm = create_llm(fake, OpenAI, max_tokens=7, price_in=1.0, price_out=10.0)
        assert llm.ask("?").text == "Yes."
    assert (spent(llm).calls, spent(llm).tokens_in, spent(llm).failures) == (1, 0, {})
    assert spent(llm).cost == pytest.approx((64 + 1 + 7 * 10) / 1e6)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_what_is_null_is_not_sent(kind: type[LLM], create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        create_llm(fake, kind, temperature=None).ask("?")
    assert not {"temperature", "seed", "system"} & fake.asked[0].body.keys()


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "booked"),
    [
        ("rate_limited", "rate_limited"),
        ("rate_limited_date", "rate_limited"),
        ("server", "server"),
        ("overloaded", "server"),
        ("conflict", "conflict"),
        ("timeout", "timeout"),
        ("cut", "connection"),
        ("dropped", "connection"),
        ("html", "malformed"),
        ("repeated_key", "malformed"),
        ("hollow", "malformed"),
    ],
)
def test_what_may_pass_is_tried_again(kind: type[LLM], fault: str, booked: str, create_llm: CreateLLM) -> None:
    with FakeLLM(script=[fault, "ok"], hang_s=1.2) as fake:
        llm = create_llm(fake, kind, timeout_s=0.6 if fault == "timeout" else 60)
        assert llm.ask("?").calls == 2
    assert fake.counts == {fault: 1, "ok": 1}
    assert spent(llm).failures == {booked: 1}
    assert (spent(llm).calls, spent(llm).retries) == (2, 1)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "booked", "final"),
    [
        ("bad_request", "request", False),
        ("unauthorized", "denied", True),
        ("forbidden", "denied", False),
        ("not_found", "not_found", True),
        ("refusal", "refusal", False),
        ("empty", "empty", False),
    ],
)
def test_what_will_not_pass_is_not_tried_again(
    kind: type[LLM], fault: str, booked: str, final: bool, create_llm: CreateLLM
) -> None:
    with FakeLLM(script=[fault]) as fake:
        llm = create_llm(fake, kind)
        error = failure(lambda: llm.ask("?"))
    assert (error.kind, error.final, error.calls) == (booked, final, 1)
    assert fake.counts == {fault: 1}
    assert spent(llm).failures == {booked: 1}


@pytest.mark.parametrize("fault", ["prose", "wrong_number", "no_number", "fenced"])
def test_an_answer_that_is_merely_useless_is_an_answer(fault: str, create_llm: CreateLLM) -> None:
    with FakeLLM(script=[fault]) as fake:
        llm = create_llm(fake)
        assert llm.ask("?").text
    assert spent(llm).failures == {}


def test_a_refusal_is_charged_and_its_error_has_tokens_and_cost(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda *_: "I will not", script=["refusal"]) as fake:
        llm = create_llm(fake, **PRICES)
        error = failure(lambda: llm.ask("one two"))
    assert (error.tokens_in, error.tokens_out, error.cost) == (2, 3, 32e-6)
    assert "I will not" in str(error)
    assert spent(llm).cost == 32e-6


def test_after_its_retries_the_last_fault_is_the_error(create_llm: CreateLLM) -> None:
    with FakeLLM(script=["server", "rate_limited", "server"]) as fake:
        llm = create_llm(fake, retries=2)
        error = failure(lambda: llm.ask("?"))
    assert (error.kind, error.calls, error.final) == ("server", 3, False)
    assert str(error).startswith("m at 127.0.0.1:") and str(error).endswith(" after 3 attempts")
    assert spent(llm).failures == {"rate_limited": 1, "server": 2}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses before calls, none of which takes any time: the ledger's clock stands still."""
    made: list[float] = []
    monkeypatch.setattr("runner.llm.api_model._pause", made.append)
    monkeypatch.setattr("runner.llm.ledger.time", SimpleNamespace(time=lambda: 1e9))
    return made


def test_the_patience_that_a_server_asks_for_is_granted(create_llm: CreateLLM, pauses: list[float]) -> None:
    with FakeLLM(script=["rate_limited"], retry_after_s=7) as fake:
        create_llm(fake).ask("?")
    assert max(pauses) >= 7


def test_a_server_that_asks_for_more_patience_than_there_is_has_failed(create_llm: CreateLLM) -> None:
    with FakeLLM(script=["rate_limited"], retry_after_s=3600) as fake:
        error = failure(lambda: create_llm(fake).ask("?"))
    assert (error.kind, error.calls) == ("rate_limited", 1)
    assert "try again in 3600 s" in str(error)


def test_a_server_that_is_not_there_costs_nothing(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        llm = create_llm(fake, retries=1, **PRICES)
    error = failure(lambda: llm.ask("?"))
    assert (error.kind, error.cost) == ("unreachable", 0)
    assert spent(llm).failures == {"unreachable": 2}


def test_a_call_that_is_cut_off_is_booked_at_its_highest_possible_cost(create_llm: CreateLLM) -> None:
    with FakeLLM(script=["cut"]) as fake:
        llm = create_llm(fake, retries=0, **PRICES, max_tokens=100)
        error = failure(lambda: llm.ask("four"))
    assert error.cost == spent(llm).cost == pytest.approx(((4 + 64) * 1 + 100 * 10) * 1e-6)


def test_the_cost_is_what_the_tokens_cost(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda *_: "a b c") as fake:
        llm = create_llm(fake, **PRICES)
        assert llm.ask("one two").cost == 32e-6  # 2 in at 1, 3 out at 10 for a million


def test_concurrent_calls_never_exceed_the_budget(create_llm: CreateLLM) -> None:
    def ask(number: int) -> str:
        try:
            return llm.ask(f"question {number}").text
        except BudgetSpent as error:
            assert error.kind == "budget" and error.final
            return ""

    with FakeLLM(rates={"server": 0.2}, seed=3) as fake, ThreadPoolExecutor(8) as pool:
        llm = create_llm(fake, max_calls=20)
        texts = list(pool.map(ask, range(40)))
    assert len(fake.asked) == spent(llm).calls == 20
    assert sum(map(bool, texts)) == fake.counts["ok"]


def test_the_cost_never_exceeds_the_budget_and_the_budget_is_used(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda *_: "a b c", delay_s=0.01) as fake, ThreadPoolExecutor(8) as pool:
        llm = create_llm(fake, **PRICES, max_cost=1e-3, max_tokens=10)  # a call costs 31e-6, and may cost 175e-6
        outcomes = list(pool.map(lambda n: pickle.dumps(_outcome(llm, str(n))), range(60)))
    replies = [each for each in map(pickle.loads, outcomes) if isinstance(each, Reply)]
    assert spent(llm).cost == pytest.approx(sum(reply.cost for reply in replies))
    assert 1e-3 - 175e-6 < spent(llm).cost <= 1e-3


def _outcome(llm: LLM, question: str) -> Reply | ChatError:
    try:
        return llm.ask(question)
    except ChatError as error:
        return error


def test_settings_that_travel_or_are_changed_keep_their_budget(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        llm = create_llm(fake, max_calls=2)
        llm.ask("?")
        pickle.loads(pickle.dumps(llm)).ask("?")
        with pytest.raises(BudgetSpent):
            replace(llm, temperature=1.0).ask("?")


def test_a_budget_with_a_name_is_shared_by_those_who_name_it(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        create_llm(fake, budget="october", max_calls=1).ask("?")
        with pytest.raises(BudgetSpent, match=r"^llm\.max_calls=1: all calls in the budget have been used; raise"):
            create_llm(fake, budget="october", max_calls=1).ask("?")
        create_llm(fake, budget="november", max_calls=1).ask("?")


def test_usage_is_reported_by_purpose(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        llm = create_llm(fake)
        llm.ask("?", purpose="grade")
        llm.ask("?", purpose="grade")
        llm.ask("?", purpose="reformulate")
    assert {purpose: usage.calls for purpose, usage in llm.usage().items()} == {"grade": 2, "reformulate": 1}


def test_a_cached_answer_is_reused_and_marked_as_cached(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        first = create_llm(fake, cache=True).ask("?", "system")
        again = create_llm(fake, cache=True, max_calls=0).ask("?", "system")
    assert again == replace(first, cached=True, calls=0)
    assert len(fake.asked) == 1


@pytest.mark.parametrize("change", [{"model": "n"}, {"temperature": 1.0}, {"seed": 1}, {"max_tokens": 5}, {}])
def test_a_cached_answer_is_to_the_same_question_put_to_the_same_model(
    change: dict[str, Any], create_llm: CreateLLM
) -> None:
    with FakeLLM() as fake:
        create_llm(fake, cache=True).ask("?")
        create_llm(fake, cache=True, **change).ask("?" if change else "?!")
    assert len(fake.asked) == 2


def test_without_a_cache_each_answer_is_fresh(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        create_llm(fake, cache=True).ask("?")
        assert not create_llm(fake).ask("?").cached


def test_no_more_requests_are_under_way_than_may_be(create_llm: CreateLLM) -> None:
    with FakeLLM(delay_s=0.02) as fake, ThreadPoolExecutor(8) as pool:
        list(pool.map(create_llm(fake, concurrency=2).ask, map(str, range(12))))
    assert fake.most_at_once == 2


def test_requests_keep_to_their_rate(create_llm: CreateLLM, pauses: list[float]) -> None:
    with FakeLLM() as fake, ThreadPoolExecutor(8) as pool:
        llm = create_llm(fake, requests_per_minute=600)  # ten at once, then ten a second
        list(pool.map(llm.ask, map(str, range(15))))
    assert sorted(filter(None, pauses)) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_tokens_keep_to_their_rate_by_what_was_really_taken(create_llm: CreateLLM, pauses: list[float]) -> None:
    with FakeLLM(answer=lambda *_: "word " * 200) as fake:
        llm = create_llm(fake, tokens_per_minute=12_000)  # 200 a second
        for _ in range(3):
            llm.ask("?")
    assert pauses[-1] >= 0.5


def test_a_stop_request_ends_the_wait_and_an_unsent_call_is_not_booked(create_llm: CreateLLM) -> None:
    with FakeLLM() as fake:
        llm = create_llm(fake, requests_per_minute=1)
        llm.ask("?")
        stop = threading.Event()
        token = STOP.set(stop)
        threading.Timer(0.05, stop.set).start()
        error = failure(lambda: llm.ask("?"))
        STOP.reset(token)
    assert (error.kind, error.calls) == ("interrupted", 0)
    assert spent(llm).calls == 1


def test_observers_see_exchanges_if_tracing_is_on_and_until_they_are_let_go(create_llm: CreateLLM) -> None:
    seen: list[Exchange] = []
    end = observe(seen.append)
    with FakeLLM(script=["ok", "refusal"]) as fake:
        create_llm(fake).ask("unseen")
        llm = create_llm(fake, trace=True)
        error = failure(lambda: llm.ask("hm", "s", "grade"))
        end()
        llm.ask("unseen")
    assert [(each.question, each.system, each.purpose, each.model) for each in seen] == [("hm", "s", "grade", "m")]
    assert seen[0].outcome is error


def test_the_identity_is_what_decides_an_answer() -> None:
    same = OpenAI(
        model="m", api_key_env="X", timeout_s=1, retries=1, backoff_s=1, concurrency=1, requests_per_minute=1,
        tokens_per_minute=1, max_calls=1, max_cost=1, **PRICES, budget="b", ledger="l", cache=True, trace=True,
    )  # fmt: skip
    assert (
        repr(same)
        == repr(OpenAI(model="m"))
        == ("OpenAI(model='m', base_url=None, temperature=0.0, max_tokens=1024, seed=None)")
    )
    assert repr(Anthropic(model="m")) == "Anthropic(model='m', base_url=None, temperature=None, max_tokens=1024)"
    shown = {field.name for field in fields(Azure) if field.repr}
    assert shown == {"model", "base_url", "temperature", "max_tokens", "seed", "api_version"}


def test_a_key_is_sent_but_shown_nowhere(
    create_llm: CreateLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with FakeLLM(script=["unauthorized"]) as fake:
        llm = create_llm(fake, api_key_env="MY_KEY", cache=True)
        error = failure(lambda: llm.ask("?"))
    assert fake.asked[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{error}{error!r}{llm!r}{pickle.dumps(llm)!r}"
    assert b"sk-secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_another_server_is_not_shown_the_key_that_is_meant_for_the_usual_one(
    create_llm: CreateLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    with FakeLLM() as fake:
        create_llm(fake).ask("?")
        create_llm(fake, Anthropic).ask("?")
    assert not any("sk-secret" in value for asked in fake.asked for value in asked.headers.values())


@pytest.mark.parametrize(
    ("llm", "message"),
    [
        (OpenAI(model="m"), r"^llm\.api_key_env=OPENAI_API_KEY: .*; export OPENAI_API_KEY=\.\.\., or set llm\.base"),
        (Anthropic(model="m"), r"^llm\.api_key_env=ANTHROPIC_API_KEY: "),
        (Azure(model="m", base_url="https://x.example"), r"^llm\.api_key_env=AZURE_OPENAI_API_KEY: .*=\.\.\.$"),
        (OpenAI(model="m", base_url="http://127.0.0.1:1", api_key_env="MINE"), r"^llm\.api_key_env=MINE: "),
        (NoLLM(), r"^llm=none: "),
    ],
)
def test_what_is_missing_is_said_in_one_line(llm: Chat, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "MINE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=message) as caught:
        llm.ask("?")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_without_its_sdk_a_provider_says_what_to_install(
    kind: type[LLM], create_llm: CreateLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("openai", "anthropic"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with FakeLLM() as fake, pytest.raises(ValueError, match=re.escape(write_install_command("llm"))):
        create_llm(fake, kind)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_url": "localhost:8000"}, r"llm\.base_url=localhost:8000: should be an http address"),
        ({"base_url": "http://me:secret@host/v1"}, r"should not contain credentials"),
        ({"max_cost": 1.0}, r"^llm.*: max_cost=1: needs prices; set price_in and price_out"),
        ({"temperature": 3}, r"^llm\.temperature=3: "),
        ({"price_in": -1}, r"^llm\.price_in=-1: "),
        ({"max_cals": 3}, r"did you mean llm\.max_calls"),
    ],
)
def test_a_mistake_in_the_settings_is_said_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        build({"_target_": "runner.llm.providers.OpenAI", "model": "m", **given}, "llm")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:s3cret@host/v1", "me:s3cret@host/v1", "https://host/v1?key=s3cret"])
def test_a_password_in_an_address_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url should not contain credentials") as caught:
        build({"_target_": "runner.llm.providers.OpenAI", "model": "m", "base_url": url}, "llm")
    assert "s3cret" not in str(caught.value)


def test_azure_has_no_usual_address() -> None:
    with pytest.raises(ValidationError, match="base_url"):
        Azure(model="m")  # type: ignore[call-arg]  # which is what is wrong
