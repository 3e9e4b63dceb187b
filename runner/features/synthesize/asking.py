"""Ask a language model about queries: questions that it cannot answer cost one query, other errors all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrievers.llm.chat import Chat, ChatError, Reply
from runner.llm.faults import LASTING
from runner.llm.journal import Journal

FEWEST_FOR_FAILURE = 3
"""If the server rejects all of at least this many questions, the settings or the key's permissions are wrong."""


def ask_about_queries(
    llm: Chat, journal: Journal, purpose: str, questions: Sequence[str]
) -> Iterator[tuple[int, Reply | None]]:
    """Yield the position of each question with its reply, None if the model refuses it, in order of arrival.

    Finally raises the `ChatError` that left some without a reply: a spent budget, a server that cannot be reached or
    failed temporarily, or one that rejected all questions.
    """
    any_accepted = False
    missing: ChatError | None = None
    rejection: ChatError | None = None
    for position, outcome in journal.ask_all(llm, questions, purpose):
        if isinstance(outcome, ChatError) and outcome.kind not in LASTING:
            missing = outcome
            continue
        if isinstance(outcome, ChatError) and outcome.kind in ("request", "denied"):
            rejection = outcome
        else:
            any_accepted = True
        yield position, outcome if isinstance(outcome, Reply) else None
    if rejection and not any_accepted and len(questions) >= FEWEST_FOR_FAILURE:
        missing = missing or rejection
    if missing:
        raise missing
