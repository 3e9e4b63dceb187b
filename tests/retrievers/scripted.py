"""Language models, and a reranker, that are none: what they say follows from what they are asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from retrievers.llm.chat import ChatError, Reply
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import Store

FAILS = "(fails)"
"""In place of a reply: there is none."""


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@dataclass(frozen=True)
class Echo:
    """Repeats the first line of a question; asked for an order, it puts what shares most words with that line first."""

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        query, _, rest = question.partition("\n")
        if purpose != "rerank":
            return Reply(f"{query} {query}")
        passages = re.findall(r"^\[(\d+)\] ?(.*)$", rest, re.MULTILINE)
        passages.sort(key=lambda passage: -len(words(query) & words(passage[1])))
        return Reply(" > ".join(f"[{number}]" for number, _ in passages))


@dataclass(frozen=True)
class Said:
    """Replies as given for the query that is asked about, the n-th after n searches; `log` is what it saw."""

    replies: Mapping[str, Sequence[str]]
    log: list[str] = field(default_factory=list, repr=False, compare=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        self.log.append(question)
        query = re.findall(r"^(?:Question|Query): (.*)$", question, re.MULTILINE)[-1]
        reply = self.replies[query][question.count("Query: ") - 1]
        if reply == FAILS:
            raise ChatError("the model is out of reach", calls=2, tokens_in=5)
        return Reply(reply, tokens_in=10, tokens_out=len(reply.split()), cost=0.5)


@dataclass(frozen=True)
class Overlap:
    """Scores a text by how many words it shares with the query."""

    def open(self, store: Store) -> Rerank:
        return lambda queries, candidates, store: [
            CandidateScores(np.array([len(words(query) & words(text)) for text in texts], dtype=np.float32))
            for query, texts in zip(queries, candidates, strict=True)
        ]
