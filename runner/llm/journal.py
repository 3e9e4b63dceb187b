"""What was paid for in work under way, kept in a file, so that work which was cut short pays for nothing twice.

It knows nothing of what is asked, nor of who answers.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from retrievers.chat import Chat, ChatError, Reply
from retrievers.store import fingerprint
from runner.llm.batch import answers

THREADS = 8
"""How many questions are asked at once of a model that does not say how many it takes."""


class Journal:
    """Replies, and refusals that cost tokens, in a file, in order of arrival.

    Work that is taken up again has them again, each once, for the question that it answered; so a journal that there is
    already is of work that was cut short. `forget` it when what came of the work is safe. After an error that is final
    nobody is asked any more in its name: it stands for all that is not kept.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._writing = threading.Lock()
        self._final: ChatError | None = None
        self._kept: defaultdict[str, deque[Reply | ChatError]] = defaultdict(deque)
        *whole, rest = file.read_text().split("\n") if file.is_file() else [""]
        self._torn = rest != ""  # the process ended within a line
        for line in whole:
            with suppress(ValueError):  # the rest of a torn one
                name, outcome = json.loads(line)
                self._kept[name].append(_outcome(outcome))

    def answers(self, llm: Chat, questions: Sequence[str], purpose: str) -> Iterator[tuple[int, Reply | ChatError]]:
        """Yield the position of each question with what answers it, the kept first, then what is asked for now."""
        left = []
        for position, question in enumerate(questions):
            kept = self._kept[_name(llm, question)]
            if kept:
                yield position, kept.popleft()
            else:
                left.append(position)
        if self._final is not None:
            yield from ((position, self._final) for position in left)
            return
        threads = getattr(llm, "concurrency", THREADS)
        asked = (questions[position] for position in left)
        for place, outcome in answers(_Kept(llm, self), asked, threads, purpose=purpose):
            if isinstance(outcome, ChatError) and outcome.final:
                self._final = type(outcome)(str(outcome), outcome.kind, True)  # its calls are counted once
            yield left[place], outcome

    def keep(self, llm: Chat, question: str, outcome: Reply | ChatError) -> None:
        """Write down what answers a question; threads may do so at once."""
        with self._writing:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write("\n" * self._torn + json.dumps([_name(llm, question), _plain(outcome)]) + "\n")
            self._torn = False

    def forget(self) -> None:
        """Remove the file."""
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Kept:
    """A model whose answers are kept by the thread that asks: no interrupt comes between the answer and its keeping."""

    llm: Chat
    journal: Journal = field(repr=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        try:
            reply = self.llm.ask(question, system, purpose)
        except ChatError as error:
            if error.tokens_in or error.tokens_out:
                self.journal.keep(self.llm, question, error)
            raise
        self.journal.keep(self.llm, question, reply)
        return reply


def _name(llm: Chat, question: str) -> str:
    return fingerprint(repr(llm), question)


_SPENT = ("calls", "tokens_in", "tokens_out", "cost")


def _plain(outcome: Reply | ChatError) -> dict[str, Any]:
    if isinstance(outcome, Reply):
        return asdict(outcome)
    spent = {name: getattr(outcome, name) for name in _SPENT}
    return {"error": str(outcome), "kind": outcome.kind, "final": outcome.final, **spent}


def _outcome(plain: dict[str, Any]) -> Reply | ChatError:
    if "text" in plain:
        return Reply(**plain)
    return ChatError(plain["error"], plain["kind"], plain["final"], **{name: plain[name] for name in _SPENT})
