"""Settings of a model behind an API; all kinds of models share its retries, rate limits, budget and prices.

Settings are a value: the calling process opens connections and the ledger.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.llm.chat import ChatError
from runner.config.addresses import LocalPath
from runner.config.environment import hide_values, note_secrets
from runner.config.objects import ConfigError
from runner.llm.faults import LONGEST_WAIT_S, Fault, draw_wait
from runner.llm.ledger import NANO, Ledger, Order, Ticket, Usage, open_ledger

STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
"""An event that, once set, ends all waiting of requests in this context."""

_POLL_S = 0.02

_WAIT_S = 0.05
"""The pause, in seconds, before checking again for vectors that others are paying for."""


@dataclass(frozen=True)
class Answer:
    """The answer to one request.

    `tokens` are those in and out, None if the server does not report them; `units` are those that it bills instead.
    `vectors` are stored by key together with the call, as the bytes of 32-bit floats.
    """

    text: str = ""
    tokens: tuple[int, int] | None = None
    units: int = 0
    vectors: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelRequest:
    """A request to be made: `send` makes it and raises `Fault`.

    `tokens` is an estimate of the tokens in, `most_nanos` the highest possible cost, and `size` the size of its texts
    in bytes. With a `cache_key`, the text of the answer is cached. `seed` determines the jitter of the waits between
    retries.
    """

    send: Callable[[], Answer]
    purpose: str
    tokens: int
    most_nanos: int
    seed: str
    cache_key: str = ""
    size: int = 0


@dataclass(frozen=True)
class Spent:
    """The cost of an answer: the number of calls, including failed ones, and their cost in billionths."""

    calls: int
    nanos: int


API_ACCESS = Access("services", names=("base_url", "model"), paths=("ledger",), secrets=("base_url", "api_key_env"))
"""What every model behind an API uses. Its key is sent to the address."""


@settings(frozen=True, config={"extra": "forbid"})
class ApiModel:
    """Settings of a model behind an API. The repr has exactly the settings that affect an answer.

    A null `base_url` is the provider's own address. A call is one request; retries are calls too. `max_calls` and
    `max_cost` limit a budget: that of one command with all its workers or, if `budget` names one, of all commands that
    name it. `price_in` is per million tokens. `requests_per_minute` and `tokens_per_minute` apply to all processes with
    the same ledger, `concurrency` to one process.
    """

    usual_key: ClassVar[str] = ""
    group: ClassVar[str] = "llm"
    label: ClassVar[str] = "language model"
    price_names: ClassVar[tuple[str, ...]] = ("price_in",)
    price_hint: ClassVar[str] = "price_in, the price per million tokens"

    model: str = Field(min_length=1)
    base_url: str | None = None
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
    budget: str | None = Field(default=None, repr=False, validate_default=True)
    ledger: LocalPath = Field(default="mlruns/llm.db", min_length=1, repr=False, validate_default=True)

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
        return budget or _name_of_command() + ("" if cls.group == "llm" else f" {cls.group}")

    @field_validator("ledger")
    @classmethod
    def _resolve_path(cls, path: str) -> str:
        return str(Path(path).resolve())

    @model_validator(mode="after")
    def _check_secret(self) -> Self:
        if self.base_url is not None and _has_secret(self.base_url):  # a field validator would show the value
            raise ValueError(
                "base_url should not contain credentials or parameters; put the key in the environment variable "
                "named by api_key_env"
            )
        return self

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        if self.max_cost is not None and not self.has_prices:
            raise ValueError(f"max_cost={self.max_cost:g}: needs prices; set {self.price_hint}")
        return self

    @property
    def has_prices(self) -> bool:
        """Return whether the cost of a call can be computed."""
        return all(getattr(self, name) is not None for name in self.price_names)

    @property
    def price_settings(self) -> str:
        """Return the settings of prices, for messages."""
        return " and ".join(f"{self.group}.{name}" for name in self.price_names)

    @property
    def host(self) -> str:
        """Return the name of the server, or that of the provider."""
        return urlsplit(self.base_url).netloc if self.base_url else type(self).__name__

    def nanos(self, tokens: tuple[int, int], units: int = 0) -> int:
        """Return the cost of tokens in and out and of other billed units, in billionths; 0 without prices."""
        return round(tokens[0] * (self.price_in or 0) * (NANO / 1_000_000))

    def usage(self) -> dict[str, Usage]:
        """Return the totals of all calls on this budget so far, by purpose."""
        return open_ledger(self.ledger).usage(str(self.budget))

    def call(self, request: ModelRequest) -> tuple[Answer, Spent]:
        """Return the answer to a request, with retries, and the cost of all calls.

        Raises `ChatError`, whose `kind` is that of the last fault, and `BudgetSpent` if the budget allows no call.
        """
        ledger = open_ledger(self.ledger)
        nanos, wait_s = 0, 0.0
        for attempt in range(self.retries + 1):
            calls = attempt + 1
            try:
                _pause(wait_s)
                answer, cost = self._call_once(ledger, request, attempt)
            except _CallFault as error:
                nanos += error.nanos
                fault = error.fault
            except ChatError as error:  # raised before the call: the budget is spent, or waiting was stopped
                error.calls, error.cost = attempt, nanos / NANO
                raise
            else:
                return answer, Spent(calls, nanos + cost)
            if not fault.again or (fault.after_s or 0) > LONGEST_WAIT_S:
                break
            wait_s = draw_wait(fault, attempt, self.backoff_s, request.seed)
        attempts = f" after {calls} attempts" if calls > 1 else ""
        later = f"; try again in {fault.after_s:.0f} s" if fault.after_s else ""
        tokens_in, tokens_out = fault.tokens or (0, 0)
        note_secrets(filter(None, [self.key()]))
        message = hide_values(str(fault))  # servers quote unknown keys
        raise ChatError(
            f"{self.model} at {self.host}: {message}{attempts}{later}", fault.kind, fault.final,
            calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost=nanos / NANO,
        ) from fault  # fmt: skip

    def iter_missing(self, keys: Sequence[str]) -> Iterator[list[str]]:
        """Yield the keys without a vector until there are none, for the caller to pay for those that nobody claimed.

        Raises `ConfigError` for a missing API key, before any call is reserved.
        """
        ledger, before = open_ledger(self.ledger), None
        while missing := ledger.find_missing(keys):
            if missing == before:
                time.sleep(_WAIT_S)
            self.key()
            yield missing
            before = missing

    def call_for_missing(self, keys: Sequence[str], build: Callable[[Sequence[str]], ModelRequest]) -> Spent | None:
        """Call for the keys whose vectors are neither stored nor being paid for; return the cost, None without a call.

        `build` makes the request for these keys; the answer has their vectors. Raises the same errors as `call`.
        """
        ledger = open_ledger(self.ledger)
        claimed = ledger.claim(keys, 2 * self.timeout_s + LONGEST_WAIT_S)
        if not claimed:
            return None
        try:
            return self.call(build(claimed))[1]
        finally:
            ledger.release(claimed)

    def _call_once(self, ledger: Ledger, request: ModelRequest, attempt: int) -> tuple[Answer, int]:
        """Make one call and return its answer and cost; raises `_CallFault`, or `ChatError` if no call was made."""
        with _gate(self.base_url, self.model, self.concurrency, os.getpid()):
            ticket = _reserve(ledger, self._order(request, attempt))
            began = time.perf_counter()
            fault, answer, tokens, outcome = None, Answer(), None, "interrupted"
            try:
                answer = request.send()
                outcome, tokens = "ok", answer.tokens
            except Fault as error:
                fault, outcome, tokens = error, error.kind, error.tokens
            finally:  # the call was made, even if an interrupt ended it
                nanos = request.most_nanos if tokens is None else self.nanos(tokens, answer.units)
                key = request.cache_key if outcome == "ok" else ""
                seconds = time.perf_counter() - began
                ledger.settle(ticket, outcome, tokens, nanos, seconds, key, answer.text, answer.vectors)
        if fault:
            raise _CallFault(fault, nanos) from fault
        return answer, nanos

    def _order(self, request: ModelRequest, attempt: int) -> Order:
        return Order(
            budget=str(self.budget),
            purpose=request.purpose,
            server=self.host,
            model=self.model,
            attempt=attempt,
            tokens=request.tokens,
            most_nanos=request.most_nanos,
            max_calls=self.max_calls,
            max_nanos=None if self.max_cost is None else round(self.max_cost * NANO),
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            patience_s=2 * self.timeout_s + LONGEST_WAIT_S,
            group=self.group,
            size=request.size,
        )

    def key(self) -> str:
        """Return the key from the environment, "" if none is needed; raises `ConfigError` if it is missing.

        The key in the provider's usual variable is only sent to the provider's own address.
        """
        variable = self.api_key_env or (None if self.base_url else self.usual_key)
        if not variable:
            return ""
        key = os.environ.get(variable, "").strip()
        if not key:
            other = (
                f", or set {self.group}.base_url=http://127.0.0.1:8000/v1 for a server without keys"
                if not self.base_url
                else ""
            )
            raise ConfigError(
                f"{self.group}.api_key_env={variable}: the variable is not set; export {variable}=...{other}"
            )
        return key


def _has_secret(url: str) -> bool:
    """Return whether an address, even an invalid one, may contain a password or a key."""
    parts = urlsplit(url)
    return "@" in (parts.netloc or url) or bool(parts.query)


class _CallFault(Exception):
    """A call without an answer, and its cost."""

    def __init__(self, fault: Fault, nanos: int) -> None:
        super().__init__(fault)
        self.fault, self.nanos = fault, nanos


def _reserve(ledger: Ledger, order: Order) -> Ticket:
    while (ticket := ledger.reserve(order)) is None:
        _pause(_POLL_S)
    try:
        _pause(ticket.wait_s)
    except BaseException:
        ledger.cancel(ticket)
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
