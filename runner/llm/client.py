"""Settings of a language model that can be asked, using the calls and the ledger of all models behind APIs.

A provider implements a single request.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.llm.chat import ChatError, Reply
from retrievers.store import fingerprint
from runner.llm.api_model import Answer, ApiModel, ModelRequest
from runner.llm.ledger import NANO, open_ledger
from runner.llm.observers import Exchange, notify_observers

TEMPLATE_TOKENS = 64
"""An upper bound of the tokens that a chat template adds to question and instructions."""

BYTES_PER_TOKEN = 4
"""The usual size of a token in bytes; a token has at least one byte."""


@settings(frozen=True, config={"extra": "forbid"})
class LLM(ApiModel, ABC):
    """Settings of a language model.

    `temperature` and `max_tokens` are sent with each request unless they are null. `price_in` and `price_out` are per
    million tokens.
    """

    price_names: ClassVar[tuple[str, ...]] = ("price_in", "price_out")
    price_hint: ClassVar[str] = "price_in and price_out, the prices per million tokens"

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int = Field(default=1024, ge=1)
    price_out: float | None = Field(default=None, ge=0, repr=False, allow_inf_nan=False)
    cache: bool = Field(default=False, repr=False)
    trace: bool = Field(default=False, repr=False)

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

    def _ask(self, question: str, system: str, purpose: str) -> Reply:
        client = self.connect()
        key = fingerprint(repr(self), system, question)
        cached = open_ledger(self.ledger).recall(key) if self.cache else None
        if cached:
            return cached
        size = len(question.encode("utf-8", "surrogatepass")) + len(system.encode("utf-8", "surrogatepass"))
        request = ModelRequest(
            send=lambda: self.send(client, question, system),
            purpose=purpose,
            tokens=size // BYTES_PER_TOKEN + TEMPLATE_TOKENS,
            most_nanos=self.nanos((size + TEMPLATE_TOKENS, self.max_tokens)),  # a token has at least one byte
            seed=key,
            cache_key=key if self.cache else "",
        )
        answer, spent = self.call(request)
        return Reply(answer.text, *(answer.tokens or (0, 0)), calls=spent.calls, cost=spent.nanos / NANO)

    def nanos(self, tokens: tuple[int, int], units: int = 0) -> int:
        """Return the cost of tokens in and out, in billionths; 0 without prices."""
        return round((tokens[0] * (self.price_in or 0) + tokens[1] * (self.price_out or 0)) * (NANO / 1_000_000))
