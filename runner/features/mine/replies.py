"""Ask a language model about cases and queries, and read its replies as JSON objects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from retrievers.llm.chat import Chat, ChatError
from runner.features.mine.base import Case
from runner.features.mine.targets import Targets
from runner.llm.faults import LASTING
from runner.llm.journal import Journal
from runner.llm.json_replies import iter_json_objects
from runner.llm.prompts import Prompt, load_prompt
from runner.llm.rounds import Rounds

PRIMARY, SUFFICIENCY, NECESSITY = "primary", "sufficiency", "necessity"
"""The prompts: which name a task is about; whether the gold answers a question; whether any other documents do."""


@dataclass(frozen=True)
class NoReply:
    """The reason for a missing reply; unless it `is_lasting`, asking again later may succeed."""

    reason: str
    is_lasting: bool


JsonReply = Mapping[str, Any] | NoReply
"""A reply as the requested JSON object, or the reason why there is none."""

RETRIES = 2
"""The number of times that an unreadable reply is asked for again."""

NO_DOCUMENTS = "(none)"
"""Stands in place of the documents of a question without documents."""


def fill_prompt(name: str, question: str, documents: Sequence[int], targets: Targets) -> str:
    """Return the question of a prompt about documents, given by their positions."""
    texts = "\n\n---\n\n".join(targets.all[document].text for document in documents)
    return load_bundled(name, ("question", "documents")).fill(question=question, documents=texts or NO_DOCUMENTS)


@cache
def load_bundled(name: str, gaps: tuple[str, ...]) -> Prompt:
    """Load a prompt of this package."""
    return load_prompt(Path(__file__).parent / "prompts" / f"{name}.txt", gaps)


def ask_for_json(questions: Sequence[str], key: str, purpose: str, llm: Chat, journal: Journal) -> list[JsonReply]:
    """Return the reply to each question; a question is asked again if no JSON object in the reply has the key."""
    replies: dict[int, JsonReply] = {}
    rounds = Rounds(partial(journal.ask_all, llm, purpose=purpose), dict(enumerate(questions)), RETRIES)
    for position, outcome in rounds.outcomes():
        if isinstance(outcome, ChatError):
            replies[position] = NoReply(str(outcome), outcome.kind in LASTING and not outcome.final)
            continue
        content = next(iter_json_objects(outcome.text, lambda content: key in content), None)
        if content is None:
            rounds.ask_again(position)
        shortened = " ".join(outcome.text.split())[:200]
        replies[position] = NoReply(f"unreadable reply: {shortened}", is_lasting=True) if content is None else content
    return [replies[position] for position in range(len(questions))]


def is_true(value: object) -> bool:
    """Return whether a value of a reply is true, as a JSON value or as text."""
    return str(value).strip().lower() == "true"


def is_expected(case: Case, reply: Mapping[str, Any]) -> bool:
    """Return whether the answer contains an expected one, ignoring case and punctuation."""
    answer = f" {_normalize(str(reply.get('answer') or ''))} "
    return any(f" {_normalize(expected)} " in answer for expected in case.answers if _normalize(expected))


def _normalize(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
