"""Questions to a language model in the course of a search: prompts, replies, and failures as values.

It knows nothing of what a reply is good for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from retrievers.base import RetrieverError
from retrievers.chat import Chat, ChatError, Reply
from retrievers.multistage import QueryLog

_LABEL = re.compile(
    r"^(?:[-*•>#]+\s+|\(?\d{1,2}[.):]\s+|(?:(?:search|new) )?(?:query|search|passage)(?: \d+)?:\s*)+", re.IGNORECASE
)
_AROUND = " \t\"'`*“”„«»"


@dataclass(frozen=True)
class Call:
    """A question to a language model: what came of it, and the seconds that it took."""

    outcome: Reply | ChatError
    seconds: float

    @property
    def failed(self) -> bool:
        """Tell whether there is no reply."""
        return isinstance(self.outcome, ChatError)

    @property
    def text(self) -> str:
        """Return the reply; nothing where there is none."""
        return self.outcome.text if isinstance(self.outcome, Reply) else ""

    @property
    def note(self) -> dict[str, object]:
        """Return the call as plain values."""
        said = {"error": str(self.outcome)} if isinstance(self.outcome, ChatError) else {"reply": self.outcome.text}
        spent = {"tokens_in": self.outcome.tokens_in, "tokens_out": self.outcome.tokens_out, "cost": self.outcome.cost}
        cached = {"cached": True} if isinstance(self.outcome, Reply) and self.outcome.cached else {}
        return {**said, **spent, **cached, "seconds": round(self.seconds, 6)}


def ask_llm(llm: Chat, question: str, system: str, purpose: str) -> Call:
    """Ask a language model; that it fails is an outcome, too."""
    start = time.perf_counter()
    outcome: Reply | ChatError
    try:
        outcome = llm.ask(question.encode("utf-8", "replace").decode(), system, purpose)  # no lone surrogate is sent
    except ChatError as error:
        outcome = error
    return Call(outcome, time.perf_counter() - start)


def summarise_calls(calls: Sequence[Call], /, **note: object) -> QueryLog:
    """Return what calls took, under a note of what they were for; it is not settled where one failed."""
    failures = sum(each.failed for each in calls)
    figures = {
        "llm_calls": sum(each.outcome.calls for each in calls),
        "llm_failures": failures,
        "llm_tokens_in": sum(each.outcome.tokens_in for each in calls),
        "llm_tokens_out": sum(each.outcome.tokens_out for each in calls),
        "llm_cost": sum(each.outcome.cost for each in calls),
    }
    return QueryLog(sum(each.seconds for each in calls), note, figures, not failures)


def check_prompt(name: str, prompt: str, *places: str) -> None:
    """Refuse a prompt without one of the places that are to be filled in."""
    for place in places:
        if f"{{{place}}}" not in prompt:
            raise RetrieverError(f"{name} has no {{{place}}}, which is where the {place} of a search is put in")


def fill_prompt(prompt: str, **values: object) -> str:
    """Return a prompt with each {place} filled in; what is put in is not filled in again."""
    return re.sub(r"\{(\w+)\}", lambda place: str(values.get(place[1], place[0])), prompt)


def number_passages(passages: Sequence[str], max_words: int) -> str:
    """Return passages under their numbers, from [1], each cut at so many words."""
    return "\n".join(f"[{n}] {' '.join(text.split()[:max_words])}" for n, text in enumerate(passages, start=1))


def split_lines(reply: str) -> list[str]:
    """Return the lines of a reply without bullets, numbers, labels and quotes; one that ends in a colon is none."""
    return [line for each in reply.splitlines() if (line := strip_label(each)) and not line.endswith(":")]


def strip_label(text: str) -> str:
    """Return a text without the bullet, number or label before it and the quotes around it."""
    return _LABEL.sub("", text.strip(_AROUND)).strip(_AROUND)
