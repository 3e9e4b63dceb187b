"""Plan the calls of language models that a search will make.

Settings that make calls have a method `plan_calls` beside `plan`. Counts and bytes are upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from retrievers.base import Corpus, iter_parts
from retrievers.llm.prompting import number_passages


@dataclass(frozen=True)
class ModelCalls:
    """The calls of a model for one purpose, and the UTF-8 bytes of all their prompts: upper bounds, without retries.

    `replies_read` is how often the prompts contain the reply to an earlier call; `prompt_bytes` excludes these replies.
    The model is a `Chat`, or a reranker behind an API, which may bill by `units` other than tokens.
    """

    llm: object
    purpose: str
    calls: int
    prompt_bytes: int
    replies_read: int = 0
    units: int = 0


@runtime_checkable
class CallsModels(Protocol):
    """Settings of a retriever, or of a part of one, that calls a language model."""

    def plan_calls(self, corpus: Corpus, queries: Sequence[str]) -> Iterable[ModelCalls]:
        """Return the calls of a search for these queries, without those of the settings within."""
        ...


@runtime_checkable
class CallsModelsPerCandidate(Protocol):
    """Settings of a reranker that calls a language model."""

    def plan_candidate_calls(self, corpus: Corpus, queries: Sequence[str], n: int) -> ModelCalls:
        """Return the calls for n candidates of each query."""
        ...


def iter_model_calls(settings: object, corpus: Corpus, queries: Sequence[str]) -> Iterator[ModelCalls]:
    """Yield the calls of a search by a retriever and by all settings within it."""
    if isinstance(settings, CallsModels):
        yield from settings.plan_calls(corpus, queries)
    for part in iter_parts(settings):
        yield from iter_model_calls(part, corpus, queries)


def count_bytes(*texts: str) -> int:
    """Return the length of texts in UTF-8, an upper bound on their number of tokens."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def count_passage_bytes(corpus: Corpus, n: int, max_words: int) -> int:
    """Return the bytes of the n longest documents, numbered and cut after `max_words` words, as prompts show them."""
    return sum(_count_sizes(corpus, max_words)[:n]) + count_bytes(number_passages([""] * n, 0))


@lru_cache(maxsize=4)
def _count_sizes(corpus: Corpus, max_words: int) -> list[int]:
    """Return the bytes of each document cut after `max_words` words, in descending order."""
    texts = (" ".join(text.split(None, max_words)[:max_words]) for text in corpus.contents())
    return sorted(map(count_bytes, texts), reverse=True)
