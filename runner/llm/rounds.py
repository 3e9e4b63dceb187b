"""Ask questions in rounds: a question whose reply cannot be used is asked again in the next round.

The caller decides what is asked and which replies can be used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from retrievers.services.retry import backoff

T = TypeVar("T")


@dataclass(eq=False)
class Rounds(Generic[T]):
    """Questions by position, each asked once and then up to `retries` more times.

    All questions of a round are asked before any is asked again, so that as many as possible have a reply when the
    budget is spent. `ask` yields the index of each question of a round with its outcome, as `Journal.ask_all` does. The
    pause after the first round lasts `backoff_s` seconds and doubles with each round, up to a minute.
    """

    ask: Callable[[Sequence[str]], Iterable[tuple[int, T]]]
    questions: Mapping[int, str]
    retries: int
    backoff_s: float = 0.0
    _current: Mapping[int, str] = field(default_factory=dict, init=False)
    _next: dict[int, str] = field(default_factory=dict, init=False)
    _retries_left: int = field(default=0, init=False)

    def outcomes(self) -> Iterator[tuple[int, T]]:
        """Yield the position of each question with its outcome, round by round."""
        self._next = dict(self.questions)
        for attempt in range(self.retries + 1):
            if not self._next:
                return
            if attempt and self.backoff_s:
                time.sleep(backoff(self.backoff_s, attempt - 1))
            self._current, self._next = dict(sorted(self._next.items())), {}
            self._retries_left = self.retries - attempt
            positions = list(self._current)
            for place, outcome in self.ask(list(self._current.values())):
                yield positions[place], outcome

    def ask_again(self, position: int, addition: str = "\n") -> bool:
        """Put a question with an addition into the next round; return False if there is no further round.

        The addition must not be empty, because a cache would return the same reply to an unchanged question.
        """
        if self._retries_left:
            self._next[position] = self._current[position] + addition
        return self._retries_left > 0
