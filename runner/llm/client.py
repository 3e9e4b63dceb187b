"""A language model as settings that can be asked: retries, rate limits and the budget are the same for all providers.

A provider adds how one request is made. Settings are a value: connections, and the ledger that keeps the budget, are
opened by the process that asks. It knows nothing of what is asked.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.chat import ChatError, Reply
from retrievers.store import fingerprint
from runner.config.objects import ConfigError
from runner.llm.faults import LONGEST_WAIT_S, Fault, backoff
from runner.llm.ledger import NANO, Ledger, Order, Ticket, Usage, ledger_at
from runner.llm.observers import Exchange, show

STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
"""What ends all waiting of those who ask in this context, when it is set."""

TEMPLATE_TOKENS = 64
"""More than what a chat template adds to question and instructions."""

BYTES_PER_TOKEN = 4
"""Of usual text; a token is never less than one byte."""

_POLL_S = 0.02


@dataclass(frozen=True)
class Answer:
    """What a provider's request brought: a text, and the tokens in and out, None where the server does not say."""

    text: str
    tokens: tuple[int, int] | None


@settings(frozen=True, config={"extra": "forbid"})
class LLM(ABC):
    """Settings of a language model. Those that decide an answer are its repr; all others are not.

    `base_url` null is the provider's own address. `temperature` and `max_tokens` go with each request, null not at all.
    A call is one request, a retry too. `max_calls` and `max_cost` are kept over all that share the budget: a command
    with all its workers, or, where `budget` names one, whoever names the same. `price_in` and `price_out` are those of
    a million tokens. `requests_per_minute` and `tokens_per_minute` hold for all processes with the same ledger,
    `concurrency` for one process.
    """

    usual_key: ClassVar[str] = ""

    model: str = Field(min_length=1)
    base_url: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int = Field(default=1024, ge=1)
    api_key_env: str | None = Field(default=None, repr=False)
    timeout_s: float = Field(default=60.0, gt=0, repr=False, allow_inf_nan=False)
    retries: int = Field(default=5, ge=0, repr=False)
    backoff_s: float = Field(default=0.5, ge=0, repr=False, allow_inf_nan=False)
    concurrency: int = Field(default=8, ge=1, repr=False)
    requests_per_minute: float | None = Field(default=None, gt=0, repr=False, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, repr=False, allow_inf_nan=False)
    max_calls: int | None = Field(default=None, ge=0, repr=False)
    max_cost: float | None = Field(default=None, ge=0, repr=False, allow_inf_nan=False)
    price_in: float | None = Field(default=None, ge=0, repr=False, allow_inf_nan=False)
    price_out: float | None = Field(default=None, ge=0, repr=False, allow_inf_nan=False)
    budget: str | None = Field(default=None, repr=False, validate_default=True)
    ledger: str = Field(default="mlruns/llm.db", min_length=1, repr=False, validate_default=True)
    cache: bool = Field(default=False, repr=False)
    trace: bool = Field(default=False, repr=False)

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str | None) -> str | None:
        if url is None or _holds_more(url):
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("is no address; it is like http://127.0.0.1:8000/v1")
        return url.rstrip("/")

    @field_validator("budget")
    @classmethod
    def _or_this_commands(cls, budget: str | None) -> str:
        return budget or _this_command()

    @field_validator("ledger")
    @classmethod
    def _wherever_it_is_asked(cls, path: str) -> str:
        return str(Path(path).resolve())

    @model_validator(mode="after")
    def _without_a_key(self) -> Self:
        if self.base_url is not None and _holds_more(self.base_url):  # what a field refuses is shown, this must not be
            raise ValueError(
                "base_url holds more than an address; a key is read from the variable that api_key_env names"
            )
        return self

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.max_cost is not None and (self.price_in is None or self.price_out is None):
            raise ValueError(f"max_cost={self.max_cost:g} needs price_in and price_out, those of a million tokens")
        return self

    @abstractmethod
    def connect(self) -> Any:  # noqa: ANN401 (an SDK's client)
        """Return what requests go through, opened once a process; raises `ConfigError`, without a network."""

    @abstractmethod
    def send(self, client: Any, question: str, system: str) -> Answer:  # noqa: ANN401 (what `connect` returns)
        """Make one request; raises `Fault`."""

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        """Return the answer to a question under standing instructions.

        Raises `ChatError` where there is none: `kind` is that of the last request's fault, or "refusal" or "empty";
        `BudgetSpent` where there may be no call; `ConfigError` where none can be made at all.
        """
        began = time.time()
        try:
            outcome: Reply | ChatError = self._asked(question, system, purpose)
        except ChatError as error:
            outcome = error
        if self.trace:
            show(Exchange(self, self.model, purpose, system, question, outcome, began, time.time() - began))
        if isinstance(outcome, ChatError):
            raise outcome
        return outcome

    def usage(self) -> dict[str, Usage]:
        """Return what all calls on this budget came to so far, by purpose."""
        return ledger_at(self.ledger).usage(str(self.budget))

    def _asked(self, question: str, system: str, purpose: str) -> Reply:
        client, ledger = self.connect(), ledger_at(self.ledger)
        key = fingerprint(repr(self), system, question)
        kept = ledger.recall(key) if self.cache else None
        if kept:
            return kept
        desk = _Desk(self, client, ledger, key if self.cache else "")
        nanos, wait_s = 0, 0.0
        for attempt in range(self.retries + 1):
            calls = attempt + 1
            try:
                _pause(wait_s)
                answer, cost = desk.call(question, system, purpose, attempt)
            except _Failed as failed:
                nanos += failed.nanos
                fault = failed.fault
            except ChatError as error:  # before the call: the budget is spent, or waiting was ended
                error.calls, error.cost = attempt, nanos / NANO
                raise
            else:
                return Reply(answer.text, *(answer.tokens or (0, 0)), calls=calls, cost=(nanos + cost) / NANO)
            if not fault.again or (fault.after_s or 0) > LONGEST_WAIT_S:
                break
            wait_s = backoff(fault, attempt, self.backoff_s, key)
        tried = f", {calls} times" if calls > 1 else ""
        later = f"; try again in {fault.after_s:.0f} s" if fault.after_s else ""
        tokens_in, tokens_out = fault.tokens or (0, 0)
        said = str(fault).replace(self.key() or "\0", "***")  # servers repeat a key that they do not know
        raise ChatError(
            f"{self.model} at {self._host}: {said}{tried}{later}", fault.kind, fault.final,
            calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost=nanos / NANO,
        ) from fault  # fmt: skip

    @property
    def _host(self) -> str:
        return urlsplit(self.base_url).netloc if self.base_url else type(self).__name__

    def nanos(self, tokens: tuple[int, int]) -> int:
        """Return what tokens in and out cost, in billionths; nothing where there is no price."""
        return round((tokens[0] * (self.price_in or 0) + tokens[1] * (self.price_out or 0)) * (NANO / 1_000_000))

    def order(self, question: str, system: str, purpose: str, attempt: int) -> Order:
        """Return what has to be booked for a call. That no token is shorter than a byte bounds its cost."""
        size = len(question.encode("utf-8", "surrogatepass")) + len(system.encode("utf-8", "surrogatepass"))
        return Order(
            budget=str(self.budget),
            purpose=purpose,
            server=self._host,
            model=self.model,
            attempt=attempt,
            tokens=size // BYTES_PER_TOKEN + TEMPLATE_TOKENS,
            most_nanos=self.nanos((size + TEMPLATE_TOKENS, self.max_tokens)),
            max_calls=self.max_calls,
            max_nanos=None if self.max_cost is None else round(self.max_cost * NANO),
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            patience_s=2 * self.timeout_s + LONGEST_WAIT_S,
        )

    def key(self) -> str:
        """Return the environment's key, "" where none is needed; raises `ConfigError` where one is and is not there.

        The provider's usual variable is meant for its own address alone: no other server is shown that key.
        """
        variable = self.api_key_env or (None if self.base_url else self.usual_key)
        if variable is None:
            return ""
        found = os.environ.get(variable, "").strip()
        if not found:
            other = "" if self.base_url else ", or llm.base_url=http://127.0.0.1:8000/v1 for a server that needs none"
            raise ConfigError(f"llm.api_key_env={variable}: there is no such key; export {variable}=...{other}")
        return found


