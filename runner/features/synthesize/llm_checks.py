"""Check queries with a language model: whether the goldens answer a query, and how relevant they are.

Relevance is the mean of two ratings of 0, 1 or 2, divided by 2; the two prompts differ in wording, as in Ragas' context
relevance (docs.ragas.io, NVIDIA metrics: Context Relevance).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import regex

from retrievers.llm.chat import Chat
from retrievers.store import fingerprint
from runner.features.synthesize.asking import ask_about_queries
from runner.llm.journal import Journal
from runner.llm.prompts import Prompt, format_passages, load_prompt

NO_ANSWER = "NO ANSWER"

ANSWER, RATINGS = "answer", ("relevance_1", "relevance_2")

_RATING = regex.compile(r"(?<![\d.,/-])([012])(?:\.0+)?(?![\d,]|\.\d)")


def rate_goldens(
    llm: Chat, pairs: Mapping[int, tuple[str, Sequence[str]]], journal: Journal
) -> Iterator[tuple[int, float | None, str]]:
    """Yield the position of each query with the relevance of its goldens, from 0 to 1, or None and the reason.

    Only goldens that answer the query are rated. Raises the `ChatError` that left some without a reply.
    """
    waiting = dict(pairs)
    ratings: dict[int, list[float | None]] = {position: [] for position in pairs}
    for step in (ANSWER, *RATINGS):
        positions, answered = list(waiting), {}
        questions = [
            _prompt(step).fill(query=query, goldens=format_passages(texts)) for query, texts in waiting.values()
        ]
        for place, reply in ask_about_queries(llm, journal, "validation", questions):
            position = positions[place]
            if reply is None or (step == ANSWER and NO_ANSWER in reply.text.upper()):
                yield position, None, "refused" if reply is None else "no answer"
                continue
            answered[position] = waiting[position]
            if step != ANSWER:
                ratings[position].append(parse_rating(reply.text))
        waiting = answered
    for position in waiting:
        numbers = [rating for rating in ratings[position] if rating is not None]
        if len(numbers) == len(RATINGS):
            yield position, sum(numbers) / len(numbers) / 2, ""
        else:
            yield position, None, "no score"


def parse_rating(reply: str) -> float | None:
    """Return the rating in a reply, None if there is none or more than one."""
    ratings = set(_RATING.findall(reply))
    return float(ratings.pop()) if len(ratings) == 1 else None


def prompts_identity() -> str:
    """Return a hash of the prompts."""
    return fingerprint(*(_prompt(step).text for step in (ANSWER, *RATINGS)))


@cache
def _prompt(name: str) -> Prompt:
    return load_prompt(Path(__file__).parent / "prompts" / "validation" / f"{name}.txt", ("query", "goldens"))
