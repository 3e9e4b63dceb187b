"""A language model as settings that can be asked, with the same retries, rate limits and budget for all providers.

A provider adds how one request is made. Settings are a value: the asking process opens connections and the ledger.
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
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError
from runner.llm.faults import LONGEST_WAIT_S, Fault, backoff
from runner.llm.ledger import NANO, Ledger, Order, Ticket, Usage, open_ledger
from runner.llm.observers import Exchange, notify_observers

STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
"""An event that, once set, ends all waiting of requests in this context."""

TEMPLATE_TOKENS = 64
"""An upper bound of what a chat template adds to question and instructions."""

BYTES_PER_TOKEN = 4
"""The usual size of a token, which is never below one byte."""

_POLL_S = 0.02


@dataclass(frozen=True)
class Answer:
    """The answer to one request: its text, and the tokens in and out, None if the server does not report them."""

    text: str
    tokens: tuple[int, int] | None


@settings(frozen=True, config={"extra": "forbid"})
class LLM(ABC):
    """Settings of a language model. Its repr has the settings that decide an answer, and no others.

    A null `base_url` is the provider's own address. `temperature` and `max_tokens` are sent with each request unless
    they are null. A call is one request; retries are calls too. `max_calls` and `max_cost` limit a budget: that of one
    command with all its workers or, if `budget` names one, of all commands that name it. `price_in` and `price_out` are
    per million tokens. `requests_per_minute` and `tokens_per_minute` apply to all processes with the same ledger,
    `concurrency` to one process.
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
    ledger: LocalPath = Field(default="mlruns/llm.db", min_length=1, repr=False, validate_default=True)
    cache: bool = Field(default=False, repr=False)
    trace: bool = Field(default=False, repr=False)

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, url: str | None) -> str | None:
        if url is None or _has_secret(url):
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("should be an http address such as http://127.0.0.1:8000/v1")
        return url.rstrip("/")

    @field_validator("budget")
    @classmethod
    def _name_budget(cls, budget: str | None) -> str:
        return budget or _name_of_command()

    @field_validator("ledger")
    @classmethod
    def _resolve_path(cls, path: str) -> str:
        return str(Path(path).resolve())

    @model_validator(mode="after")
    def _check_secret(self) -> Self:
        if self.base_url is not None and _has_secret(self.base_url):  # a field's validator would show the value
            raise ValueError(
                "base_url should not contain credentials or parameters; put the key in the environment variable "
                "named by api_key_env"
            )
        return self

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        if self.max_cost is not None and (self.price_in is None or self.price_out is None):
            raise ValueError(
                f"max_cost={self.max_cost:g}: needs prices; set price_in and price_out, the prices per million tokens"
            )
        return self

    @abstractmethod
    def connect(self) -> Any:  # noqa: ANN401 (an SDK's client)
        """Return the client for requests, opened once per process without the network; raises `ConfigError`."""

    @abstractmethod
    def send(self, client: Any, question: str, system: str) -> Answer:  # noqa: ANN401 (what `connect` returns)
        """Make one request; raises `Fault`."""

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        """Return the answer to a question under standing instructions.

        Raises `ChatError` if there is none, with the `kind` of the last request's fault, or "refusal" or "empty";
        `BudgetSpent` if the budget allows no call; `ConfigError` if no call is possible at all.
        """
        began = time.time()
        try:
            outcome: Reply | ChatError = self._ask(question, system, purpose)
        except ChatError as error:
            outcome = error
        if self.trace:
            exchange = Exchange(self, self.model, purpose, system, question, outcome, began, time.time() - began)
            notify_observers(exchange)
        if isinstance(outcome, ChatError):
            raise outcome
        return outcome

    def usage(self) -> dict[str, Usage]:
        """Return the totals of all calls on this budget so far, by purpose."""
        return open_ledger(self.ledger).usage(str(self.budget))

    def _ask(self, question: str, system: str, purpose: str) -> Reply:
        client, ledger = self.connect(), open_ledger(self.ledger)
        key = fingerprint(repr(self), system, question)
        cached = ledger.recall(key) if self.cache else None
        if cached:
            return cached
        caller = _Caller(self, client, ledger, key if self.cache else "")
        nanos, wait_s = 0, 0.0
        for attempt in range(self.retries + 1):
            calls = attempt + 1
            try:
                _pause(wait_s)
                answer, cost = caller.call(question, system, purpose, attempt)
            except _CallFault as error:
                nanos += error.nanos
                fault = error.fault
            except ChatError as error:  # before the call: the budget is spent, or the waiting was stopped
                error.calls, error.cost = attempt, nanos / NANO
                raise
            else:
                return Reply(answer.text, *(answer.tokens or (0, 0)), calls=calls, cost=(nanos + cost) / NANO)
            if not fault.again or (fault.after_s or 0) > LONGEST_WAIT_S:
                break
            wait_s = backoff(fault, attempt, self.backoff_s, key)
        attempts = f" after {calls} attempts" if calls > 1 else ""
        later = f"; try again in {fault.after_s:.0f} s" if fault.after_s else ""
        tokens_in, tokens_out = fault.tokens or (0, 0)
        message = str(fault).replace(self.key() or "\0", "***")  # servers repeat a key that they do not know
        raise ChatError(
            f"{self.model} at {self._host}: {message}{attempts}{later}", fault.kind, fault.final,
            calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost=nanos / NANO,
        ) from fault  # fmt: skip

    @property
    def _host(self) -> str:
        return urlsplit(self.base_url).netloc if self.base_url else type(self).__name__

    def nanos(self, tokens: tuple[int, int]) -> int:
        """Return the cost of tokens in and out, in billionths; 0 without prices."""
        return round((tokens[0] * (self.price_in or 0) + tokens[1] * (self.price_out or 0)) * (NANO / 1_000_000))

    def order(self, question: str, system: str, purpose: str, attempt: int) -> Order:
        """Return the order for a call. Its cost is bounded because a token has at least one byte."""
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
        """Return the key from the environment, "" if none is needed; raises `ConfigError` if it is missing.

        The key in the provider's usual variable is sent to the provider's own address only.
        """
        variable = self.api_key_env or (None if self.base_url else self.usual_key)
        if variable is None:
            return ""
        key = os.environ.get(variable, "").strip()
        if not key:
            other = (
                ", or set llm.base_url=http://127.0.0.1:8000/v1 for a server without keys" if not self.base_url else ""
            )
            raise ConfigError(f"llm.api_key_env={variable}: the variable is not set; export {variable}=...{other}")
        return key


