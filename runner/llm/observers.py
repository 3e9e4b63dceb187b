"""Observers of the exchanges with language models, such as a tracing system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrievers.llm.chat import ChatError, Reply


@dataclass(frozen=True)
class Exchange:
    """A question and its outcome. `llm` are the settings; `began` is in seconds since 1970."""

    llm: object
    model: str
    purpose: str
    system: str
    question: str
    outcome: Reply | ChatError
    began: float
    seconds: float


Observer = Callable[[Exchange], None]

_observers: list[Observer] = []


def observe(observer: Observer) -> Callable[[], None]:
    """Call an observer with each exchange of this process with models that have `trace` on; return a function to stop.

    The asking threads call it, and its exceptions reach the code that asked.
    """
    _observers.append(observer)
    return lambda: _observers.remove(observer)


def notify_observers(exchange: Exchange) -> None:
    """Call all observers with an exchange."""
    for observer in list(_observers):
        observer(exchange)
