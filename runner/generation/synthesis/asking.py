"""Questions to a language model, each about a query: what it says, and what it will not answer.

It knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retrievers.chat import Chat, ChatError, Reply
from runner.llm.faults import LASTING
from runner.llm.journal import Journal

MEANT_FOR_ALL = 3
"""From how many questions on an error that met all of them is about none of them: a wrong setting, a key's rights."""


def heard(
    llm: Chat, questions: Mapping[int, str], purpose: str, journal: Journal
) -> Iterator[tuple[int, Reply | None]]:
    """Yield the position of each question with its reply, None where the model will not answer it, as they come.

    Raises, after all others, the `ChatError` that left some without an answer: a spent budget, a server that is gone,
    one that failed for now, or that turned all of them away.
    """
    positions, said = list(questions), False
    missed: ChatError | None = None
    turned_away: ChatError | None = None
    for place, outcome in journal.answers(llm, list(questions.values()), purpose):
        if isinstance(outcome, ChatError) and outcome.kind not in LASTING:
            missed = outcome
            continue
        if isinstance(outcome, ChatError) and outcome.kind in ("request", "denied"):
            turned_away = outcome
        else:
            said = True
        yield positions[place], outcome if isinstance(outcome, Reply) else None
    if turned_away and not said and len(questions) >= MEANT_FOR_ALL:
        missed = missed or turned_away
    if missed:
        raise missed
