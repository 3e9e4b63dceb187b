"""Send prompts to a language model during a search, and read its replies and their cost; failures are values."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from retrievers.base import RetrieverError
from retrievers.encoders.cuts import Cuts, Length
from retrievers.llm.chat import Chat, ChatError, Reply
from retrievers.notes import QueryLog, QueryNote

_LABEL = re.compile(
    r"^(?:[-*•>#]+\s+|\(?\d{1,2}[.):]\s+|(?:(?:search|new) )?(?:query|search|passage)(?: \d+)?:\s*)+", re.IGNORECASE
)
_AROUND = " \t\"'`*“”„«»"


@dataclass(frozen=True)
class Call:
    """A call of a language model: its reply or error, and its time in seconds."""

    outcome: Reply | ChatError
    seconds: float

    @property
    def failed(self) -> bool:
        """Return whether there is no reply."""
        return isinstance(self.outcome, ChatError)

    @property
    def text(self) -> str:
        """Return the text of the reply, "" without one."""
        return self.outcome.text if isinstance(self.outcome, Reply) else ""

    @property
    def note(self) -> dict[str, object]:
        """Return the call as plain values, for the notes of rankings."""
        outcome = {"error": str(self.outcome)} if isinstance(self.outcome, ChatError) else {"reply": self.outcome.text}
        spent = {"tokens_in": self.outcome.tokens_in, "tokens_out": self.outcome.tokens_out, "cost": self.outcome.cost}
        cached = {"cached": True} if isinstance(self.outcome, Reply) and self.outcome.cached else {}
        return {**outcome, **spent, **cached, "seconds": round(self.seconds, 6)}


def ask_llm(llm: Chat, question: str, system: str, purpose: str) -> Call:
    """Call a language model; a failure is returned, not raised."""
    start = time.perf_counter()
    outcome: Reply | ChatError
    try:
        outcome = llm.ask(question.encode("utf-8", "replace").decode(), system, purpose)  # without lone surrogates
    except ChatError as error:
        outcome = error
    return Call(outcome, time.perf_counter() - start)


def summarise_calls(
    calls: Sequence[Call], /, cuts: Mapping[str, float] = MappingProxyType({}), **noted: object
) -> QueryLog:
    """Return the log of calls, with the `cuts` of their prompts and a note of the values given.

    It is not settled if a call failed.
    """
    failures = sum(call.failed for call in calls)
    figures = {
        "llm_calls": sum(call.outcome.calls for call in calls),
        "llm_failures": failures,
        "llm_tokens_in": sum(call.outcome.tokens_in for call in calls),
        "llm_tokens_out": sum(call.outcome.tokens_out for call in calls),
        "llm_cost": sum(call.outcome.cost for call in calls),
        **cuts,
    }
    return QueryLog(sum(call.seconds for call in calls), QueryNote(noted), figures, not failures)


def check_prompt(name: str, prompt: str, *places: str) -> None:
    """Refuse a prompt that lacks one of its placeholders."""
    for place in places:
        if f"{{{place}}}" not in prompt:
            raise RetrieverError(f"{name}: the placeholder {{{place}}} is missing; add it")


def fill_prompt(prompt: str, **values: object) -> str:
    """Return a prompt with its placeholders replaced; placeholders in the values stay."""
    return re.sub(r"\{(\w+)\}", lambda place: str(values.get(place[1], place[0])), prompt)


def count_passage_cuts(passages: Sequence[str], max_words: int) -> dict[str, float]:
    """Return how many passages a prompt cuts after `max_words` words, with their words, by name."""
    sizes = [len(text.split()) for text in passages]
    return Cuts.of([Length(size, max(size - max_words, 0)) for size in sizes]).to_figures("passages")


def number_passages(passages: Sequence[str], max_words: int) -> str:
    """Return passages as lines numbered from [1], each cut after `max_words` words."""
    return "\n".join(f"[{n}] {' '.join(text.split()[:max_words])}" for n, text in enumerate(passages, start=1))


def split_lines(reply: str) -> list[str]:
    """Return the lines of a reply without bullets, numbers, labels, quotes and lines that end in a colon."""
    return [line for raw in reply.splitlines() if (line := strip_label(raw)) and not line.endswith(":")]


def strip_label(text: str) -> str:
    """Return a text without the bullet, number or label before it and without the quotes around it."""
    return _LABEL.sub("", text.strip(_AROUND)).strip(_AROUND)
