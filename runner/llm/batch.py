"""Ask many questions concurrently and yield the answers in order of completion."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice

from retrievers.llm.chat import Chat, ChatError, Reply
from runner.llm.api_model import STOP

MAX_UNREACHABLE = 3
"""How many consecutive questions may fail to reach the server, each after all its retries, before it is given up."""


def ask_all(
    chat: Chat, questions: Iterable[str], threads: int, system: str = "", purpose: str = ""
) -> Iterator[tuple[int, Reply | ChatError]]:
    """Yield the position of each question with its reply or error, in order of completion.

    Questions are taken from the iterable as threads become free. No question is sent after a final error, or after
    `MAX_UNREACHABLE` consecutive questions did not reach the server; all remaining questions then get the last error.
    Ctrl-C ends all waiting; requests under way finish, at most after their time-out, before the interrupt is raised,
    but are not yielded. Raises `ConfigError` if no question can be sent at all.
    """
    stop, left = threading.Event(), enumerate(questions)
    running: dict[Future[Reply | ChatError], int] = {}
    final: ChatError | None = None
    unreachable = 0
    pool = ThreadPoolExecutor(threads, "llm", STOP.set, (stop,))
    try:
        while final is None:
            for position, question in islice(left, threads - len(running)):
                running[pool.submit(_ask, chat, question, system, purpose)] = position
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = done.result()
                unreachable = unreachable + 1 if isinstance(outcome, ChatError) and outcome.kind == "unreachable" else 0
                if isinstance(outcome, ChatError) and (outcome.final or unreachable >= MAX_UNREACHABLE):
                    final = outcome
                yield running.pop(done), outcome
        pool.shutdown(cancel_futures=True)
        yield from ((position, future.result()) for future, position in running.items() if not future.cancelled())
        cancelled = (position for future, position in running.items() if future.cancelled())
        remaining = chain(cancelled, (position for position, _ in left))
        yield from ((position, type(final)(str(final), final.kind, True)) for position in remaining)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _ask(chat: Chat, question: str, system: str, purpose: str) -> Reply | ChatError:
    try:
        return chat.ask(question, system, purpose)
    except ChatError as error:
        return error