def _has_secret(url: str) -> bool:
    """Return whether an address, or a failed attempt at one, may have a password or a key in it."""
    parts = urlsplit(url)
    return "@" in (parts.netloc or url) or bool(parts.query)


class _CallFault(Exception):
    """A call without an answer, and its cost."""

    def __init__(self, fault: Fault, nanos: int) -> None:
        super().__init__(fault)
        self.fault, self.nanos = fault, nanos


@dataclass(frozen=True)
class _Caller:
    """Makes calls: reserves each in the ledger, sends it and settles it."""

    llm: LLM
    client: Any
    ledger: Ledger
    cache_key: str

    def call(self, question: str, system: str, purpose: str, attempt: int) -> tuple[Answer, int]:
        """Make one call and return its answer and cost; raises `_CallFault`, or `ChatError` if none was made."""
        with _gate(self.llm.base_url, self.llm.model, self.llm.concurrency, os.getpid()):
            ticket = self._reserve(self.llm.order(question, system, purpose, attempt))
            began = time.perf_counter()
            fault, answer, tokens, outcome = None, Answer("", None), None, "interrupted"
            try:
                answer = self.llm.send(self.client, question, system)
                outcome, tokens = "ok", answer.tokens
            except Fault as error:
                fault, outcome, tokens = error, error.kind, error.tokens
            finally:  # the call was made, even if an interrupt ended it
                nanos = ticket.order.most_nanos if tokens is None else self.llm.nanos(tokens)
                key = self.cache_key if outcome == "ok" else ""
                self.ledger.settle(ticket, outcome, tokens, nanos, time.perf_counter() - began, key, answer.text)
        if fault:
            raise _CallFault(fault, nanos) from fault
        return answer, nanos

    def _reserve(self, order: Order) -> Ticket:
        while (ticket := self.ledger.reserve(order)) is None:
            _pause(_POLL_S)
        try:
            _pause(ticket.wait_s)
        except BaseException:
            self.ledger.cancel(ticket)
            raise
        return ticket


def _pause(seconds: float) -> None:
    """Wait; raises `ChatError` if `STOP` is set meanwhile."""
    stop = STOP.get()
    if stop is not None and stop.wait(seconds):
        raise ChatError("stopped while waiting", "interrupted", True)
    if stop is None and seconds:
        time.sleep(seconds)


@cache
def _name_of_command() -> str:
    return f"{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


def _gate(base_url: str | None, model: str, concurrency: int, process: int) -> threading.BoundedSemaphore:
    with _OPENING:
        return _create_gate(base_url, model, concurrency, process)


_OPENING = threading.Lock()


@cache
def _create_gate(_base_url: str | None, _model: str, concurrency: int, _process: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(concurrency)
