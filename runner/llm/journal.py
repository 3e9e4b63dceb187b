"""Keep a journal of the paid replies of unfinished work in a file, so that resuming the work pays for none twice."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from retrievers.llm.chat import Chat, ChatError, Reply
from retrievers.store import fingerprint
from runner.llm.batch import ask_all

THREADS = 8
"""The number of questions sent at once to a model without a `concurrency` setting."""


class Journal:
    """Replies, and errors that cost tokens, in a file, in order of arrival.

    Resumed work receives each of them once, for the question that it answered. Call `forget` once the results are
    saved, so that an existing journal always means interrupted work. After a final error, no question is sent; every
    question without an entry gets this error.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._writing = threading.Lock()
        self._final: ChatError | None = None
        self._entries: defaultdict[str, deque[Reply | ChatError]] = defaultdict(deque)
        *whole, rest = file.read_text(encoding="utf-8").split("\n") if file.is_file() else [""]
        self._torn = rest != ""  # the process ended while writing a line
        for line in whole:
            with suppress(ValueError):  # the rest of an incomplete line
                key, content = json.loads(line)
                self._entries[key].append(_parse_outcome(content))

    def ask_all(self, llm: Chat, questions: Sequence[str], purpose: str) -> Iterator[tuple[int, Reply | ChatError]]:
        """Yield the position of each question with its reply or error: first those in the journal, then new ones."""
        left = []
        for position, question in enumerate(questions):
            entries = self._entries[_key(llm, question)]
            if entries:
                yield position, entries.popleft()
            else:
                left.append(position)
        if self._final is not None:
            yield from ((position, self._final) for position in left)
            return
        threads = getattr(llm, "concurrency", THREADS)
        texts = (questions[position] for position in left)
        for place, outcome in ask_all(_JournaledChat(llm, self), texts, threads, purpose=purpose):
            if isinstance(outcome, ChatError) and outcome.final:
                self._final = type(outcome)(str(outcome), outcome.kind, True)  # its calls are counted only once
            yield left[place], outcome

    def keep(self, llm: Chat, question: str, outcome: Reply | ChatError) -> None:
        """Write the outcome of a question to the file; safe to call from several threads."""
        with self._writing:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.write("\n" * self._torn + json.dumps([_key(llm, question), _as_json(outcome)]) + "\n")
            self._torn = False

    def forget(self) -> None:
        """Remove the file."""
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _JournaledChat:
    """A model that writes each outcome to the journal in the asking thread, so that no interrupt comes in between."""

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


def _key(llm: Chat, question: str) -> str:
    return fingerprint(repr(llm), question)


_SPENDING = ("calls", "tokens_in", "tokens_out", "cost")


def _as_json(outcome: Reply | ChatError) -> dict[str, Any]:
    if isinstance(outcome, Reply):
        return asdict(outcome)
    spending = {name: getattr(outcome, name) for name in _SPENDING}
    return {"error": str(outcome), "kind": outcome.kind, "final": outcome.final, **spending}


def _parse_outcome(content: dict[str, Any]) -> Reply | ChatError:
    if "text" in content:
        return Reply(**content)
    spending = {name: content[name] for name in _SPENDING}
    return ChatError(content["error"], content["kind"], content["final"], **spending)