def _holds_more(url: str) -> bool:
    """Tell whether there may be a password or a key in an address, or in what was meant to be one."""
    parts = urlsplit(url)
    return "@" in (parts.netloc or url) or bool(parts.query)


class _Failed(Exception):
    """A call that was made and brought no answer, and what it cost."""

    def __init__(self, fault: Fault, nanos: int) -> None:
        super().__init__(fault)
        self.fault, self.nanos = fault, nanos


@dataclass(frozen=True)
class _Desk:
    """Where calls are booked before they are made, and settled after."""

    llm: LLM
    client: Any
    ledger: Ledger
    keep_as: str

    def call(self, question: str, system: str, purpose: str, attempt: int) -> tuple[Answer, int]:
        """Make one call and return its answer and cost; raises `_Failed`, or `ChatError` where none was made."""
        with _gate(self.llm.base_url, self.llm.model, self.llm.concurrency, os.getpid()):
            ticket = self._booked(self.llm.order(question, system, purpose, attempt))
            began = time.perf_counter()
            fault, answer, tokens, outcome = None, Answer("", None), None, "interrupted"
            try:
                answer = self.llm.send(self.client, question, system)
                outcome, tokens = "ok", answer.tokens
            except Fault as error:
                fault, outcome, tokens = error, error.kind, error.tokens
            finally:  # whatever ended it, it was made
                nanos = ticket.order.most_nanos if tokens is None else self.llm.nanos(tokens)
                key = self.keep_as if outcome == "ok" else ""
                self.ledger.settle(ticket, outcome, tokens, nanos, time.perf_counter() - began, key, answer.text)
        if fault:
            raise _Failed(fault, nanos) from fault
        return answer, nanos

    def _booked(self, order: Order) -> Ticket:
        while (ticket := self.ledger.reserve(order)) is None:
            _pause(_POLL_S)
        try:
            _pause(ticket.wait_s)
        except BaseException:
            self.ledger.cancel(ticket)
            raise
        return ticket


def _pause(seconds: float) -> None:
    """Wait, unless those who ask here are told to stop, which raises `ChatError`."""
    stop = STOP.get()
    if stop is not None and stop.wait(seconds):
        raise ChatError("stopped while waiting", "interrupted", True)
    if stop is None and seconds:
        time.sleep(seconds)


@cache
def _this_command() -> str:
    return f"{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


def _gate(base_url: str | None, model: str, concurrency: int, process: int) -> threading.BoundedSemaphore:
    with _OPENING:
        return _opened_gate(base_url, model, concurrency, process)


_OPENING = threading.Lock()


@cache
def _opened_gate(_base_url: str | None, _model: str, concurrency: int, _process: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(concurrency)
