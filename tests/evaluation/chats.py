"""Language models for tests: they answer by a function, and remember what they were asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from retrievers.llm.chat import BudgetSpent, ChatError, Reply

Answer = str | Reply | ChatError


@dataclass(frozen=True)
class Scripted:
    """Answers by a function of the question and of how often it was asked (from 0), up to a number of calls in all."""

    answer: Callable[[str, int], Answer] = field(repr=False)
    name: str = "scripted"
    budget: int = field(default=1_000_000, repr=False)
    asked: list[str] = field(default_factory=list, repr=False)
    concurrency: int = field(default=4, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        with self._lock:
            if len(self.asked) >= self.budget:
                raise BudgetSpent("llm.max_calls: all have been made", "budget", True)
            before = sum(asked.strip() == question.strip() for asked in self.asked)
            self.asked.append(question)
        answer = self.answer(question.strip(), before)
        if isinstance(answer, ChatError):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer, len(question.split()), len(answer.split()))


def always(text: Answer, **settings: int) -> Scripted:
    """Return a model that says one thing."""
    return Scripted(lambda question, before: text, **settings)  # type: ignore[arg-type]  # of the right names
