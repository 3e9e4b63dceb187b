"""Questions to a language model while mining, and its replies as JSON; what cannot be read is asked for again.

All that was paid for is in a journal, so that work which was cut short pays for nothing twice. What a reply means for
a query is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrievers.chat import Chat, ChatError
from runner.generation.mining.base import Case
from runner.generation.mining.targets import Targets
from runner.llm.faults import LASTING
from runner.llm.journal import Journal


@dataclass(frozen=True)
class Silence:
    """Why there is no reply that can be read; another time there may be one, or not (`lasting`)."""

    why: str
    lasting: bool


JsonReply = Mapping[str, Any] | Silence
"""A reply as the JSON object that was asked for, or why there is none."""

RETRIES = 2
"""How often a reply that cannot be read is asked for again."""

NOTHING_GIVEN = "(none)"
"""What stands in a question in place of documents where none are given."""


def replies_to(questions: Sequence[str], key: str, purpose: str, llm: Chat, journal: Journal) -> list[JsonReply]:
    """Return the reply to each question; one without a JSON object that has `key` is asked for again."""
    replies: dict[int, JsonReply] = {}
    waiting = list(range(len(questions)))
    for attempt in range(RETRIES + 1):
        asked = [questions[position] + "\n" * attempt for position in waiting]  # a cache takes it for another question
        unreadable = []
        for place, outcome in journal.answers(llm, asked, purpose):
            position = waiting[place]
            if isinstance(outcome, ChatError):
                replies[position] = Silence(str(outcome), outcome.kind in LASTING and not outcome.final)
            elif (content := _object_with(outcome.text, key)) is not None:
                replies[position] = content
            else:
                shortened = " ".join(outcome.text.split())[:200]
                replies[position] = Silence(f"unreadable reply: {shortened}", lasting=True)
                unreadable.append(position)
        waiting = sorted(unreadable)
    return [replies[position] for position in range(len(questions))]


def is_true(value: object) -> bool:
    """Return whether a value in a reply is true, as JSON or in words."""
    return str(value).strip().lower() == "true"


def is_expected(case: Case, reply: Mapping[str, Any]) -> bool:
    """Return whether an answer has one of those in it that the case expects, whatever their letters and signs."""
    answer = f" {_plain(str(reply.get('answer') or ''))} "
    return any(f" {_plain(expected)} " in answer for expected in case.answers if _plain(expected))


def documents_text(documents: Sequence[int], targets: Targets) -> str:
    """Return documents, given by their positions, as a question has them."""
    return "\n\n---\n\n".join(targets.all[document].text for document in documents) or NOTHING_GIVEN


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _object_with(text: str, key: str) -> Mapping[str, Any] | None:
    """Return the first JSON object in a reply that has a key, None where there is none."""
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            content, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and key in content:
            return content
    return None
