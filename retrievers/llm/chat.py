"""The interface of a language model: one question, one reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class ChatError(RuntimeError):
    """A language model gave no reply: it cannot be reached, it refused, or the budget is spent.

    `kind` is the reason in a word. `final` means that no other question will get a reply either. `calls`, the tokens
    and `cost` were spent although there is no reply.
    """

    def __init__(
        self,
        message: str,
        kind: str = "failed",
        final: bool = False,
        *,
        calls: int = 0,
        tokens_in: int = 0,
        tokens_out: int = 0,
        cost: float = 0.0,
    ) -> None:
        super().__init__(message, kind, final)
        self.kind, self.final = kind, final
        self.calls, self.tokens_in, self.tokens_out, self.cost = calls, tokens_in, tokens_out, cost

    def __str__(self) -> str:
        return str(self.args[0])


class BudgetSpent(ChatError):
    """The budget is too small for another call."""


@dataclass(frozen=True)
class Reply:
    """A reply and its numbers of input and output tokens; `cached` means that it came from the cache and cost nothing.

    `calls` is the number of requests, failed ones included, and `cost` their price, 0 without known prices.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cached: bool = False
    calls: int = 1
    cost: float = 0.0


@runtime_checkable
class Chat(Protocol):
    """Settings of a language model, as a frozen value; its repr has all that affects replies, and never an API key."""

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        """Return the reply to a question with a system prompt; raises `ChatError`. Safe to call from several threads.

        The cost is recorded under `purpose`, which does not affect the reply.
        """
        ...
