"""What a language model says of a query and its goldens: whether they answer it, and how relevant they are.

Relevance is the mean of two ratings of 0, 1 or 2, asked for in different words and divided by 2, as Ragas defines
context relevance (docs.ragas.io, NVIDIA metrics: Context Relevance). It knows nothing of thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

import regex

from retrievers.chat import Chat
from retrievers.store import fingerprint
from runner.generation.synthesis.asking import heard
from runner.llm.journal import Journal

NO_ANSWER = "NO ANSWER"

ANSWER, RATINGS = "answer", ("relevance_1", "relevance_2")

_RATING = regex.compile(r"(?<![\d.,/-])([012])(?:\.0+)?(?![\d,]|\.\d)")


@dataclass(frozen=True)
class Judged:
    """The relevance of goldens to a query, from 0 to 1, None where there is none; else what is wrong with them."""

    relevance: float | None
    reason: str = ""


def judged(llm: Chat, pairs: Mapping[int, tuple[str, Sequence[str]]], journal: Journal) -> Iterator[tuple[int, Judged]]:
    """Yield what the model says of each query with the texts of its goldens, by position.

    Only what is answered is rated. Raises the `ChatError` that left some without a reply.
    """
    waiting = dict(pairs)
    ratings: dict[int, list[float | None]] = {position: [] for position in pairs}
    for step in (ANSWER, *RATINGS):
        questions = {
            at: _prompt(step).substitute(query=query, goldens=_shown(texts)) for at, (query, texts) in waiting.items()
        }
        going_on = {}
        for position, reply in heard(llm, questions, "validation", journal):
            if reply is None or (step == ANSWER and NO_ANSWER in reply.text.upper()):
                yield position, Judged(None, "refused" if reply is None else "no answer")
                continue
            going_on[position] = waiting[position]
            if step != ANSWER:
                ratings[position].append(rating_in(reply.text))
        waiting = going_on
    for position in waiting:
        given = [rating for rating in ratings[position] if rating is not None]
        whole = len(given) == len(RATINGS)
        yield position, Judged(sum(given) / len(given) / 2 if whole else None)


def rating_in(reply: str) -> float | None:
    """Return the rating in a reply, None where there is none or more than one."""
    found = set(_RATING.findall(reply))
    return float(found.pop()) if len(found) == 1 else None


def _shown(texts: Sequence[str]) -> str:
    return "\n\n".join(f"[Passage {place}]\n{text}" for place, text in enumerate(texts, start=1))


def prompts_identity() -> str:
    """Return a hash of what the model is asked."""
    return fingerprint(*(_prompt(step).template for step in (ANSWER, *RATINGS)))


@cache
def _prompt(name: str) -> Template:
    return Template((Path(__file__).parent / "prompts" / "validation" / f"{name}.txt").read_text(encoding="utf-8"))
